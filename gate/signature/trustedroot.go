package signature

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/fetcher"
)

// TUF is the word for the public-good trusted root, fetched over TUF.
const TUF = "tuf"

// trustedRoot loads a trusted root once; a failure is tried again by the next
// check.
type trustedRoot struct {
	// source is TUF or a path.
	source string
	// options are those of the TUF client; nil for the public-good instance.
	options *tuf.Options

	mutex    sync.Mutex
	material root.TrustedMaterial
}

// load returns the trusted root. There is no fallback: an older root that a
// binary carries along would not know the logs and authorities of today.
func (t *trustedRoot) load(ctx context.Context) (root.TrustedMaterial, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.material != nil {
		return t.material, nil
	}
	material, err := t.read(ctx)
	if err != nil {
		return nil, err
	}
	t.material = material
	return material, nil
}

func (t *trustedRoot) read(ctx context.Context) (root.TrustedMaterial, error) {
	if t.source != TUF {
		return readTrustedRoot(t.source)
	}
	var material root.TrustedMaterial
	err := retry(ctx, 0, 2*attemptTimeout, func(ctx context.Context) (err error) {
		material, err = t.fetch(ctx)
		return err
	})
	return material, err
}

// fetch asks the TUF repository once, with a cache in a private directory that
// does not outlive the call.
func (t *trustedRoot) fetch(ctx context.Context) (root.TrustedMaterial, error) {
	cache, err := os.MkdirTemp("", "flux-verify-gate-tuf-")
	if err != nil {
		return nil, &contentError{fmt.Sprintf("expected a temporary directory for the TUF cache: %v", err)}
	}
	defer os.RemoveAll(cache)
	base, err := newTransport(nil)
	if err != nil {
		return nil, err
	}
	defer base.CloseIdleConnections()

	options := tuf.DefaultOptions()
	if t.options != nil {
		given := *t.options
		options = &given
	}
	options.CachePath = cache
	download := fetcher.NewDefaultFetcher()
	download.SetHTTPClient(&contextClient{ctx: ctx, client: &http.Client{
		Transport: &guard{base: base}, CheckRedirect: checkRedirect,
	}})
	options.Fetcher = download
	material, err := root.FetchTrustedRootWithOptions(options)
	if errors.Is(err, &metadata.ErrRepository{}) {
		// The repository was reached, and what it says is not to be trusted.
		return nil, &contentError{err.Error()}
	}
	if err != nil {
		return nil, err
	}
	return material, nil
}

// contextClient ends requests of a library that takes no context.
type contextClient struct {
	ctx    context.Context
	client *http.Client
}

func (c *contextClient) Do(req *http.Request) (*http.Response, error) {
	return c.client.Do(req.WithContext(c.ctx))
}

// readTrustedRoot reads a trusted_root.json.
func readTrustedRoot(path string) (root.TrustedMaterial, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("expected a trusted_root.json: %w", err)
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxTrustedRoot+1))
	if err != nil {
		return nil, fmt.Errorf("expected a trusted_root.json: %w", err)
	}
	if len(body) > maxTrustedRoot {
		return nil, fmt.Errorf("expected a trusted_root.json of at most %d bytes, found more in %s", maxTrustedRoot, path)
	}
	material, err := root.NewTrustedRootFromJSON(body)
	if err != nil {
		return nil, fmt.Errorf("expected a trusted_root.json in %s: %w", path, err)
	}
	return material, nil
}

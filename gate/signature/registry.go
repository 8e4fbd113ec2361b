package signature

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"flux-verify-gate/gate"
)

// deniedError says that the registry refuses these credentials.
type deniedError struct {
	status int
	text   string
}

func (e *deniedError) Error() string {
	return fmt.Sprintf("expected to be let in, found HTTP status %d %s%s", e.status, http.StatusText(e.status), e.text)
}

// registry is a repository in an OCI registry. Authentication is
// go-containerregistry's; the reading is our own, because that library reads
// manifests of up to 100 MiB and blobs of whatever size their descriptor says,
// takes one page of referrers, and does not honour Retry-After (v0.22.1).
type registry struct {
	repository name.Repository
	auth       authn.Authenticator
	guard      *guard
	// dials bounds the attempts to reach the address; 0: only the deadline does.
	dials   int
	attempt time.Duration
	// session is set by artifact, before anything else is asked for.
	session atomic.Pointer[session]
}

// session is how to talk to the registry: which scheme, and as whom.
type session struct {
	client *http.Client
	scheme string
}

var manifestTypes = strings.Join([]string{
	string(types.OCIManifestSchema1), string(types.OCIImageIndex),
	string(types.DockerManifestSchema2), string(types.DockerManifestList),
}, ",")

// newRegistry names a repository by its address, with or without oci://.
func newRegistry(address string, insecure bool, credentials Credentials, base http.RoundTripper) (*registry, string, error) {
	address = strings.TrimPrefix(address, "oci://")
	repository, err := name.NewRepository(address)
	// ghcr.io speaks TLS. Whoever sets spec.insecure must not have the GitHub token
	// sent to it in the clear.
	if err == nil && insecure && repository.RegistryStr() != ghcr {
		repository, err = name.NewRepository(address, name.Insecure)
	}
	if err != nil {
		return nil, "", fmt.Errorf("expected oci://registry/repository: %w", err)
	}
	auth, credential, err := credentials.resolve(repository.Registry)
	if err != nil {
		return nil, "", err
	}
	r := &registry{repository: repository, auth: auth, guard: &guard{base: base}, attempt: attemptTimeout}
	if clusterOnly(repository.RegistryStr()) {
		// Patience does not bring such an address any nearer.
		r.dials = 3
	}
	return r, credential, nil
}

// schemes are the schemes to try, in order. Plain HTTP is spoken where it is
// allowed, and to the local addresses to which go-containerregistry, and so the
// controller, speaks it unasked.
func (r *registry) schemes() []string {
	if r.repository.Scheme() == "http" {
		return []string{"https", "http"}
	}
	return []string{"https"}
}

// artifact reads the artifact's manifest and settles how to talk to the
// registry. Without credentials it simply asks, which saves a request where no
// authentication is needed; the handshake comes when the answer is no.
func (r *registry) artifact(ctx context.Context, digest string) (content, error) {
	var found content
	err := retry(ctx, r.dials, 2*r.attempt, func(ctx context.Context) (err error) {
		if r.auth == authn.Anonymous {
			for _, scheme := range r.schemes() {
				r.use(r.guard, scheme)
				found, err = r.manifestOnce(ctx, digest, maxIndex)
				if err == nil {
					return nil
				}
				var denied *deniedError
				if errors.As(err, &denied) || errors.Is(err, errAbsent) {
					break
				}
				if scheme == "http" || len(r.schemes()) == 1 || !tryPlain(err) {
					return err
				}
			}
		}
		handshake, err := transport.NewWithContext(ctx, r.repository.Registry, r.auth, r.guard, []string{r.repository.Scope(transport.PullScope)})
		if err != nil {
			return asDenied(err)
		}
		r.use(handshake, r.repository.Scheme())
		found, err = r.manifestOnce(ctx, digest, maxIndex)
		return err
	})
	return found, err
}

// tryPlain says that an attempt with TLS failed in a way that leaves room for a
// registry that speaks plain HTTP. A certificate that is not trusted does not:
// there TLS is spoken, by somebody else.
func tryPlain(err error) bool {
	var status *statusError
	return errors.Is(err, http.ErrSchemeMismatch) || (transient(err) && !errors.As(err, &status))
}

func (r *registry) use(transport http.RoundTripper, scheme string) {
	r.session.Store(&session{
		client: &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		scheme: scheme,
	})
}

// asDenied tells a refused handshake from a failed one.
func asDenied(err error) error {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusBadRequest:
		return &deniedError{status: answer.StatusCode, text: ": " + clip(answer.Error())}
	}
	return &contentError{tellError(err)}
}

// tellError is the text of an error, shortened and without the query of an address:
// where a registry redirects to its storage, that is a credential.
func tellError(err error) string {
	text := err.Error()
	var request *url.Error
	if errors.As(err, &request) {
		if _, query, ok := strings.Cut(request.URL, "?"); ok && query != "" {
			text = strings.ReplaceAll(text, query, "…")
		}
	}
	return clip(text)
}

// clip shortens text from outside.
func clip(s string) string {
	const most = 512
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func (r *registry) url(kind, identifier string) string {
	u := url.URL{
		Scheme: r.session.Load().scheme,
		Host:   r.repository.RegistryStr(),
		Path:   "/v2/" + r.repository.RepositoryStr() + "/" + kind + "/" + identifier,
	}
	return u.String()
}

// get asks once. The caller closes the body.
func (r *registry) get(ctx context.Context, address, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &contentError{err.Error()}
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := r.session.Load().client.Do(req)
	if err != nil {
		return nil, asDeniedOrSelf(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	detail := ""
	if len(text) > 0 {
		detail = ": " + strings.ToValidUTF8(string(text), "")
	}
	switch resp.StatusCode {
	case http.StatusNotFound:
		return nil, errAbsent
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, &deniedError{status: resp.StatusCode, text: detail}
	}
	return nil, &answerError{status: resp.StatusCode, text: detail}
}

// asDeniedOrSelf looks for a refused renewal of a token inside an error of the
// client.
func asDeniedOrSelf(err error) error {
	var answer *transport.Error
	if errors.As(err, &answer) {
		return asDenied(err)
	}
	return err
}

// answerError is an answer that is neither a success nor a known refusal.
type answerError struct {
	status int
	text   string
}

func (e *answerError) Error() string {
	return fmt.Sprintf("expected HTTP status 200, found %d %s%s", e.status, http.StatusText(e.status), e.text)
}

// readAll reads a body of at most limit bytes.
func readAll(resp *http.Response, limit int64) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, &limitError{fmt.Sprintf("expected at most %d bytes, found %d", limit, resp.ContentLength)}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("expected the whole body, found %d bytes of it: %w", len(body), err)
	}
	if int64(len(body)) > limit {
		return nil, &limitError{fmt.Sprintf("expected at most %d bytes, found more", limit)}
	}
	return body, nil
}

func (r *registry) manifestOnce(ctx context.Context, reference string, limit int64) (content, error) {
	resp, err := r.get(ctx, r.url("manifests", reference), manifestTypes)
	if err != nil {
		return content{}, err
	}
	defer resp.Body.Close()
	body, err := readAll(resp, limit)
	if err != nil {
		return content{}, err
	}
	// A tag says nothing of the content, but the registry may.
	want := reference
	if !gate.WellFormedDigest(reference) {
		want = resp.Header.Get("Docker-Content-Digest")
	}
	if gate.WellFormedDigest(want) {
		if err := checkDigest(body, want); err != nil {
			return content{}, err
		}
	}
	return content{body: body, mediaType: mediaTypeOf(body, resp.Header), digest: digestOf(body)}, nil
}

// mediaTypeOf is what the content says of itself, else what the registry says.
func mediaTypeOf(body []byte, header http.Header) string {
	if members, err := strictObject(body); err == nil {
		if own, err := text(members, "mediaType"); err == nil {
			return own
		}
	}
	return contentType(header)
}

func contentType(header http.Header) string {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

func (r *registry) manifest(ctx context.Context, digest string, limit int64) (content, error) {
	var found content
	err := retry(ctx, r.dials, r.attempt, func(ctx context.Context) (err error) {
		found, err = r.manifestOnce(ctx, digest, limit)
		return err
	})
	return found, err
}

func (r *registry) blob(ctx context.Context, digest string, limit int64) ([]byte, error) {
	var found []byte
	err := retry(ctx, r.dials, r.attempt, func(ctx context.Context) error {
		resp, err := r.get(ctx, r.url("blobs", digest), "")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := readAll(resp, limit)
		if err != nil {
			return err
		}
		found = body
		return checkDigest(body, digest)
	})
	return found, err
}

func (r *registry) signatures(ctx context.Context, digest string) ([]content, error) {
	var found content
	err := retry(ctx, r.dials, r.attempt, func(ctx context.Context) (err error) {
		found, err = r.manifestOnce(ctx, signatureTagOf(digest), maxIndex)
		return err
	})
	if errors.Is(err, errAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []content{found}, nil
}

// neighbours reads the manifests of a few tags and of a few digests that tags
// say have signatures. It asks once, and briefly.
func (r *registry) neighbours(ctx context.Context) []content {
	ctx, cancel := context.WithTimeout(ctx, neighboursTimeout)
	defer cancel()
	resp, err := r.get(ctx, r.url("tags", "list")+"?n=100", "")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	body, err := readAll(resp, maxManifest)
	if err != nil {
		return nil
	}
	var list struct {
		Tags []string `json:"tags"`
	}
	if json.Unmarshal(body, &list) != nil {
		return nil
	}
	var all []content
	seen := make(map[string]bool)
	for _, tag := range list.Tags {
		if signed, ok := signedDigest(tag); ok {
			tag = signed
		}
		if len(seen) == maxNeighbours || seen[tag] || !tagOrDigest.MatchString(tag) {
			continue
		}
		seen[tag] = true
		if found, err := r.manifestOnce(ctx, tag, maxManifest); err == nil {
			all = append(all, found)
		}
	}
	return all
}

// tagOrDigest is what may stand in the path of a manifest (OCI distribution
// specification 1.1).
var tagOrDigest = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127})$`)

// signedDigest reads the digest out of a tag that stands for signatures.
func signedDigest(tag string) (string, bool) {
	digest := strings.Replace(strings.TrimSuffix(tag, ".sig"), "-", ":", 1)
	return digest, gate.WellFormedDigest(digest)
}

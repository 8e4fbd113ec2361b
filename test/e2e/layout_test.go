package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// saver copies what a repository holds into an OCI layout.
type saver struct {
	s          *stage
	repository name.Repository
	dir        string
	options    []remote.Option
	index      []v1.Descriptor
	saved      map[string]bool
}

// saveLayout writes the scenario's repository as an OCI layout: every tag, the
// digests that have none any more, and what refers to anything of it. Its error
// is that of a registry that does not answer.
func (s *stage) saveLayout(dir string, untagged ...string) error {
	repository, err := name.NewRepository(s.repository(), name.Insecure)
	if err != nil {
		return err
	}
	w := &saver{s: s, repository: repository, dir: dir, saved: map[string]bool{}, options: []remote.Option{remote.WithContext(s.t.Context())}}
	tags, err := remote.List(repository, w.options...)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return err
	}
	for _, tag := range tags {
		got, err := remote.Get(repository.Tag(tag), w.options...)
		if err != nil {
			return err
		}
		entry := v1.Descriptor{MediaType: got.MediaType, Size: got.Size, Digest: got.Digest}
		entry.Annotations = map[string]string{"org.opencontainers.image.ref.name": tag}
		w.index = append(w.index, entry)
		if err := w.manifest(got); err != nil {
			return err
		}
	}
	for _, digest := range untagged {
		var answer *transport.Error
		if err := w.get(digest); errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
			continue // it is gone, and that is the story
		} else if err != nil {
			return err
		}
	}
	return errors.Join(
		w.json("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}),
		w.json("index.json", map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": w.index}),
	)
}

// manifest saves a manifest, what it names, and what refers to it.
func (w *saver) manifest(got *remote.Descriptor) error {
	digest := got.Digest.String()
	if w.saved[digest] {
		return nil
	}
	if err := w.blob(digest, got.Manifest); err != nil {
		return err
	}
	var parts struct {
		Config    *v1.Descriptor
		Layers    []v1.Descriptor
		Manifests []v1.Descriptor
	}
	if err := json.Unmarshal(got.Manifest, &parts); err != nil {
		return fmt.Errorf("the manifest %s: %w", digest, err)
	}
	if parts.Config != nil {
		parts.Layers = append(parts.Layers, *parts.Config)
	}
	for _, layer := range parts.Layers {
		if err := w.layer(layer.Digest.String()); err != nil {
			return err
		}
	}
	for _, child := range parts.Manifests {
		if err := w.get(child.Digest.String()); err != nil {
			return err
		}
	}
	referrers, err := remote.Referrers(w.repository.Digest(digest), w.options...)
	if err != nil {
		return fmt.Errorf("the referrers of %s: %w", digest, err)
	}
	list, err := referrers.IndexManifest()
	if err != nil {
		return err
	}
	for _, entry := range list.Manifests {
		if !w.saved[entry.Digest.String()] {
			w.index = append(w.index, v1.Descriptor{MediaType: entry.MediaType, Size: entry.Size, Digest: entry.Digest})
		}
		if err := w.get(entry.Digest.String()); err != nil {
			return err
		}
	}
	return nil
}

func (w *saver) get(digest string) error {
	got, err := remote.Get(w.repository.Digest(digest), w.options...)
	if err != nil {
		return err
	}
	return w.manifest(got)
}

func (w *saver) layer(digest string) error {
	if w.saved[digest] {
		return nil
	}
	layer, err := remote.Layer(w.repository.Digest(digest), w.options...)
	if err != nil {
		return err
	}
	content, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer content.Close()
	body, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return w.blob(digest, body)
}

func (w *saver) blob(digest string, body []byte) error {
	w.saved[digest] = true
	return os.WriteFile(filepath.Join(w.dir, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:")), body, 0o644)
}

func (w *saver) json(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, name), append(text, '\n'), 0o644)
}

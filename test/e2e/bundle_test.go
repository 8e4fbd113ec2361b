package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// image is a manifest with one layer, such as a bundle is kept in.
type image struct {
	digest string
	layer  []byte
}

// referrers lists the digests of what refers to a digest.
func (s *stage) referrers(digest string) []string {
	s.t.Helper()
	index, err := remote.Referrers(s.named(digest), remote.WithContext(s.t.Context()))
	s.check(err)
	manifest, err := index.IndexManifest()
	s.check(err)
	var digests []string
	for _, d := range manifest.Manifests {
		digests = append(digests, d.Digest.String())
	}
	if len(digests) == 0 {
		s.t.Fatalf("%s has no referrers", digest)
	}
	return digests
}

// bundleOf returns the one bundle that refers to a digest.
func (s *stage) bundleOf(digest string) image {
	s.t.Helper()
	bundles := s.referrers(digest)
	if len(bundles) != 1 {
		s.t.Fatalf("expected one referrer of %s, found %d", digest, len(bundles))
	}
	found, err := remote.Image(s.named(bundles[0]), remote.WithContext(s.t.Context()))
	s.check(err)
	layers, err := found.Layers()
	s.check(err)
	content, err := layers[0].Compressed()
	s.check(err)
	defer content.Close()
	layer, err := io.ReadAll(content)
	s.check(err)
	return image{digest: bundles[0], layer: layer}
}

// remove deletes a manifest from the registry, as a clean-up does.
func (s *stage) remove(digest string) {
	s.t.Helper()
	s.check(remote.Delete(s.named(digest), remote.WithContext(s.t.Context())))
}

// removeBundles deletes every referrer of a digest.
func (s *stage) removeBundles(digest string) {
	s.t.Helper()
	for _, bundle := range s.referrers(digest) {
		s.remove(bundle)
	}
}

// sigTag is the tag that the signatures of a digest have in the older layout.
func sigTag(digest string) string { return strings.ReplaceAll(digest, ":", "-") + ".sig" }

// untag deletes a tag and leaves what it names.
func (s *stage) untag(tag string) {
	s.t.Helper()
	s.check(remote.Delete(s.tagNamed(tag), remote.WithContext(s.t.Context())))
}

// removeTagged deletes what a tag names. The registry must be Distribution: in
// go-containerregistry's the tag still gives what was deleted by its digest.
func (s *stage) removeTagged(tag string) {
	s.t.Helper()
	descriptor, err := remote.Head(s.tagNamed(tag), remote.WithContext(s.t.Context()))
	s.check(err)
	s.remove(descriptor.Digest.String())
}

// pushUnreadable pushes a layer that is no signature under the tag with the
// signatures of a digest.
func (s *stage) pushUnreadable(digest string) {
	s.t.Helper()
	unreadable, err := mutate.AppendLayers(empty.Image, static.NewLayer([]byte("{}"), "application/vnd.dev.cosign.simplesigning.v1+json"))
	s.check(err)
	s.check(remote.Write(s.tagNamed(sigTag(digest)), unreadable, remote.WithContext(s.t.Context())))
}

const (
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	emptyType  = "application/vnd.oci.empty.v1+json"
)

// raw is a manifest as it is to be pushed.
type raw []byte

func (r raw) RawManifest() ([]byte, error)        { return r, nil }
func (r raw) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// attach pushes a bundle as a referrer of a digest, as cosign does; whether it is
// one, and about that digest, is the caller's affair.
func (s *stage) attach(digest string, bundle []byte) {
	s.t.Helper()
	subject, err := remote.Head(s.named(digest), remote.WithContext(s.t.Context()))
	s.check(err)
	blob := func(content []byte, mediaType types.MediaType) map[string]any {
		layer := static.NewLayer(content, mediaType)
		s.check(remote.WriteLayer(s.named(digest).Context(), layer, remote.WithContext(s.t.Context())))
		sum, err := layer.Digest()
		s.check(err)
		return map[string]any{"mediaType": mediaType, "digest": sum.String(), "size": len(content)}
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": types.OCIManifestSchema1, "artifactType": bundleType,
		"config": blob([]byte("{}"), emptyType), "layers": []any{blob(bundle, bundleType)},
		"subject": map[string]any{"mediaType": subject.MediaType, "digest": digest, "size": subject.Size},
	})
	s.check(err)
	sum, _, err := v1.SHA256(bytes.NewReader(manifest))
	s.check(err)
	s.check(remote.Put(s.named(sum.String()), raw(manifest), remote.WithContext(s.t.Context())))
}

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"flux-verify-gate/test/stack/githubtoken"
)

// image is a manifest with one layer, such as a bundle is kept in.
type image struct {
	digest string
	layer  []byte
}

func (s *stage) named(digest string) name.Digest {
	s.t.Helper()
	reference, err := name.NewDigest(s.reference(digest), name.Insecure)
	s.check(err)
	return reference
}

// bundleOf returns the one bundle that refers to a digest.
func (s *stage) bundleOf(digest string) image {
	s.t.Helper()
	list, err := remote.Referrers(s.named(digest), remote.WithContext(s.t.Context()))
	s.check(err)
	index, err := list.IndexManifest()
	s.check(err)
	if len(index.Manifests) != 1 {
		s.t.Fatalf("expected one referrer of %s, found %d", digest, len(index.Manifests))
	}
	found, err := remote.Image(s.named(index.Manifests[0].Digest.String()), remote.WithContext(s.t.Context()))
	s.check(err)
	layers, err := found.Layers()
	s.check(err)
	content, err := layers[0].Compressed()
	s.check(err)
	defer content.Close()
	layer, err := io.ReadAll(content)
	s.check(err)
	return image{digest: index.Manifests[0].Digest.String(), layer: layer}
}

// remove deletes a manifest from the registry, as a clean-up does.
func (s *stage) remove(digest string) {
	s.t.Helper()
	s.check(remote.Delete(s.named(digest), remote.WithContext(s.t.Context())))
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

// copyTo copies an artifact, and nothing that refers to it, into another
// repository.
func (s *stage) copyTo(repository, tag, digest string) {
	s.t.Helper()
	artifact, err := remote.Image(s.named(digest), remote.WithContext(s.t.Context()))
	s.check(err)
	to, err := name.NewTag(repository+":"+tag, name.Insecure)
	s.check(err)
	s.check(remote.Write(to, artifact, remote.WithContext(s.t.Context())))
}

// pushIndex pushes two artifacts for two platforms, and the index of both under a
// tag. The first child is the one that the controller takes.
func (s *stage) pushIndex(tag string) (digest string, children []string) {
	s.t.Helper()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range []string{"amd64", "arm64"} {
		child := s.push("v0-"+architecture, architecture)
		children = append(children, child)
		artifact, err := remote.Image(s.named(child), remote.WithContext(s.t.Context()))
		s.check(err)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: artifact, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	to, err := name.NewTag(s.repository()+":"+tag, name.Insecure)
	s.check(err)
	s.check(remote.WriteIndex(to, index, remote.WithContext(s.t.Context())))
	sum, err := index.Digest()
	s.check(err)
	return sum.String(), children
}

// attestAs attests something about a digest with a certificate for a job's
// token.
func (s *stage) attestAs(digest string, claims githubtoken.Claims, predicateType string) {
	s.t.Helper()
	predicate := filepath.Join(s.t.TempDir(), "predicate.json")
	s.check(os.WriteFile(predicate, []byte(`{"found": 0}`), 0o600))
	token, err := s.stack.Sigstore.Tokens().Token(claims)
	s.check(err)
	s.check(s.stack.Sigstore.AttestKeyless(s.t.Context(), s.reference(digest), token, predicateType, predicate))
}

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"flux-verify-gate/test/stack/githubtoken"
)

// The media types of a Helm chart (helm.sh/docs/topics/registries).
const (
	helmConfig  = "application/vnd.cncf.helm.config.v1+json"
	helmContent = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// referrers lists the digests of what refers to a digest.
func (s *stage) referrers(digest string) []string {
	s.t.Helper()
	of, err := name.NewDigest(s.reference(digest), name.Insecure)
	s.check(err)
	index, err := remote.Referrers(of, remote.WithContext(s.t.Context()))
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

// removeBundles deletes every referrer of a digest.
func (s *stage) removeBundles(digest string) {
	s.t.Helper()
	for _, bundle := range s.referrers(digest) {
		manifest, err := name.NewDigest(s.reference(bundle), name.Insecure)
		s.check(err)
		s.check(remote.Delete(manifest, remote.WithContext(s.t.Context())))
	}
}

// removeTagged deletes the tag with the signatures of a digest.
func (s *stage) removeTagged(digest string) {
	s.t.Helper()
	tag, err := name.NewTag(s.repository()+":"+strings.ReplaceAll(digest, ":", "-")+".sig", name.Insecure)
	s.check(err)
	s.check(remote.Delete(tag, remote.WithContext(s.t.Context())))
}

// rawManifest is a manifest that was written by hand.
type rawManifest []byte

func (m rawManifest) RawManifest() ([]byte, error)        { return m, nil }
func (m rawManifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// pushChart pushes a Helm chart as helm push does, and returns its digest.
func (s *stage) pushChart(tag string) string {
	s.t.Helper()
	var archive bytes.Buffer
	zip := gzip.NewWriter(&archive)
	tarball := tar.NewWriter(zip)
	for _, file := range []struct{ name, content string }{
		{"podinfo/Chart.yaml", "apiVersion: v2\nname: podinfo\nversion: " + tag + "\n"},
		{"podinfo/values.yaml", "replicas: 1\n"},
		{"podinfo/templates/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {replicas: '{{ .Values.replicas }}'}\n"},
	} {
		s.check(tarball.WriteHeader(&tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.content))}))
		_, err := tarball.Write([]byte(file.content))
		s.check(err)
	}
	s.check(tarball.Close())
	s.check(zip.Close())

	repository, err := name.NewRepository(s.repository(), name.Insecure)
	s.check(err)
	config := fmt.Sprintf(`{"apiVersion":"v2","name":"podinfo","version":%q}`, tag)
	blob := func(content []byte, mediaType types.MediaType) v1.Descriptor {
		layer := static.NewLayer(content, mediaType)
		s.check(remote.WriteLayer(repository, layer, remote.WithContext(s.t.Context())))
		digest, err := layer.Digest()
		s.check(err)
		return v1.Descriptor{MediaType: mediaType, Size: int64(len(content)), Digest: digest}
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: blob([]byte(config), helmConfig), Layers: []v1.Descriptor{blob(archive.Bytes(), helmContent)},
	})
	s.check(err)
	s.check(remote.Put(repository.Tag(tag), rawManifest(manifest), remote.WithContext(s.t.Context())))
	return fmt.Sprintf("sha256:%x", sha256.Sum256(manifest))
}

// provenance is a predicate of the type slsaprovenance1, as a file.
func (s *stage) provenance() string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "provenance.json")
	s.check(os.WriteFile(path, []byte(`{
	  "buildDefinition": {"buildType": "https://actions.github.io/buildtypes/workflow/v1", "externalParameters": {}},
	  "runDetails": {"builder": {"id": "https://github.com/actions/runner/github-hosted"}}
	}`), 0o600))
	return path
}

// attestProvenance attests a provenance of a digest, with a certificate as signAs has it.
func (s *stage) attestProvenance(digest string, claims githubtoken.Claims) {
	s.t.Helper()
	token, err := s.stack.Sigstore.Tokens().Token(claims)
	s.check(err)
	s.check(s.stack.Sigstore.AttestKeyless(s.t.Context(), s.reference(digest), token, "slsaprovenance1", s.provenance()))
}

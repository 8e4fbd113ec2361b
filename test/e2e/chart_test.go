package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The media types of a Helm chart (helm.sh/docs/topics/registries).
const (
	helmConfig  = "application/vnd.cncf.helm.config.v1+json"
	helmContent = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

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

	to := s.tagNamed(tag)
	config := fmt.Sprintf(`{"apiVersion":"v2","name":"podinfo","version":%q}`, tag)
	blob := func(content []byte, mediaType types.MediaType) v1.Descriptor {
		layer := static.NewLayer(content, mediaType)
		s.check(remote.WriteLayer(to.Context(), layer, remote.WithContext(s.t.Context())))
		digest, err := layer.Digest()
		s.check(err)
		return v1.Descriptor{MediaType: mediaType, Size: int64(len(content)), Digest: digest}
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: blob([]byte(config), helmConfig), Layers: []v1.Descriptor{blob(archive.Bytes(), helmContent)},
	})
	s.check(err)
	s.check(remote.Put(to, raw(manifest), remote.WithContext(s.t.Context())))
	return fmt.Sprintf("sha256:%x", sha256.Sum256(manifest))
}

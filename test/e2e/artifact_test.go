package e2e

import (
	"crypto/sha1"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"flux-verify-gate/test/stack/process"
)

// push pushes an artifact with some content under a tag, as flux push artifact
// does, and returns its digest.
func (s *stage) push(tag, content string) string {
	s.t.Helper()
	program, err := s.stack.Program(s.t.Context(), "fluxpush")
	s.check(err)
	dir := s.t.TempDir()
	manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: %s}\ndata: {content: %q}\n", s.namespace, content)
	s.check(os.WriteFile(filepath.Join(dir, "settings.yaml"), []byte(manifest), 0o600))
	revision := fmt.Sprintf("main@sha1:%x", sha1.Sum([]byte(content)))
	var output, stderr strings.Builder
	cmd := exec.CommandContext(s.t.Context(), program, "-revision", revision, s.repository()+":"+tag, dir)
	cmd.Stdout, cmd.Stderr = &output, &stderr
	if err := process.Run(cmd); err != nil {
		s.t.Fatalf("push: %v: %s", err, stderr.String())
	}
	_, digest, found := strings.Cut(strings.TrimSpace(output.String()), "@")
	if !found {
		s.t.Fatalf("push: expected repository@digest, found %q", output.String())
	}
	return digest
}

// reference is how a digest of the scenario's repository is named.
func (s *stage) reference(digest string) string { return s.repository() + "@" + digest }

// named is a digest of the scenario's repository, for the registry's client.
func (s *stage) named(digest string) name.Digest {
	s.t.Helper()
	reference, err := name.NewDigest(s.reference(digest), name.Insecure)
	s.check(err)
	return reference
}

// tagNamed is named for a tag.
func (s *stage) tagNamed(tag string) name.Tag {
	s.t.Helper()
	reference, err := name.NewTag(s.repository()+":"+tag, name.Insecure)
	s.check(err)
	return reference
}

// tag moves a tag to a digest that the registry holds.
func (s *stage) tag(tag, digest string) {
	s.t.Helper()
	descriptor, err := remote.Get(s.named(digest), remote.WithContext(s.t.Context()))
	s.check(err)
	s.check(remote.Tag(s.tagNamed(tag), descriptor, remote.WithContext(s.t.Context())))
}

// pushWithoutContent pushes an artifact with a layer that no Flux source asks
// for, and returns its digest.
func (s *stage) pushWithoutContent(tag string) string {
	s.t.Helper()
	image, err := mutate.AppendLayers(empty.Image, static.NewLayer([]byte("not for Flux"), types.MediaType("application/vnd.acme.note")))
	s.check(err)
	s.check(remote.Write(s.tagNamed(tag), image, remote.WithContext(s.t.Context())))
	digest, err := image.Digest()
	s.check(err)
	return digest.String()
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
	s.check(remote.WriteIndex(s.tagNamed(tag), index, remote.WithContext(s.t.Context())))
	sum, err := index.Digest()
	s.check(err)
	return sum.String(), children
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

package e2e

import (
	"crypto/sha1"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"flux-verify-gate/test/stack/cosigncli"
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

// tag moves a tag to a digest that the registry holds.
func (s *stage) tag(tag, digest string) {
	s.t.Helper()
	from, err := name.NewDigest(s.reference(digest), name.Insecure)
	s.check(err)
	descriptor, err := remote.Get(from, remote.WithContext(s.t.Context()))
	s.check(err)
	to, err := name.NewTag(s.repository()+":"+tag, name.Insecure)
	s.check(err)
	s.check(remote.Tag(to, descriptor, remote.WithContext(s.t.Context())))
}

// signKey signs a digest with a key.
func (s *stage) signKey(digest string, key cosigncli.Key, layout cosigncli.Layout) {
	s.t.Helper()
	s.check(s.stack.Sigstore.SignKey(s.t.Context(), s.reference(digest), key, layout))
}

package build

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFindRoot(t *testing.T) {
	t.Parallel()
	repository := t.TempDir()
	stack := filepath.Join(repository, "test", "stack")
	write(t, filepath.Join(stack, "kubernetes", "go.mod"), "module stack/kubernetes\n")
	write(t, filepath.Join(repository, "gate", "deep", "file"), "")
	for _, dir := range []string{repository, filepath.Join(repository, "gate", "deep"), stack} {
		if got, err := FindRoot(dir); err != nil || got != stack {
			t.Errorf("from %s: %q, %v, want %q", dir, got, err, stack)
		}
	}
	if got, err := FindRoot(t.TempDir()); err == nil || !strings.Contains(err.Error(), "run inside the repository") {
		t.Errorf("outside a repository: %q, %v", got, err)
	}
}

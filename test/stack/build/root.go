package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// rootMarker is a file, relative to the repository, that only the stack has.
var rootMarker = filepath.Join("test", "stack", "kubernetes", "go.mod")

// FindRoot returns the directory of the stack (test/stack of the repository
// that dir lies in). It looks upwards from dir, so it works from every test's
// working directory and does not depend on paths compiled into the program.
func FindRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot make %s absolute: %w", dir, err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		_, err := os.Stat(filepath.Join(at, rootMarker))
		if err == nil {
			return filepath.Join(at, "test", "stack"), nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("cannot look for the stack: %w", err)
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no %s in %s or above it: run inside the repository", rootMarker, dir)
		}
	}
}

package localsigstore_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// processesNaming returns the command lines of the running processes that name
// text, as the services name their Sigstore's directory.
func processesNaming(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), text) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

func noProcessNames(t *testing.T, dir string) {
	t.Helper()
	if left := processesNaming(t, dir); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
}

// residentKiB returns the resident memory of a process.
func residentKiB(tb testing.TB, pid int) int {
	tb.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		tb.Fatal(err)
	}
	return kib
}

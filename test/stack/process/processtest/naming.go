// Package processtest finds the processes that a test must not leave behind. It
// is for Linux.
package processtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Naming returns the command lines of the running processes that name text, as
// the programs of the stack name their directory.
func Naming(tb testing.TB, text string) []string {
	tb.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		tb.Fatal(err)
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

// NoneNames fails the test for every process that names text.
func NoneNames(tb testing.TB, text string) {
	tb.Helper()
	if left := Naming(tb, text); len(left) > 0 {
		tb.Errorf("left running: %q", left)
	}
}

package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// hello is a component of a stack that newBuilder writes.
var hello = Component{
	Name: "hello", Family: "greetings", Package: "./hello",
	VersionVariable: "main.version", VersionModule: "example.com/greeting",
}

const helloSource = `package main

import "fmt"

var version = "unset"

func main() { fmt.Println("hello", version) }
`

// newBuilder returns a builder of a small stack, and the lines that it logs.
func newBuilder(t *testing.T) (*Builder, func() []string) {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "greetings", "go.mod"), `module stack/greetings

go 1.26.0

require example.com/greeting v1.2.3

replace example.com/greeting => ./greeting
`)
	write(t, filepath.Join(root, "greetings", "go.sum"), "")
	write(t, filepath.Join(root, "greetings", "greeting", "go.mod"), "module example.com/greeting\n")
	write(t, filepath.Join(root, "greetings", "hello", "main.go"), helloSource)
	var mu sync.Mutex
	var lines []string
	b := &Builder{Root: root, Cache: filepath.Join(t.TempDir(), "bin"), Logf: func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fmt.Sprintf(format, args...))
	}}
	return b, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return lines
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func count(lines []string, text string) int {
	n := 0
	for _, l := range lines {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

func TestBinary(t *testing.T) {
	t.Parallel()
	b, log := newBuilder(t)
	path, err := b.binary(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path).Output()
	if got, want := string(out), "hello v1.2.3\n"; err != nil || got != want {
		t.Errorf("the program says %q, %v, want %q", got, err, want)
	}
	r, err := ReadRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	if r.Component != "hello" || r.Bytes == 0 || r.Seconds <= 0 || r.CPUSeconds <= 0 {
		t.Errorf("incomplete record %+v", r)
	}

	again, err := b.binary(t.Context(), hello)
	if err != nil || again != path {
		t.Errorf("second call: %q, %v, want %q", again, err, path)
	}
	if n := count(log(), "hello: built in"); n != 1 {
		t.Errorf("built %d times, want once: %q", n, log())
	}

	// Everything that decides the bytes is in the key.
	seen := map[string]string{path: "the first build"}
	for what, change := range map[string]func(){
		"source": func() {
			write(t, filepath.Join(b.Root, "greetings", "hello", "main.go"), helloSource+"// Changed.\n")
		},
		"go.sum": func() { write(t, filepath.Join(b.Root, "greetings", "go.sum"), "\n") },
	} {
		change()
		changed, err := b.binary(t.Context(), hello)
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := seen[changed]; ok {
			t.Errorf("a changed %s has the key of %s", what, before)
		}
		seen[changed] = "a changed " + what
	}
}

func TestBinaryConcurrently(t *testing.T) {
	t.Parallel()
	b, log := newBuilder(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			other := *b // as another process would have
			if _, err := other.binary(t.Context(), hello); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := count(log(), "hello: built in"); n != 1 {
		t.Errorf("built %d times, want once: %q", n, log())
	}
	entries, err := os.ReadDir(b.Cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			t.Errorf("left in the cache: %s", e.Name())
		}
	}
}

func TestBinaryFails(t *testing.T) {
	t.Parallel()
	t.Run("does not compile", func(t *testing.T) {
		t.Parallel()
		b, _ := newBuilder(t)
		write(t, filepath.Join(b.Root, "greetings", "hello", "main.go"), "package main\n\nfunc main() { undefined() }\n")
		_, err := b.binary(t.Context(), hello)
		if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
			t.Errorf("got %v, want the compiler's message", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		b, _ := newBuilder(t)
		p, err := newPlan(t.Context(), b.Root, hello)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(b.Cache, 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.build(ctx, hello, p, b.target(hello, p)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if exists(b.target(hello, p)) {
			t.Error("a cancelled build is in the cache")
		}
	})
	t.Run("cancelled while waiting", func(t *testing.T) {
		t.Parallel()
		b, log := newBuilder(t)
		p, err := newPlan(t.Context(), b.Root, hello)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(b.Cache, 0o755); err != nil {
			t.Fatal(err)
		}
		release, err := lock(t.Context(), b.target(hello, p)+".lock", func() {})
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		ctx, cancel := context.WithCancel(t.Context())
		logf := b.Logf
		b.Logf = func(format string, args ...any) { logf(format, args...); cancel() }
		if _, err := b.binary(ctx, hello); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if n := count(log(), "another process is building it"); n != 1 {
			t.Errorf("said %d times that it waits, want once", n)
		}
	})
	t.Run("no such component", func(t *testing.T) {
		t.Parallel()
		b, _ := newBuilder(t)
		if _, err := b.Binary(t.Context(), "minikube"); err == nil || !strings.Contains(err.Error(), "kube-apiserver") {
			t.Errorf("got %v, want an error that names the components", err)
		}
	})
}

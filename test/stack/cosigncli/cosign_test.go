package cosigncli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// script returns a Cosign whose program is a shell script. What the real one
// does is tested in package localsigstore.
func script(t *testing.T, text string) *Cosign {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cosign")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Cosign{Path: path, Home: filepath.Join(t.TempDir(), "home")}
}

func TestEnvironment(t *testing.T) {
	// What a person or a CI job may have; none of it may reach cosign.
	t.Setenv("COSIGN_REPOSITORY", "elsewhere.test/signatures")
	t.Setenv("SIGSTORE_ID_TOKEN", "ambient")
	t.Setenv("DOCKER_CONFIG", "/nonexistent")
	t.Setenv("TMPDIR", t.TempDir())
	c := script(t, "env")
	c.Env = []string{"ACTIONS_ID_TOKEN_REQUEST_TOKEN=job"}
	out, err := c.Run(t.Context(), "version")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(out.Stdout) {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "PWD", "OLDPWD", "SHLVL", "_": // the shell's own
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	want := []string{"ACTIONS_ID_TOKEN_REQUEST_TOKEN", "COSIGN_PASSWORD", "HOME", "PATH", "TMPDIR"}
	if !slices.Equal(names, want) {
		t.Errorf("got the variables %q, want %q", names, want)
	}
	if !strings.Contains(out.Stdout, "HOME="+c.Home+"\n") {
		t.Errorf("the home is not %s: %s", c.Home, out.Stdout)
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	c := script(t, "echo said; echo why >&2; exit 5")
	token := strings.Repeat("secret", 100)
	out, err := c.Run(t.Context(), "sign", "--identity-token", token, "reference")
	var failure *Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if want := (Output{Stdout: "said\n", Stderr: "why\n"}); out != want || failure.Output != want {
		t.Errorf("got %+v and in the error %+v, want %+v", out, failure.Output, want)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 5 {
		t.Errorf("got %v, want exit status 5", err)
	}
	if text := err.Error(); strings.Contains(text, token) || !strings.Contains(text, "reference") || !strings.Contains(text, "why") {
		t.Errorf("the error's text: %s", text)
	}

	c.Path = filepath.Join(t.TempDir(), "nothing")
	if _, err := c.Run(t.Context(), "version"); !errors.Is(err, os.ErrNotExist) || errors.As(err, &failure) {
		t.Errorf("no program: got %v", err)
	}
}

func TestRunIsStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := script(t, "exec sleep 1000").Run(ctx, "sign")
	var failure *Error
	if !errors.As(err, &failure) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
}

func TestGenerateKeyRefuses(t *testing.T) {
	t.Parallel()
	c, dir := script(t, "exit 0"), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old.pub"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.GenerateKey(t.Context(), dir, "old"); err == nil {
		t.Error("a key was overwritten")
	}
	key, err := c.GenerateKey(t.Context(), dir, "new")
	if want := (Key{Private: filepath.Join(dir, "new.key"), Public: filepath.Join(dir, "new.pub")}); err != nil || key != want {
		t.Errorf("got %+v, %v, want %+v", key, err, want)
	}
}

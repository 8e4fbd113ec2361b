// Package container_test builds the action's image from the Dockerfile and runs
// it as the runner of GitHub Actions runs an action's container. It needs root
// and buildah: make container-smoke prepares both, and sets CONTAINER_SMOKE.
package container_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// repository is the root of the repository.
const repository = "../.."

// engine is buildah with a store of its own, which goes with the tests.
type engine struct{ dir string }

// shared is the image under test and a container of it, made once.
var shared struct {
	once   sync.Once
	engine *engine
	image  *image
	err    error
}

func TestMain(m *testing.M) {
	if os.Args[0] == redirector {
		fmt.Fprintln(os.Stderr, redirect(os.Args[1:]))
		os.Exit(127)
	}
	status := m.Run()
	if shared.engine != nil {
		if err := shared.engine.remove(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = max(status, 1)
		}
	}
	os.Exit(status)
}

// theImage builds the image on the first call.
func theImage(t *testing.T) *image {
	t.Helper()
	if os.Getenv("CONTAINER_SMOKE") == "" {
		t.Skip("run make container-smoke: it needs root and buildah, and installs buildah")
	}
	shared.once.Do(func() {
		if shared.engine, shared.err = newEngine(); shared.err == nil {
			shared.image, shared.err = build(t, shared.engine)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.image
}

func newEngine() (*engine, error) {
	dir, err := os.MkdirTemp("", "flux-verify-gate-container-")
	if err != nil {
		return nil, err
	}
	return &engine{dir: dir}, nil
}

// command is a call of buildah. Storage and isolation are those that need no
// kernel feature beyond root's chroot and mounts.
func (e *engine) command(ctx context.Context, args ...string) *exec.Cmd {
	all := append([]string{"--root", filepath.Join(e.dir, "store"), "--runroot", filepath.Join(e.dir, "run"), "--storage-driver", "vfs"}, args...)
	cmd := exec.CommandContext(ctx, "buildah", all...)
	cmd.Env = append(os.Environ(), "BUILDAH_ISOLATION=chroot")
	return cmd
}

// do runs buildah and gives what it printed, without the last line break.
func (e *engine) do(ctx context.Context, args ...string) (string, error) {
	cmd := e.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("buildah %s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return strings.TrimRight(stdout.String(), "\n"), nil
}

// remove removes the store, but never through a mount that is left in it: the
// build mounts the caches of Go.
func (e *engine) remove() error {
	if _, err := e.do(context.Background(), "rm", "--all"); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], e.dir+"/") {
			return fmt.Errorf("expected no mount below %s, found %s: unmount it and remove the folder", e.dir, fields[4])
		}
	}
	return os.RemoveAll(e.dir)
}

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"flux-verify-gate/test/stack/process/processtest"
)

// TestUpAndDown brings a stack up in the background, looks around with the
// environment that it leaves, and takes it down; then kills a supervisor, which
// can do nothing for its children.
func TestUpAndDown(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	program := filepath.Join(t.TempDir(), "stack")
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, output)
	}
	dir := filepath.Join(t.TempDir(), "running")
	stack := func(args ...string) (string, error) {
		output, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
		return string(output), err
	}
	t.Cleanup(func() {
		if pid, running := supervisor(dir); running {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})

	up := func() {
		t.Helper()
		output, err := stack("up", "-detach", "-dir", dir)
		if err != nil || !strings.Contains(output, "The stack is ready") {
			t.Fatalf("up: %v: %s", err, output)
		}
	}
	up()
	if output, err := stack("up", "-detach", "-dir", dir); err == nil || !strings.Contains(output, "a stack is running in "+dir) {
		t.Errorf("a second up: %v: %s", err, output)
	}
	look := exec.CommandContext(ctx, "sh", "-ec", `. "$1/environment"
$KUBECTL get --raw /apis/source.toolkit.fluxcd.io/v1
mkdir "$1/keys"; echo 'kind: ConfigMap' > "$1/keys/a.yaml"
reference=$($FLUXPUSH -revision main@sha1:0123456789abcdef0123456789abcdef01234567 $REGISTRY/acme/platform:v1 "$1/keys")
$COSIGN sign --yes --signing-config $SIGNING_CONFIG --trusted-root $TRUSTED_ROOT "$reference"
$COSIGN verify --trusted-root $TRUSTED_ROOT --certificate-oidc-issuer https://token.actions.githubusercontent.com \
  --certificate-identity https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main "$reference"`, "sh", dir)
	look.Env = append(os.Environ(), "HOME="+t.TempDir())
	if output, err := look.CombinedOutput(); err != nil || !strings.Contains(string(output), `"name":"ocirepositories"`) {
		t.Errorf("looking around: %v: %s", err, output)
	}
	if output, err := stack("down", "-dir", dir); err != nil || !strings.Contains(output, "the stack is down") {
		t.Errorf("down: %v: %s", err, output)
	}
	processtest.NoneNames(t, dir)
	if output, err := stack("down", "-dir", dir); err != nil || !strings.Contains(output, "no stack is running") {
		t.Errorf("down again: %v: %s", err, output)
	}
	if _, err := os.Stat(filepath.Join(dir, "source-controller", "log")); err != nil {
		t.Errorf("the logs were not kept: %v", err)
	}

	up()
	pid, _ := supervisor(dir)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(processtest.Naming(t, dir)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("left running by a killed supervisor: %q", processtest.Naming(t, dir))
		}
	}
}

// A directory with other things in it is not emptied.
func TestUpRefusesAnotherDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := empty(dir); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("got %v, want an error that names the file", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "thesis.txt")); err != nil {
		t.Error(err)
	}
}

package container_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// redirector is the name under which this test's own program, linked statically,
// stands in the container. It makes a file out of stdout and stderr and becomes
// the command that it is given, so that nothing between the command and the test
// can hold output back.
const redirector = "/redirect"

// redirectLog is that file, in the container.
const redirectLog = "/redirect.log"

// redirect replaces this process by the command in args. It returns only what
// went wrong.
func redirect(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("expected a command, found none")
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	log, err := os.OpenFile(redirectLog, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	for _, descriptor := range []int{1, 2} {
		if err := syscall.Dup3(int(log.Fd()), descriptor, 0); err != nil {
			return err
		}
	}
	return syscall.Exec(program, args, os.Environ())
}

// prepare makes the call of buildah that runs a command in the container, and
// gives the file that will hold what the command prints.
func (i *image) prepare(ctx context.Context, t *testing.T, options []string, command ...string) (cmd *exec.Cmd, log string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log = filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"run", "--volume", program + ":" + redirector + ":ro", "--volume", log + ":" + redirectLog}, options...)
	args = append(args, i.container, "--", redirector)
	return i.command(ctx, append(args, command...)...), log
}

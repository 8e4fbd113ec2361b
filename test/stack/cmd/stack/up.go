package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"flux-verify-gate/test/stack"
	"flux-verify-gate/test/stack/build"
	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/githubtoken"
)

// The files of a running stack, in its directory.
const (
	pidFile    = "supervisor.pid"
	logFile    = "supervisor.log"
	envFile    = "environment" // written when everything is ready
	kubeconfig = "kubeconfig"
)

// downTimeout bounds the orderly end: every program has ten seconds.
const downTimeout = time.Minute

// up runs a stack until the context ends, or in the background with -detach.
func up(ctx context.Context, b *build.Builder, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("dir", "", "keep everything in this `directory`, which is emptied first")
	line := flags.String("line", stack.Lines()[0].Name, "the minor `version` of source-controller")
	detach := flags.Bool("detach", false, "return when the stack is ready, and leave it running")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" || flags.NArg() > 0 {
		return errors.New(usage)
	}
	chosen, err := stack.LineCalled(*line)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(*dir)
	if err != nil {
		return fmt.Errorf("cannot make the stack's directory absolute: %w", err)
	}
	if pid, running := supervisor(path); running {
		return fmt.Errorf("a stack is running in %s (process %d): stop it first (stack down -dir %s)", path, pid, *dir)
	}
	if *detach {
		// In the foreground, so that a first build is seen.
		if err := buildAll(ctx, b, append(chosen.Components(), "kubectl"), io.Discard, stderr); err != nil {
			return err
		}
		if err := empty(path); err != nil {
			return err
		}
		return detached(ctx, path, chosen, stdout)
	}
	if err := empty(path); err != nil {
		return err
	}
	return supervise(ctx, path, chosen, stdout, stderr)
}

// supervise is the supervisor: every program of the stack is its child and dies
// with it.
func supervise(ctx context.Context, dir string, line stack.Line, stdout, stderr io.Writer) (err error) {
	if err := os.WriteFile(filepath.Join(dir, pidFile), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return fmt.Errorf("cannot write down the supervisor: %w", err)
	}
	defer os.Remove(filepath.Join(dir, pidFile))
	s, err := stack.Start(ctx, stack.Options{Dir: dir, Line: line, Logf: func(format string, args ...any) {
		fmt.Fprintf(stderr, format+"\n", args...)
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := furnish(ctx, s); err != nil {
		return err
	}
	fmt.Fprintln(stdout, lookAround(dir))
	<-ctx.Done()
	return nil
}

// furnish makes what a person needs: a namespace, a kubeconfig, and the
// environment of a shell. That file is written last: it says that all is ready.
func furnish(ctx context.Context, s *stack.Stack) error {
	if _, err := s.Cluster.Apply(ctx, "stack", strings.NewReader("apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n")); err != nil {
		return err
	}
	if err := cluster.WriteKubeconfig(s.Path(kubeconfig), s.Cluster.Kubeconfig(s.Cluster.Admin())); err != nil {
		return err
	}
	url, token, err := s.Sigstore.Tokens().Job(githubtoken.Claims{})
	if err != nil {
		return err
	}
	variables := [][2]string{
		{"KUBECONFIG", s.Path(kubeconfig)},
		{"REGISTRY", s.Registry.Address()},
		{"TRUSTED_ROOT", s.Sigstore.TrustedRoot()},
		{"SIGNING_CONFIG", s.Sigstore.SigningConfig()},
		// A push to main of acme/platform, in cd.yaml: cosign takes it from here.
		{"ACTIONS_ID_TOKEN_REQUEST_URL", url},
		{"ACTIONS_ID_TOKEN_REQUEST_TOKEN", token},
	}
	for _, name := range []string{"kubectl", "cosign", "fluxpush"} {
		path, err := s.Program(ctx, name)
		if err != nil {
			return err
		}
		variables = append(variables, [2]string{strings.ToUpper(name), path})
	}
	var text strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&text, "export %s='%s'\n", v[0], v[1])
	}
	ready := s.Path(envFile)
	if err := os.WriteFile(ready+".new", []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("cannot write the environment: %w", err)
	}
	return os.Rename(ready+".new", ready)
}

// lookAround says what to do with a stack that is ready.
func lookAround(dir string) string {
	return fmt.Sprintf(`The stack is ready. Its kubeconfig is %[1]s/kubeconfig, its logs are below %[1]s.

  . %[1]s/environment
  $KUBECTL get ocirepositories --all-namespaces
  reference=$($FLUXPUSH -revision main@sha1:$(git rev-parse HEAD) $REGISTRY/acme/platform:v1 examples)
  $COSIGN sign --yes --signing-config $SIGNING_CONFIG --trusted-root $TRUSTED_ROOT $reference
  $KUBECTL -n flux-system create secret generic sigstore-root --from-file=trusted_root.json=$TRUSTED_ROOT
  go run . suggest --required-signers @examples/recorded/signers.yaml --trusted-root $TRUSTED_ROOT

An OCIRepository here needs insecure: true, and its spec.verify a trustedRootSecretRef with the name
sigstore-root. The gate looks at it with

  go run . --required-signers @examples/recorded/signers.yaml --trusted-root $TRUSTED_ROOT --digest ${reference#*@}

cosign signs there as https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main. To end all of it: make stack-down.`, dir)
}

// detached starts the supervisor as a process of its own and returns when the
// stack is ready.
func detached(ctx context.Context, dir string, line stack.Line, stdout io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program to start it again: %w", err)
	}
	log, err := os.Create(filepath.Join(dir, logFile))
	if err != nil {
		return fmt.Errorf("cannot make the supervisor's log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(self, "up", "-dir", dir, "-line", line.Name)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the supervisor: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		if _, err := os.Stat(filepath.Join(dir, envFile)); err == nil {
			fmt.Fprintln(stdout, lookAround(dir))
			return nil
		}
		select {
		case err := <-ended:
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("the stack did not start (%v):\n%s", err, text)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), cmd.Process.Signal(syscall.SIGTERM))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// down ends a stack that runs in the background and returns when nothing of it
// is left. That none runs is no error.
func down(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("dir", "", "the stack's `directory`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" || flags.NArg() > 0 {
		return errors.New(usage)
	}
	pid, running := supervisor(*dir)
	if !running {
		fmt.Fprintln(stdout, "no stack is running in "+*dir)
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("cannot stop the supervisor, process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	for {
		if _, running := supervisor(*dir); !running {
			fmt.Fprintln(stdout, "the stack is down; its logs are below "+*dir)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the supervisor, process %d, is still there: %w; see %s", pid, ctx.Err(), filepath.Join(*dir, logFile))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// supervisor returns the process that runs the stack of a directory.
func supervisor(dir string) (pid int, running bool) {
	text, err := os.ReadFile(filepath.Join(dir, pidFile))
	if err != nil {
		return 0, false
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return 0, false
	}
	// A file that a killed supervisor has left names nobody, or somebody else.
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if errors.Is(err, os.ErrNotExist) {
		return pid, syscall.Kill(pid, 0) == nil && !procExists()
	}
	return pid, err == nil && strings.Contains(string(command), "\x00up\x00")
}

// procExists says whether processes can be looked up by their command, as on
// Linux.
func procExists() bool {
	_, err := os.Stat("/proc/self/cmdline")
	return err == nil
}

// empty makes a directory with nothing in it. It refuses one that holds
// something else than an earlier stack.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot read the stack's directory: %w", err)
	}
	for _, entry := range entries {
		switch entry.Name() {
		case pidFile, logFile, envFile, kubeconfig, "cluster", "sigstore", "registry", "source-controller", "kustomize-controller", "keys":
		default:
			return fmt.Errorf("expected %s to be empty or an earlier stack's, found %s in it: choose another directory", dir, entry.Name())
		}
	}
	for _, entry := range entries {
		if entry.Name() == logFile { // the detached supervisor writes to it
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("cannot empty the stack's directory: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the stack's directory: %w", err)
	}
	return nil
}

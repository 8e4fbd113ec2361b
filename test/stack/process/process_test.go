package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// start runs a shell script and returns once the script has written "ready".
func start(t *testing.T, script string, config Config) *Process {
	t.Helper()
	dir := t.TempDir()
	config.Name, config.Path, config.Args = "script", "/bin/sh", []string{"-c", script}
	config.Log, config.Dir = filepath.Join(dir, "log"), dir
	p, err := Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	for {
		data, err := os.ReadFile(config.Log)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "ready\n") {
			return p
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the script is not ready")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// gone says whether no process of the group is left.
func gone(p *Process) bool { return errors.Is(syscall.Kill(-p.PID(), 0), syscall.ESRCH) }

func TestStop(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		config Config
		want   string // in the error
	}{
		"obedient":        {script: `echo ready; exec sleep 1000`},
		"with the answer": {script: `trap 'echo stopped >stopped; exit 0' TERM; echo ready; while :; do sleep 0.01; done`},
		"stubborn": {
			script: `trap '' TERM; echo ready; exec sleep 1000`,
			config: Config{Grace: 50 * time.Millisecond}, want: "did not end within 50ms of SIGTERM and was killed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, test.script, test.config)
			if err := p.Failure(); err != nil {
				t.Errorf("while it runs: %v", err)
			}
			err := p.Stop()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("stop: got %v, want %q", err, test.want)
			}
			select {
			case <-p.Done():
			default:
				t.Error("stop returned before the process was gone")
			}
			if !gone(p) {
				t.Error("the process is still there")
			}
		})
	}
}

func TestEndedByItself(t *testing.T) {
	t.Parallel()
	p := start(t, `echo ready; echo "what went wrong: $REASON"; exit 3`, Config{Env: []string{"REASON=everything"}})
	<-p.Done()
	for what, err := range map[string]error{"failure": p.Failure(), "stop": p.Stop()} {
		if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "what went wrong: everything") {
			t.Errorf("%s: got %v, want the status and the log", what, err)
		}
	}
	if err := p.Kill(); err != nil {
		t.Errorf("kill: %v", err)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	if _, err := Start(Config{Name: "nothing", Path: "/nonexistent", Log: filepath.Join(t.TempDir(), "log")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: got %v", err)
	}
	if _, err := Start(Config{Name: "nothing", Path: "/bin/sh", Log: "/nonexistent/log"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no log: got %v", err)
	}
}

func TestRunIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `trap 'echo cleaned up; exit 1' INT; echo ready; while :; do sleep 0.01; done`)
	var out strings.Builder
	cmd.Stdout = writer(func(p []byte) (int, error) {
		cancel()
		return out.Write(p)
	})
	if err := Run(cmd); err == nil {
		t.Error("no error")
	}
	if !strings.Contains(out.String(), "cleaned up") {
		t.Errorf("the command was not given the time to clean up: %q", out.String())
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Config says what to run.
type Config struct {
	// Name is what errors call the process.
	Name string
	// Path is the program's file, absolute.
	Path string
	// Args are its arguments, without its own name.
	Args []string
	// Env is added to this process's environment, as NAME=value.
	Env []string
	// Dir is its working directory; empty means this process's.
	Dir string
	// Log is the file that its output is appended to.
	Log string
	// Grace is how long Stop waits between SIGTERM and SIGKILL; zero means ten
	// seconds.
	Grace time.Duration
}

const defaultGrace = 10 * time.Second

// Process is a started program. Its methods may be called from several
// goroutines.
type Process struct {
	config Config
	cmd    *exec.Cmd
	done   chan struct{}
	err    error // how it ended; read after done
}

// Start starts the program. It dies with SIGKILL when this process dies.
func Start(config Config) (*Process, error) {
	if config.Grace == 0 {
		config.Grace = defaultGrace
	}
	log, err := os.OpenFile(config.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log of %s: %w", config.Name, err)
	}
	cmd := exec.Command(config.Path, config.Args...)
	cmd.Env = append(os.Environ(), config.Env...)
	cmd.Dir = config.Dir
	cmd.Stdout, cmd.Stderr = log, log
	tie(cmd, syscall.SIGKILL)

	p := &Process{config: config, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// This goroutine keeps the starting thread for itself until the child
		// has ended: a thread that the Go runtime retires would kill the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
		log.Close()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", config.Name, err)
	}
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended and its
// ports are free again.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop ends the process: SIGTERM, then, after the grace, SIGKILL. It returns
// when the process is gone. A process that had ended by itself, or had to be
// killed, is an error; the process is gone all the same.
func (p *Process) Stop() error {
	select {
	case <-p.done:
		return p.failure("ended by itself")
	default:
	}
	if err := signalGroup(p.PID(), syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop %s: %w", p.config.Name, err)
	}
	timer := time.NewTimer(p.config.Grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	if err := p.Kill(); err != nil {
		return err
	}
	return p.failure(fmt.Sprintf("did not end within %s of SIGTERM and was killed", p.config.Grace))
}

// Kill ends the process with SIGKILL, as a crash would, and returns when it is
// gone. A process that is gone already is no error.
func (p *Process) Kill() error {
	select {
	case <-p.done: // its id may belong to another process by now
		return nil
	default:
	}
	if err := signalGroup(p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill %s: %w", p.config.Name, err)
	}
	<-p.done
	return nil
}

// Failure returns nil while the process runs, and afterwards an error with the
// end of its log.
func (p *Process) Failure() error {
	select {
	case <-p.done:
		return p.failure("ended by itself")
	default:
		return nil
	}
}

func (p *Process) failure(what string) error {
	status := "exit status 0"
	if p.err != nil {
		status = p.err.Error()
	}
	return fmt.Errorf("%s %s (%s); the end of %s:\n%s", p.config.Name, what, status, p.config.Log, logEnd(p.config.Log))
}

// logEnd returns the last lines of a log, at most 4 KiB, or why it cannot.
func logEnd(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	if len(data) > 4096 {
		data = data[len(data)-4096:]
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			data = data[i+1:]
		}
	}
	return data
}

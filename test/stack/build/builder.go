package build

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"flux-verify-gate/test/stack/process"
)

// progressInterval is the longest silence of a running build.
const progressInterval = 15 * time.Second

// Builder builds components into a cache directory. Its fields are not changed
// after the first call; then it is safe for concurrent use.
type Builder struct {
	// Root is the directory of the stack; see FindRoot.
	Root string
	// Cache is the directory that the programs are kept in.
	Cache string
	// Nice is added to the niceness of the go command (0 to 19), where the
	// system has the program nice.
	Nice int
	// Logf, when set, is told what is being built: when it starts, at least
	// every 15 seconds, and when it ends.
	Logf func(format string, args ...any)
}

// New returns a Builder for the stack that the working directory lies in, with
// the user's cache directory: flux-verify-gate/bin below os.UserCacheDir.
func New(logf func(format string, args ...any)) (*Builder, error) {
	root, err := FindRoot(".")
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no cache directory for the stack's programs: %w", err)
	}
	return &Builder{Root: root, Cache: filepath.Join(cache, "flux-verify-gate", "bin"), Logf: logf}, nil
}

// Record is what is written down about a build, in JSON beside the program.
type Record struct {
	// Component is the name of the component.
	Component string `json:"component"`
	// Seconds is how long the go command ran.
	Seconds float64 `json:"seconds"`
	// CPUSeconds is the user and system time of the go command and everything
	// it ran. With a warm Go build cache it is little more than the linker's.
	CPUSeconds float64 `json:"cpuSeconds"`
	// Bytes is the size of the program.
	Bytes int64 `json:"bytes"`
}

// Binary returns the path of the component called name and builds it first if
// the cache does not hold it. Errors: no such component, a failed build (with
// the end of the go command's output), and the context's.
func (b *Builder) Binary(ctx context.Context, name string) (string, error) {
	c, err := Lookup(name)
	if err != nil {
		return "", err
	}
	return b.binary(ctx, c)
}

func (b *Builder) binary(ctx context.Context, c Component) (string, error) {
	p, err := newPlan(ctx, b.Root, c)
	if err != nil {
		return "", err
	}
	target := b.target(c, p)
	if exists(target) {
		return target, nil
	}
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the cache of the stack's programs: %w", err)
	}
	release, err := lock(ctx, target+".lock", func() {
		b.logf("%s: another process is building it, waiting", c.Name)
	})
	if err != nil {
		return "", err
	}
	defer release()
	if exists(target) { // built by the process that held the lock
		return target, nil
	}
	if err := b.build(ctx, c, p, target); err != nil {
		return "", err
	}
	return target, nil
}

// Cached returns the path of the component called name, and false if the cache
// does not hold it. It builds nothing.
func (b *Builder) Cached(ctx context.Context, name string) (string, bool, error) {
	c, err := Lookup(name)
	if err != nil {
		return "", false, err
	}
	p, err := newPlan(ctx, b.Root, c)
	if err != nil {
		return "", false, err
	}
	target := b.target(c, p)
	return target, exists(target), nil
}

// ReadRecord returns what was written down when the program at path, as
// returned by Binary, was built.
func ReadRecord(path string) (Record, error) {
	data, err := os.ReadFile(path + ".json")
	if err != nil {
		return Record{}, fmt.Errorf("no record of the build of %s: %w", path, err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("the record of the build of %s is not valid: %w", path, err)
	}
	return r, nil
}

func (b *Builder) target(c Component, p plan) string {
	return filepath.Join(b.Cache, c.Name+"-"+p.key)
}

// build runs the go command and puts its result at target by a rename, so that
// no reader ever sees half a program. The caller holds the lock of target.
func (b *Builder) build(ctx context.Context, c Component, p plan, target string) error {
	temp, err := os.MkdirTemp(b.Cache, "."+c.Name+"-")
	if err != nil {
		return fmt.Errorf("cannot make a directory for the build of %s: %w", c.Name, err)
	}
	defer os.RemoveAll(temp)
	logFile := target + ".log"
	log, err := os.Create(logFile)
	if err != nil {
		return fmt.Errorf("cannot make the build log of %s: %w", c.Name, err)
	}
	defer log.Close()

	out := filepath.Join(temp, c.Name)
	cmd := b.command(ctx, append(p.args, "-o", out, c.Package))
	cmd.Dir = p.dir
	cmd.Env = goEnviron()
	cmd.Stdout, cmd.Stderr = log, log

	b.logf("%s: building; about %d CPU seconds if the Go build cache is cold (log: %s)", c.Name, c.ColdCPU, logFile)
	start := time.Now()
	stop := b.progress(c.Name, start)
	err = process.Run(cmd)
	stop()
	if ctx.Err() != nil {
		return fmt.Errorf("the build of %s was stopped after %s: %w", c.Name, since(start), ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("cannot build %s: %w\n%s\n(all of it: %s)", c.Name, err, tail(logFile, 4096), logFile)
	}
	info, err := os.Stat(out)
	if err != nil {
		return fmt.Errorf("the go command left no %s: %w", c.Name, err)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	record := Record{
		Component: c.Name, Seconds: time.Since(start).Seconds(), CPUSeconds: cpu.Seconds(), Bytes: info.Size(),
	}
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("cannot write down the build of %s: %w", c.Name, err)
	}
	if err := os.WriteFile(target+".json", append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write down the build of %s: %w", c.Name, err)
	}
	if err := os.Rename(out, target); err != nil {
		return fmt.Errorf("cannot put %s into the cache: %w", c.Name, err)
	}
	b.logf("%s: built in %s (%.0f CPU seconds, %.1f MB)", c.Name, since(start), record.CPUSeconds, float64(record.Bytes)/1e6)
	return nil
}

// command returns the go command with args.
func (b *Builder) command(ctx context.Context, args []string) *exec.Cmd {
	if b.Nice > 0 {
		if nice, err := exec.LookPath("nice"); err == nil {
			return exec.CommandContext(ctx, nice, append([]string{"-n", strconv.Itoa(b.Nice), "go"}, args...)...)
		}
	}
	return exec.CommandContext(ctx, "go", args...)
}

// progress logs every 15 seconds until the returned function is called.
func (b *Builder) progress(name string, start time.Time) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				b.logf("%s: still building after %s", name, since(start))
			}
		}
	}()
	return func() { close(done); <-ended }
}

func (b *Builder) logf(format string, args ...any) {
	if b.Logf != nil {
		b.Logf(format, args...)
	}
}

func since(start time.Time) time.Duration { return time.Since(start).Round(time.Second) }

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// tail returns the last n bytes of a file, or why it cannot.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(data) > n {
		data = data[len(data)-n:]
	}
	return string(data)
}

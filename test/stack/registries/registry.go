// Package registries runs real OCI registries on the loopback interface.
package registries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"flux-verify-gate/test/stack/port"
	"flux-verify-gate/test/stack/process"
)

// startTimeout bounds the time until a registry is ready; it takes some
// milliseconds.
const startTimeout = time.Minute

// Kind is what a registry can do.
type Kind string

const (
	// Referrers is go-containerregistry's with the referrers API of OCI 1.1.
	Referrers Kind = "referrers"
	// Tags is the same without that API: clients fall back to a tag.
	Tags Kind = "tags"
	// Distribution is distribution v3, which stores on disk and has no
	// referrers API.
	Distribution Kind = "distribution"
)

// Component returns the name, in package build, of the program that a kind is.
func (k Kind) Component() string {
	if k == Distribution {
		return "distribution"
	}
	return "ociregistry"
}

// Options says how to run a registry.
type Options struct {
	Kind Kind
	// Program is the file of Kind's component.
	Program string
	// Dir is the directory for its log and what it stores.
	Dir string
}

// Registry is one registry process, and its address. Its methods may be called
// from several goroutines.
type Registry struct {
	options Options
	port    *port.Reservation

	mu      sync.Mutex
	process *process.Process
}

// Start runs a registry and returns when it answers. The caller must call Close;
// if this process dies before that, the registry dies with it.
func Start(ctx context.Context, options Options) (*Registry, error) {
	r := &Registry{options: options}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Registry) start(ctx context.Context) error {
	var err error
	if r.options.Dir, err = filepath.Abs(r.options.Dir); err != nil {
		return fmt.Errorf("cannot make the registry's directory absolute: %w", err)
	}
	if err := os.MkdirAll(r.options.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the registry's directory: %w", err)
	}
	if r.port, err = port.ReserveReusable(); err != nil {
		return err
	}
	return r.Restart(ctx)
}

// Restart stops the registry if it runs, and starts it under its address. Only
// Distribution has kept what was pushed.
func (r *Registry) Restart(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.stop(); err != nil {
		return err
	}
	args, err := r.args()
	if err != nil {
		return err
	}
	p, err := process.Start(process.Config{
		Name: "registry " + string(r.options.Kind), Path: r.options.Program, Args: args, Dir: r.options.Dir, Log: r.Log(),
		Env: []string{"OTEL_TRACES_EXPORTER=none"},
	})
	if err != nil {
		return err
	}
	r.process = p
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p.Ready(ctx, "http://"+r.Address()+"/v2/")
}

func (r *Registry) args() ([]string, error) {
	if r.options.Kind != Distribution {
		return []string{"-address", r.Address(), fmt.Sprintf("-referrers=%t", r.options.Kind == Referrers)}, nil
	}
	config := fmt.Sprintf("version: 0.1\nlog: {level: info}\nstorage:\n  filesystem: {rootdirectory: %q}\n  delete: {enabled: true}\nhttp: {addr: %q}\n",
		filepath.Join(r.options.Dir, "data"), r.Address())
	path := filepath.Join(r.options.Dir, "config.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the registry's configuration: %w", err)
	}
	return []string{"serve", path}, nil
}

// Stop ends the registry until Restart: connections to it are refused. A
// second call does nothing.
func (r *Registry) Stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop()
}

// Close ends the registry for good. A second call does nothing.
func (r *Registry) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.stop(), r.port.Release())
}

func (r *Registry) stop() error {
	if r.process == nil {
		return nil
	}
	p := r.process
	r.process = nil
	return p.Stop()
}

// Address returns 127.0.0.1:port. It stays the same when the registry restarts.
func (r *Registry) Address() string { return r.port.Address() }

// Log is the file that the registry logs to.
func (r *Registry) Log() string { return filepath.Join(r.options.Dir, "log") }

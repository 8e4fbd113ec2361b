// Package controller runs the real Flux controllers against a cluster.
package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/port"
	"flux-verify-gate/test/stack/process"
)

// startTimeout bounds the time until a controller is ready; it takes 0.2 to 2
// seconds.
const startTimeout = time.Minute

// ShardLabel is the label by which Flux shares objects out among controllers
// (Flux documentation, "Sharding").
const ShardLabel = "sharding.fluxcd.io/key"

// Options says how to run a controller.
type Options struct {
	// Name is what errors and files are called after.
	Name string
	// Program is the controller's file, as package build makes it.
	Program string
	// Cluster is where it works, as an administrator.
	Cluster *cluster.Cluster
	// Dir is the directory for its kubeconfig, log and storage.
	Dir string
	// Shard, when set, restricts it to objects with that value of ShardLabel;
	// when empty, to objects without that label.
	Shard string
	// Storage says that it serves artifacts (source-controller does).
	Storage bool
	// Env is added to the environment, as NAME=value.
	Env []string
	// Args are added to its flags.
	Args []string
}

// Controller is one controller process and what stays of it when it restarts:
// its addresses and its storage. Its methods may be called from several
// goroutines.
type Controller struct {
	options               Options
	health, metrics, file *port.Reservation

	mu      sync.Mutex
	process *process.Process
}

// Start runs a controller and returns when it is ready. The caller must call
// Close; if this process dies before that, the controller dies with it.
func Start(ctx context.Context, options Options) (*Controller, error) {
	c := &Controller{options: options}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Controller) start(ctx context.Context) error {
	var err error
	if c.options.Dir, err = filepath.Abs(c.options.Dir); err != nil {
		return fmt.Errorf("cannot make the directory of %s absolute: %w", c.options.Name, err)
	}
	if err := os.MkdirAll(c.options.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the directory of %s: %w", c.options.Name, err)
	}
	for _, p := range []**port.Reservation{&c.health, &c.metrics, &c.file} {
		if *p, err = port.ReserveReusable(); err != nil {
			return err
		}
	}
	credentials := c.options.Cluster.Kubeconfig(c.options.Cluster.Admin())
	if err := cluster.WriteKubeconfig(c.path("kubeconfig"), credentials); err != nil {
		return err
	}
	return c.Restart(ctx)
}

// Restart stops the controller if it runs, and starts it with the storage that
// it had.
func (c *Controller) Restart(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.stop(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.storage(), 0o700); err != nil {
		return fmt.Errorf("cannot make the storage of %s: %w", c.options.Name, err)
	}
	selector := "!" + ShardLabel
	if c.options.Shard != "" {
		selector = ShardLabel + "=" + c.options.Shard
	}
	args := []string{
		"--watch-all-namespaces", "--watch-label-selector=" + selector, "--enable-leader-election=false",
		"--log-level=debug", "--log-encoding=json", "--events-addr=", "--concurrent=8", "--interval-jitter-percentage=0",
		"--metrics-addr=" + c.metrics.Address(), "--health-addr=" + c.health.Address(),
		"--min-retry-delay=500ms", "--max-retry-delay=2s",
	}
	if c.options.Storage {
		args = append(args, "--storage-path="+c.storage(), "--storage-addr="+c.file.Address(), "--storage-adv-addr="+c.file.Address())
	}
	p, err := process.Start(process.Config{
		Name: c.options.Name, Path: c.options.Program, Args: append(args, c.options.Args...), Log: c.Log(), Dir: c.options.Dir,
		Env: append([]string{
			"KUBECONFIG=" + c.path("kubeconfig"), "RUNTIME_NAMESPACE=flux-system", "TUF_ROOT=" + c.path("tuf"),
			"HOME=" + c.options.Dir, "TMPDIR=" + c.storage(),
		}, c.options.Env...),
	})
	if err != nil {
		return err
	}
	c.process = p
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.Ready(ctx, "http://"+c.health.Address()+"/readyz"); err != nil {
		return errors.Join(err, c.stop())
	}
	return nil
}

// Stop ends the controller until Restart, and keeps its storage. A second call
// does nothing.
func (c *Controller) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stop()
}

// Close ends the controller for good and keeps its storage. A second call does
// nothing.
func (c *Controller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := errors.Join(c.stop(), c.health.Release(), c.metrics.Release(), c.file.Release())
	c.health, c.metrics, c.file = nil, nil, nil
	return err
}

func (c *Controller) stop() error {
	if c.process == nil {
		return nil
	}
	p := c.process
	c.process = nil
	return p.Stop()
}

// LoseStorage removes what a stopped controller has stored, as a restart with
// an emptyDir volume does.
func (c *Controller) LoseStorage() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil {
		return fmt.Errorf("expected %s to be stopped before its storage is removed, found it running", c.options.Name)
	}
	if err := os.RemoveAll(c.storage()); err != nil {
		return fmt.Errorf("cannot remove the storage of %s: %w", c.options.Name, err)
	}
	return nil
}

// Storage is the directory that artifacts are stored in.
func (c *Controller) Storage() string { return c.storage() }

// Log is the file that the controller logs to, in JSON.
func (c *Controller) Log() string { return c.path("log") }

func (c *Controller) storage() string { return c.path("storage") }

func (c *Controller) path(name string) string { return filepath.Join(c.options.Dir, name) }

// Package clustertest gives Go tests a real API server, built and started on
// the first use and gone with the test.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"flux-verify-gate/test/stack/build"
	"flux-verify-gate/test/stack/cluster"
)

// Start starts a cluster for one test and stops it at the test's end. Programs
// that options does not name are built, or taken from the cache; without a Dir
// a new directory is made, and removed at the end unless the test failed.
func Start(tb testing.TB, options cluster.Options) *cluster.Cluster {
	tb.Helper()
	if options.Logf == nil {
		options.Logf = tb.Logf
	}
	remove := func(bool) error { return nil }
	if options.Dir == "" {
		dir, err := os.MkdirTemp("", "flux-verify-gate-cluster-")
		if err != nil {
			tb.Fatalf("cannot make the cluster's directory: %v", err)
		}
		options.Dir, remove = dir, remover(dir, tb.Logf)
	}
	// The cleanup comes first: a start that fails has written logs.
	var c *cluster.Cluster
	tb.Cleanup(func() {
		if c != nil {
			if err := c.Stop(); err != nil {
				tb.Errorf("stop the cluster: %v", err)
			}
		}
		if err := remove(tb.Failed()); err != nil {
			tb.Error(err)
		}
	})
	var err error
	if c, err = start(tb.Context(), options); err != nil {
		tb.Fatal(err)
	}
	return c
}

// Shared is one cluster for all tests of a package, started by the first test
// that asks for it. The zero value is ready for use:
//
//	var shared clustertest.Shared
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
type Shared struct {
	// Options are the cluster's, as for Start.
	Options cluster.Options

	once    sync.Once
	cluster *cluster.Cluster
	err     error
	remove  func(failed bool) error
}

// Get returns the cluster. A cluster that cannot be started fails every test
// that asks for it.
func (s *Shared) Get(tb testing.TB) *cluster.Cluster {
	tb.Helper()
	s.once.Do(s.start)
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.cluster
}

func (s *Shared) start() {
	options := s.Options
	if options.Logf == nil {
		options.Logf = stderr
	}
	if options.Dir == "" {
		if options.Dir, s.err = os.MkdirTemp("", "flux-verify-gate-cluster-"); s.err != nil {
			return
		}
		s.remove = remover(options.Dir, options.Logf)
	}
	// Not a test's context: the cluster outlives the test that asked first.
	s.cluster, s.err = start(context.Background(), options)
}

// Main runs the package's tests, stops the cluster if one was started, and
// returns the exit status.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	var err error
	if s.cluster != nil {
		err = s.cluster.Stop()
	}
	if s.remove != nil {
		err = errors.Join(err, s.remove(code != 0 || err != nil))
	}
	if err != nil {
		stderr("%v", err)
		return max(code, 1)
	}
	return code
}

// start fills in the programs and starts the cluster.
func start(ctx context.Context, options cluster.Options) (*cluster.Cluster, error) {
	b, err := build.New(options.Logf)
	if err != nil {
		return nil, err
	}
	for name, path := range map[string]*string{"etcd": &options.Etcd, "kube-apiserver": &options.APIServer} {
		if *path != "" {
			continue
		}
		if *path, err = b.Binary(ctx, name); err != nil {
			return nil, err
		}
	}
	return cluster.Start(ctx, options)
}

// remover returns a function that removes dir, or after a failure says that it
// is still there.
func remover(dir string, logf func(string, ...any)) func(failed bool) error {
	return func(failed bool) error {
		if failed {
			logf("the cluster's state and logs are kept in %s", dir)
			return nil
		}
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("cannot remove the cluster's directory: %w", err)
		}
		return nil
	}
}

func stderr(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

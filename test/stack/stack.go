// Package stack runs everything that a Flux deployment with signed artifacts is
// made of, for real, on the loopback interface: an API server, Flux's
// controllers, a registry, and a Sigstore of its own. Only the issuers of
// identity tokens are imitated.
package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"flux-verify-gate/test/stack/build"
	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/controller"
	"flux-verify-gate/test/stack/crd"
	"flux-verify-gate/test/stack/localsigstore"
	"flux-verify-gate/test/stack/registries"
)

// Line is a line of source-controller releases that the stack can run.
type Line struct {
	// Name is the minor version.
	Name string
	// Component is the name of the program in package build.
	Component string
	// Release is what that program was built from.
	Release crd.Release
}

// Lines returns the lines that the stack can run, newest first.
func Lines() []Line {
	return []Line{
		{Name: "1.9", Component: "source-controller", Release: crd.Flux29()},
		{Name: "1.7", Component: "source-controller-1.7", Release: crd.Flux27()},
	}
}

// LineCalled returns the line with that minor version, or an error that lists
// the names there are.
func LineCalled(name string) (Line, error) {
	var names []string
	for _, l := range Lines() {
		if l.Name == name {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return Line{}, fmt.Errorf("no source-controller line is called %q: choose one of %q", name, names)
}

// Components names the programs, in package build, that Start needs, those that
// are built fastest first.
func (l Line) Components() []string {
	return []string{
		"etcd", "ociregistry", "fluxpush", "timestamp-server", "tesseract", "rekor-server", "fulcio", "cosign",
		"kube-apiserver", l.Component, "kustomize-controller",
	}
}

// Options says how to run a stack.
type Options struct {
	// Dir is the directory for everything that is written: keys, logs, storage.
	// It is made if need be, and left when the stack stops.
	Dir string
	// Line is the source-controller; the zero value means the newest line.
	Line Line
	// Logf, when set, is told what happens.
	Logf func(format string, args ...any)
}

// Stack is a running stack.
type Stack struct {
	// Line is what Sources was built from.
	Line Line
	// Cluster is the API server with its etcd.
	Cluster *cluster.Cluster
	// Sources is source-controller, for all objects without a shard's label.
	Sources *controller.Controller
	// Kustomizations is kustomize-controller, likewise.
	Kustomizations *controller.Controller
	// Registry has the referrers API.
	Registry *registries.Registry
	// Sigstore is what GitHub's tokens get certificates from. It runs cosign, and
	// has the imitated token endpoint.
	Sigstore *localsigstore.Sigstore

	dir     string
	builder *build.Builder
	logf    func(format string, args ...any)
}

// Start runs a stack and returns when everything is ready, which takes some
// seconds once the programs are built. The caller must call Stop; if this
// process dies before that, everything dies with it.
func Start(ctx context.Context, options Options) (*Stack, error) {
	s := &Stack{Line: options.Line, logf: options.Logf}
	if s.Line.Name == "" {
		s.Line = Lines()[0]
	}
	if s.logf == nil {
		s.logf = func(string, ...any) {}
	}
	if err := s.start(ctx, options); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context, options Options) error {
	var err error
	if s.dir, err = filepath.Abs(options.Dir); err != nil {
		return fmt.Errorf("cannot make the stack's directory absolute: %w", err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the stack's directory: %w", err)
	}
	if s.builder, err = build.New(s.logf); err != nil {
		return err
	}
	for _, name := range s.Line.Components() { // not as a race of builds
		if _, err := s.Program(ctx, name); err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := together(
		func() error { return s.startCluster(ctx) },
		func() (err error) { s.Sigstore, err = s.NewSigstore(ctx, "sigstore"); return err },
		func() (err error) { s.Registry, err = s.NewRegistry(ctx, registries.Referrers, "registry"); return err },
	); err != nil {
		return err
	}
	if err := together(
		func() (err error) { s.Sources, err = s.NewSources(ctx, "source-controller", ""); return err },
		func() error { return s.startKustomizations(ctx) },
	); err != nil {
		return err
	}
	s.logf("the stack with source-controller %s is ready after %s", s.Line.Release.Version, time.Since(begin).Round(time.Millisecond))
	return nil
}

// together runs functions at once and joins their errors.
func together(functions ...func() error) error {
	errs := make([]error, len(functions))
	var wait sync.WaitGroup
	for i, f := range functions {
		wait.Go(func() { errs[i] = f() })
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (s *Stack) startCluster(ctx context.Context) error {
	options := cluster.Options{Dir: s.Path("cluster"), Logf: s.logf}
	var err error
	if options.Etcd, err = s.Program(ctx, "etcd"); err != nil {
		return err
	}
	if options.APIServer, err = s.Program(ctx, "kube-apiserver"); err != nil {
		return err
	}
	if s.Cluster, err = cluster.Start(ctx, options); err != nil {
		return err
	}
	for _, release := range []crd.Release{s.Line.Release, crd.Kustomize29()} {
		definitions, err := release.All(ctx)
		if err != nil {
			return err
		}
		if _, err := s.Cluster.Apply(ctx, "flux", bytes.NewReader(definitions)); err != nil {
			return err
		}
	}
	return nil
}

// Program returns the path of a component's program, and builds it first if the
// cache does not hold it.
func (s *Stack) Program(ctx context.Context, component string) (string, error) {
	return s.builder.Binary(ctx, component)
}

// NewRegistry runs one registry more, with its files below a name.
func (s *Stack) NewRegistry(ctx context.Context, kind registries.Kind, name string) (*registries.Registry, error) {
	program, err := s.Program(ctx, kind.Component())
	if err != nil {
		return nil, err
	}
	return registries.Start(ctx, registries.Options{Kind: kind, Program: program, Dir: s.Path(name)})
}

// NewSigstore runs one Sigstore more, with its files below a name. None trusts
// another.
func (s *Stack) NewSigstore(ctx context.Context, name string) (*localsigstore.Sigstore, error) {
	return localsigstore.Start(ctx, localsigstore.Options{Dir: s.Path(name), Builder: s.builder, Logf: s.logf})
}

// NewSources runs one source-controller more, of the stack's line, for the
// objects of a shard.
func (s *Stack) NewSources(ctx context.Context, name, shard string, env ...string) (*controller.Controller, error) {
	program, err := s.Program(ctx, s.Line.Component)
	if err != nil {
		return nil, err
	}
	return controller.Start(ctx, controller.Options{
		Name: name, Program: program, Cluster: s.Cluster, Dir: s.Path(name), Shard: shard, Storage: true, Env: env,
	})
}

func (s *Stack) startKustomizations(ctx context.Context) error {
	program, err := s.Program(ctx, "kustomize-controller")
	if err != nil {
		return err
	}
	s.Kustomizations, err = controller.Start(ctx, controller.Options{
		Name: "kustomize-controller", Program: program, Cluster: s.Cluster, Dir: s.Path("kustomize-controller"),
	})
	return err
}

// Path returns a path below the stack's directory.
func (s *Stack) Path(name string) string { return filepath.Join(s.dir, name) }

// Stop ends everything, the users before what they use. A second call does
// nothing.
func (s *Stack) Stop() error {
	var errs []error
	for _, c := range []*controller.Controller{s.Kustomizations, s.Sources} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	if s.Sigstore != nil {
		errs = append(errs, s.Sigstore.Stop())
	}
	if s.Registry != nil {
		errs = append(errs, s.Registry.Close())
	}
	if s.Cluster != nil {
		errs = append(errs, s.Cluster.Stop())
	}
	s.Kustomizations, s.Sources, s.Sigstore, s.Registry, s.Cluster = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

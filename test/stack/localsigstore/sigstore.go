package localsigstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"flux-verify-gate/test/stack/build"
	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
	"flux-verify-gate/test/stack/internal/pki"
	"flux-verify-gate/test/stack/port"
)

// Options says how to run a Sigstore.
type Options struct {
	// Dir is the directory for everything that it writes: pki, log, the two
	// logs' entries, the trusted root and the signing configuration. It is made
	// if need be, must not hold another Sigstore, and is left at the end.
	Dir string
	// Builder builds the programs, or takes them from its cache. The default is
	// build.New's.
	Builder *build.Builder
	// Tokens issues the identity tokens that Fulcio accepts. By default Sigstore
	// starts and closes one of its own; two Sigstores that share one give
	// certificates for the same identities. It must be open as long as this
	// Sigstore runs.
	Tokens *githubtoken.Endpoint
	// Logf, when set, is told what happens.
	Logf func(format string, args ...any)
}

// Sigstore is a running Sigstore, and the cosign that uses it. Its methods may
// be called from several goroutines; those that stop or start a service wait
// for each other.
type Sigstore struct {
	// Cosign runs the real cosign. Its own methods are those that need no
	// Sigstore: keys.
	*cosigncli.Cosign

	options  Options
	endpoint *githubtoken.Endpoint

	services map[Service]*service // the map itself changes in Start only

	mu      sync.Mutex // guards the services' processes, and:
	stopped bool
}

// Start runs the services, and returns when all are ready and the trusted root
// and the signing configuration are written. The caller must call Stop; if this
// process dies before that, the services die with it (on Linux; see package
// process).
func Start(ctx context.Context, options Options) (*Sigstore, error) {
	s := &Sigstore{options: options, endpoint: options.Tokens, services: map[Service]*service{}}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Sigstore) start(ctx context.Context) error {
	var err error
	if s.options.Dir, err = filepath.Abs(s.options.Dir); err != nil {
		return fmt.Errorf("cannot make Sigstore's directory absolute: %w", err)
	}
	if _, err := os.Lstat(s.path("pki")); err == nil {
		return fmt.Errorf("%s holds a Sigstore already: choose another directory", s.options.Dir)
	}
	for _, dir := range []string{"pki", "log", "ct", "rekor"} {
		if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
			return fmt.Errorf("cannot make Sigstore's directory: %w", err)
		}
	}
	if err := s.makeServices(ctx); err != nil {
		return err
	}
	begin := time.Now() // without the builds
	if s.endpoint == nil {
		if s.endpoint, err = githubtoken.Start(ctx, s.path("tokens")); err != nil {
			return err
		}
	}
	if err := s.makeKeys(); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("fulcio.yaml"), fulcioConfig(), 0o600); err != nil {
		return fmt.Errorf("cannot write Fulcio's configuration: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range Services() {
		if err := s.startService(name); err != nil {
			return err
		}
	}
	for _, name := range Services() {
		if err := s.waitReady(ctx, name); err != nil {
			return err
		}
	}
	if err := s.writeConfigurations(ctx, begin.Add(-pki.Backdate)); err != nil {
		return err
	}
	s.logf("Sigstore is ready after %s (logs: %s)", time.Since(begin).Round(time.Millisecond), s.path("log"))
	return nil
}

// makeServices finds or builds the programs and reserves the ports.
func (s *Sigstore) makeServices(ctx context.Context) error {
	b := s.options.Builder
	if b == nil {
		var err error
		if b, err = build.New(s.options.Logf); err != nil {
			return err
		}
	}
	cosign, err := b.Binary(ctx, "cosign")
	if err != nil {
		return err
	}
	s.Cosign = &cosigncli.Cosign{Path: cosign, Home: s.path("home")}
	for _, name := range Services() {
		program, err := b.Binary(ctx, string(name))
		if err != nil {
			return err
		}
		v := &service{program: program}
		if v.port, err = port.ReserveReusable(); err != nil {
			return err
		}
		s.services[name] = v
		if name != Rekor {
			continue
		}
		if v.inner, err = port.ReserveReusable(); err != nil {
			return err
		}
	}
	return nil
}

// writeConfigurations has cosign write the trusted root and the signing
// configuration, both valid from start.
func (s *Sigstore) writeConfigurations(ctx context.Context, start time.Time) error {
	from := ",start-time=" + start.UTC().Format(time.RFC3339)
	_, err := s.Run(ctx, "trusted-root", "create",
		"--fulcio=url="+s.URL(Fulcio)+",certificate-chain="+s.path("pki", fulcioChain)+from,
		"--ctfe=url="+s.URL(CTLog)+",public-key="+s.path("pki", ctPub)+from,
		"--tsa=url="+s.URL(TSA)+",certificate-chain="+s.path("pki", tsaChain)+from,
		"--rekor=url="+s.URL(Rekor)+",public-key="+s.path("pki", rekorPub)+from+",origin=127.0.0.1",
		"--out="+s.TrustedRoot())
	if err != nil {
		return err
	}
	from += ",operator=stack.test"
	_, err = s.Run(ctx, "signing-config", "create",
		"--fulcio=url="+s.URL(Fulcio)+",api-version=1"+from,
		"--rekor=url="+s.URL(Rekor)+",api-version=2"+from, "--rekor-config=ANY",
		"--tsa=url="+s.URL(TSA)+",api-version=1"+from, "--tsa-config=ANY",
		"--out="+s.SigningConfig())
	return err
}

// TrustedRoot returns the path of trusted_root.json: what a verifier trusts
// when it trusts this Sigstore.
func (s *Sigstore) TrustedRoot() string { return s.path("trusted_root.json") }

// SigningConfig returns the path of signing_config.json: where a signer finds
// the services.
func (s *Sigstore) SigningConfig() string { return s.path("signing_config.json") }

// Tokens returns the issuer of the identity tokens that Fulcio accepts.
func (s *Sigstore) Tokens() *githubtoken.Endpoint { return s.endpoint }

// Dir returns the absolute path of the directory.
func (s *Sigstore) Dir() string { return s.options.Dir }

// Log returns the path of a service's log.
func (s *Sigstore) Log(name Service) string { return s.path("log", string(name)+".log") }

// Stop ends all services, Fulcio first, and the token endpoint if it is its
// own, and returns when all are gone. A second call does nothing. Errors: a
// service that had ended before it was asked to, or did not end when asked to
// (it was killed then). Nothing is running afterwards in either case.
func (s *Sigstore) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	var err error
	for _, name := range slices.Backward(Services()) {
		err = errors.Join(err, s.stopService(name))
		if v, ok := s.services[name]; ok {
			err = errors.Join(err, v.port.Release(), v.inner.Release())
		}
	}
	if s.options.Tokens == nil && s.endpoint != nil {
		err = errors.Join(err, s.endpoint.Close())
	}
	return err
}

func (s *Sigstore) path(elem ...string) string {
	return filepath.Join(append([]string{s.options.Dir}, elem...)...)
}

func (s *Sigstore) logf(format string, args ...any) {
	if s.options.Logf != nil {
		s.options.Logf(format, args...)
	}
}

package localsigstore_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flux-verify-gate/test/stack/build"
	"flux-verify-gate/test/stack/githubtoken"
	"flux-verify-gate/test/stack/localsigstore"
	"flux-verify-gate/test/stack/process/processtest"
)

// start starts a Sigstore of the test's own.
func start(tb testing.TB, options localsigstore.Options) *localsigstore.Sigstore {
	tb.Helper()
	options.Dir, options.Logf = filepath.Join(tb.TempDir(), "sigstore"), tb.Logf
	s, err := localsigstore.Start(tb.Context(), options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// TestStopService breaks and repairs one service after another.
func TestStopService(t *testing.T) {
	t.Parallel()
	s, registry := start(t, localsigstore.Options{}), startRegistry(t)
	signed := push(t, registry, "service/before")
	if err := s.SignKeyless(t.Context(), signed, token(t, s, githubtoken.Claims{})); err != nil {
		t.Fatal(err)
	}
	for _, name := range localsigstore.Services() {
		url := s.URL(name)
		if err := s.StopService(name); err != nil {
			t.Fatal(err)
		}
		if pid, ok := s.PID(name); ok {
			t.Errorf("%s is stopped and has the process id %d", name, pid)
		}
		if err := s.StopService(name); err != nil {
			t.Errorf("stop %s again: %v", name, err)
		}
		reference := push(t, registry, "service/"+string(name))
		timeout, want := time.Minute, "connect: connection refused"
		if name == localsigstore.CTLog {
			// Fulcio asks it again and again, and cosign waits for half a minute.
			timeout, want = 2*time.Second, context.DeadlineExceeded.Error()
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		err := s.SignKeyless(ctx, reference, token(t, s, githubtoken.Claims{}))
		cancel()
		refused(t, "sign without "+string(name), err, want)
		_, err = s.VerifyKeyless(t.Context(), reference, githubtoken.Issuer, subject)
		refused(t, "verify what was not signed without "+string(name), err, "no signatures found")
		if _, err := s.VerifyKeyless(t.Context(), signed, githubtoken.Issuer, subject); err != nil {
			t.Errorf("verify without %s: %v", name, err)
		}

		if err := s.StartService(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if s.URL(name) != url {
			t.Errorf("%s moved from %s to %s", name, url, s.URL(name))
		}
		if err := s.StartService(t.Context(), name); err == nil || !strings.Contains(err.Error(), "running already") {
			t.Errorf("start %s again: got %v", name, err)
		}
		if err := s.SignKeyless(t.Context(), reference, token(t, s, githubtoken.Claims{})); err != nil {
			t.Errorf("sign with %s again: %v", name, err)
		}
		if _, err := s.VerifyKeyless(t.Context(), reference, githubtoken.Issuer, subject); err != nil {
			t.Errorf("verify what was signed with %s again: %v", name, err)
		}
	}
	if err := s.StartService(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), "no service") {
		t.Errorf("start a service that there is not: got %v", err)
	}
	if url := s.URL("other"); url != "" {
		t.Errorf("the URL of a service that there is not: %s", url)
	}
}

// TestServiceFails has a program that ends instead of serving.
func TestServiceFails(t *testing.T) {
	t.Parallel()
	real := builder(t)
	cache := t.TempDir()
	for _, name := range append([]localsigstore.Service{"cosign"}, localsigstore.Services()...) {
		path, err := real.Binary(t.Context(), string(name))
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(cache, filepath.Base(path))
		if name != localsigstore.Rekor {
			err = os.Link(path, target)
			if err != nil { // another file system
				var data []byte
				if data, err = os.ReadFile(path); err == nil {
					err = os.WriteFile(target, data, 0o755)
				}
			}
		} else {
			err = os.WriteFile(target, []byte("#!/bin/sh\necho the disk is full\nexit 3\n"), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "sigstore")
	_, err := localsigstore.Start(t.Context(), localsigstore.Options{Dir: dir, Builder: &build.Builder{Root: real.Root, Cache: cache}})
	for _, want := range []string{"rekor-server ended by itself", "exit status 3", "the disk is full", filepath.Join(dir, "log", "rekor-server.log")} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	processtest.NoneNames(t, dir)

	_, err = localsigstore.Start(t.Context(), localsigstore.Options{Dir: dir})
	if want := "holds a Sigstore already"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the same directory again: got %v, want %q", err, want)
	}
}

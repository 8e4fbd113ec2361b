package localsigstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"flux-verify-gate/test/stack/localsigstore"
)

// shared is one Sigstore for the tests that stop none of its services.
var shared struct {
	once     sync.Once
	sigstore *localsigstore.Sigstore
	err      error
	dir      string
}

func sharedSigstore(tb testing.TB) *localsigstore.Sigstore {
	tb.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "flux-verify-gate-sigstore-"); shared.err != nil {
			return
		}
		// Not a test's context: it outlives the test that asked first.
		shared.sigstore, shared.err = localsigstore.Start(context.Background(), localsigstore.Options{
			Dir: filepath.Join(shared.dir, "sigstore"), Logf: stderr,
		})
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.sigstore
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.sigstore != nil {
		if err := shared.sigstore.Stop(); err != nil {
			stderr("%v", err)
			code = max(code, 1)
		}
	}
	if code == 0 {
		if err := os.RemoveAll(shared.dir); err != nil {
			stderr("%v", err)
			code = 1
		}
	} else if shared.dir != "" {
		stderr("state and logs are kept in %s", shared.dir)
	}
	os.Exit(code)
}

func stderr(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

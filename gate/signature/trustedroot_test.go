package signature

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"flux-verify-gate/gate"
)

// newTUF serves a TUF repository with one trusted_root.json, whose metadata
// expire at the given time, and returns its first root.
func newTUF(t *testing.T, trustedRoot []byte, expires time.Time) (root []byte, files map[string][]byte) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := metadata.KeyFromPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := signature.LoadSigner(private, crypto.Hash(0))
	if err != nil {
		t.Fatal(err)
	}
	far := time.Now().AddDate(1, 0, 0).UTC()
	r := metadata.Root(far)
	for _, role := range []string{metadata.ROOT, metadata.TARGETS, metadata.SNAPSHOT, metadata.TIMESTAMP} {
		if err := r.Signed.AddKey(key, role); err != nil {
			t.Fatal(err)
		}
	}
	target, err := metadata.TargetFile().FromBytes("trusted_root.json", trustedRoot, "sha256")
	if err != nil {
		t.Fatal(err)
	}
	targets := metadata.Targets(far)
	targets.Signed.Targets["trusted_root.json"] = target
	snapshot := metadata.Snapshot(far)
	timestamp := metadata.Timestamp(expires)
	files = map[string][]byte{"/targets/" + target.Hashes["sha256"].String() + ".trusted_root.json": trustedRoot}
	write := func(path string, raw []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		files[path] = raw
		return raw
	}
	sign := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = r.Sign(signer)
	sign(err)
	_, err = targets.Sign(signer)
	sign(err)
	_, err = snapshot.Sign(signer)
	sign(err)
	_, err = timestamp.Sign(signer)
	sign(err)
	raw, err := r.ToBytes(false)
	root = write("/1.root.json", raw, err)
	raw, err = targets.ToBytes(false)
	write("/1.targets.json", raw, err)
	raw, err = snapshot.ToBytes(false)
	write("/1.snapshot.json", raw, err)
	raw, err = timestamp.ToBytes(false)
	write("/timestamp.json", raw, err)
	return root, files
}

// TestTUF fetches the trusted root over TUF, keeps it, leaves nothing behind,
// and has no fallback.
func TestTUF(t *testing.T) {
	s := sharedSigstore(t)
	trustedRoot, err := s.TrustedRoot()
	if err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(time.Hour).UTC()
	r := newRepository(t)
	r.attach(goodBundle(t, s, r.digest), r.digest)
	registry := r.serve(true)
	cases := []struct {
		name      string
		expires   time.Time
		before    func(n int64, w http.ResponseWriter, req *http.Request) bool
		otherRoot bool
		wait      time.Duration
		ok        bool
		transient bool
	}{
		{name: "good", expires: soon, wait: time.Minute, ok: true},
		{name: "a hiccup", expires: soon, wait: time.Minute, ok: true, before: func(n int64, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return n == 1
		}},
		{name: "out of order", expires: soon, wait: time.Second, transient: true, before: func(_ int64, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}},
		{name: "hanging", expires: soon, wait: time.Second, transient: true, before: func(_ int64, _ http.ResponseWriter, req *http.Request) bool {
			<-req.Context().Done()
			return true
		}},
		{name: "stale", expires: time.Now().Add(-time.Hour).UTC(), wait: time.Minute},
		{name: "another root", expires: soon, otherRoot: true, wait: time.Minute},
		{name: "another target", expires: soon, wait: time.Minute, before: func(_ int64, w http.ResponseWriter, req *http.Request) bool {
			if !strings.HasPrefix(req.URL.Path, "/targets/") {
				return false
			}
			_, _ = w.Write([]byte(strings.Repeat(" ", len(trustedRoot))))
			return true
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			root, files := newTUF(t, trustedRoot, c.expires)
			if c.otherRoot {
				root, _ = newTUF(t, trustedRoot, c.expires)
			}
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if c.before != nil && c.before(asked.Add(1), w, req) {
					return
				}
				body, ok := files[req.URL.Path]
				if !ok {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				_, _ = w.Write(body)
			}))
			k := &Checker{Want: want(), TrustedRoot: TUF, tufOptions: &tuf.Options{Root: root, RepositoryBaseURL: server.URL}}
			got := k.Check(deadline(t, c.wait), registry.target(r))
			if c.ok {
				if !want().SignedBy(got.Found) || got.RootSource != TUF || got.PublicGood {
					t.Errorf("expected it to verify, found:\n%s", tellAll(got))
				}
				server.Close()
				if again := k.Check(deadline(t, c.wait), registry.target(r)); !want().SignedBy(again.Found) {
					t.Errorf("expected the root to be kept, found:\n%s", tellAll(again))
				}
			} else {
				if len(got.Failures) != 1 || got.Failures[0].Code != gate.TrustedRootUnavailable || got.Failures[0].Transient != c.transient || got.Complete {
					t.Errorf("expected trusted-root-unavailable, found:\n%s", tellAll(got))
				}
				findings, _ := gate.JudgeSignatures(want(), got, r.digest)
				if len(findings) != 1 || findings[0].Outcome != gate.Unknown {
					t.Errorf("expected an unknown, found %+v", findings)
				}
				server.Close()
			}
			left, err := os.ReadDir(temporary)
			if err != nil || len(left) != 0 {
				t.Errorf("expected nothing left behind, found %v, %v", left, err)
			}
		})
	}
}

func TestTrustedRootFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, body := range map[string]string{"empty.json": "", "no.json": "{}", "list.json": "[]", "large.json": strings.Repeat(" ", maxTrustedRoot+1)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readTrustedRoot(path); err == nil || !strings.Contains(err.Error(), "trusted_root.json") {
			t.Errorf("%s: expected to be told what was expected, found %v", name, err)
		}
	}
	if _, err := readTrustedRoot(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("expected a file that is missing, found %v", err)
	}
	material, err := readTrustedRoot(writeRoot(t, sharedSigstore(t)))
	if err != nil || publicGood(material) {
		t.Errorf("expected a root that is not public-good, found %v", err)
	}
}

// TestRetry waits for what may mend itself and for nothing else.
func TestRetry(t *testing.T) {
	t.Parallel()
	calls := 0
	nobody := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	err := retry(t.Context(), 2, time.Minute, func(context.Context) error { calls++; return nobody })
	if calls != 2 || !errors.Is(err, nobody) {
		t.Errorf("expected two attempts to reach an address, found %d, %v", calls, err)
	}
	calls = 0
	err = retry(t.Context(), 1, time.Minute, func(context.Context) error {
		calls++
		if calls < 3 {
			return &statusError{status: 500}
		}
		return nil
	})
	if calls != 3 || err != nil {
		t.Errorf("expected an address that answers to be asked again, found %d, %v", calls, err)
	}
	for _, final := range []error{errAbsent, errUnsupported, errGivenUp, &contentError{}, &limitError{}, &deniedError{}, &answerError{status: 418}, context.Canceled, http.ErrSchemeMismatch} {
		calls = 0
		if got := retry(t.Context(), 9, time.Minute, func(context.Context) error { calls++; return final }); calls != 1 || !errors.Is(got, final) {
			t.Errorf("%v: expected one attempt, found %d", final, calls)
		}
	}
	for value, want := range map[string]time.Duration{"": 0, "3": 3 * time.Second, "-1": 0, "x": 0, "999999999": 24 * time.Hour, "Mon, 01 Jan 2001 00:00:00 GMT": 0} {
		if got := retryAfter(value); got != want {
			t.Errorf("Retry-After %q: expected %s, found %s", value, want, got)
		}
	}
}

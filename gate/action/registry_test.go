package action

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/cluster"
)

// Whoever can write the source names the registry. Where the input url says which
// one it must be, no other is asked, and none gets the credentials.
func TestOtherRegistryIsNotAsked(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]bool{"oci://ghcr.io/acme/kl": false, "": true} {
		t.Run("url "+name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.WriteHeader(http.StatusUnauthorized)
			}))
			defer server.Close()
			object, err := os.ReadFile(verifiedObject)
			if err != nil {
				t.Fatal(err)
			}
			elsewhere := filepath.Join(t.TempDir(), "object.json")
			content := strings.ReplaceAll(string(object), "127.0.0.1:15000", strings.TrimPrefix(server.URL, "http://"))
			if err := os.WriteFile(elsewhere, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			r := step{inputs: recorded(map[string]string{
				inObject: elsewhere, inURL: name, inSignature: "verify", inTrustedRoot: "../../examples/recorded/trusted_root.json",
				inRegistryUsername: "ci", inRegistryPassword: "hunter2",
			})}.run(context.Background(), t)
			if r.status == statusVerified {
				t.Errorf("exit status 0, want another\n%s", r.stdout)
			}
			if got := requests.Load() > 0; got != asked {
				t.Errorf("the registry was asked: %v, want %v\n%s", got, asked, r.stdout)
			}
		})
	}
}

// Signatures that were found in one repository do not count for another one that
// serves the same digest.
func TestSignaturesAreOfOneRepository(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("a", 64)
	serving := func(url, digest string) cluster.Observation {
		var o cluster.Observation
		o.Source.Object.Spec.URL = url
		o.Source.Object.Status.Artifact = artifact("v1@" + digest)
		return o
	}
	for name, tt := range map[string]struct {
		next cluster.Observation
		kept bool
	}{
		"the same":           {serving("oci://ghcr.io/acme/a", digest), true},
		"another repository": {serving("oci://ghcr.io/acme/b", digest), false},
		"another digest":     {serving("oci://ghcr.io/acme/a", "sha256:"+strings.Repeat("b", 64)), false},
		"missing":            {cluster.Observation{Missing: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &live{lookedIn: "oci://ghcr.io/acme/a"}
			l.evidence.Signatures = &gate.Signatures{Digest: digest}
			l.setSeen(tt.next)
			if kept := l.evidence.Signatures != nil; kept != tt.kept {
				t.Errorf("the signatures were kept: %v, want %v", kept, tt.kept)
			}
		})
	}
}

// A root that was swapped between its two readings counts as what verified.
func TestPrivateRootIsTheOneThatVerified(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		found gate.Signatures
		want  bool
	}{
		{gate.Signatures{}, false},
		{gate.Signatures{RootSource: "tuf", Found: make([]gate.Signature, 1)}, false},
		{gate.Signatures{RootSource: "root.json", Found: make([]gate.Signature, 1), PublicGood: true}, false},
		{gate.Signatures{RootSource: "root.json", Found: make([]gate.Signature, 1)}, true},
		{gate.Signatures{RootSource: "root.json"}, false}, // it could not be loaded
	} {
		if got := privateRoot(tt.found); got != tt.want {
			t.Errorf("%+v: got %v, want %v", tt.found, got, tt.want)
		}
	}
}

func artifact(revision string) *meta.Artifact { return &meta.Artifact{Revision: revision} }

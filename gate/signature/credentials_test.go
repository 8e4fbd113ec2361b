package signature

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"flux-verify-gate/gate"
)

func dockerConfig(t *testing.T, host string) string {
	t.Helper()
	dir := t.TempDir()
	body, err := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]any{"username": "jane", "password": "docker-secret"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), body, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCredentials picks the credentials in their order, and tells no secret.
func TestCredentials(t *testing.T) {
	t.Parallel()
	other := dockerConfig(t, "other.example")
	cases := []struct {
		name        string
		credentials Credentials
		registry    string
		user        string
		password    string
		told        string
	}{
		{"nobody", Credentials{}, "registry.example", "", "", "anonymous"},
		{"a user", Credentials{Username: "ci", Password: "s3cret", DockerConfig: dockerConfig(t, "registry.example"), GitHubToken: "ghs_1"}, "registry.example", "ci", "s3cret", `"ci"`},
		{"Docker", Credentials{DockerConfig: dockerConfig(t, "registry.example"), GitHubToken: "ghs_1"}, "registry.example", "jane", "docker-secret", "Docker configuration"},
		{"Docker, another registry", Credentials{DockerConfig: other}, "registry.example", "", "", "anonymous"},
		{"Docker without a file", Credentials{DockerConfig: t.TempDir()}, "registry.example", "", "", "anonymous"},
		{"Docker Hub", Credentials{DockerConfig: dockerConfig(t, "https://index.docker.io/v1/")}, "docker.io", "jane", "docker-secret", "Docker configuration"},
		{"GitHub", Credentials{DockerConfig: other, GitHubToken: "ghs_1"}, "ghcr.io", "token", "ghs_1", "GitHub token"},
		{"GitHub's token stays with GitHub", Credentials{GitHubToken: "ghs_1"}, "registry.example", "", "", "anonymous"},
		{"GitHub's token and a name that begins alike", Credentials{GitHubToken: "ghs_1"}, "ghcr.io.evil.example", "", "", "anonymous"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			registry, err := name.NewRegistry(c.registry)
			if err != nil {
				t.Fatal(err)
			}
			auth, told, err := c.credentials.resolve(registry)
			if err != nil {
				t.Fatal(err)
			}
			got, err := authn.Authorization(t.Context(), auth)
			if err != nil {
				t.Fatal(err)
			}
			if got.Username != c.user || got.Password != c.password {
				t.Errorf("expected %s:%s, found %+v", c.user, c.password, got)
			}
			if !strings.Contains(told, c.told) || c.password != "" && strings.Contains(told, c.password) {
				t.Errorf("expected to be told %q and no secret, found %q", c.told, told)
			}
		})
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "config.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := (&Checker{Credentials: Credentials{DockerConfig: broken}}).Check(deadline(t, time.Minute), Target{Repository: "registry.example/a", Digest: otherDigest})
	if len(got.Failures) != 1 || got.Failures[0].Code != gate.BadInput {
		t.Errorf("expected bad-input, found:\n%s", tellAll(got))
	}
}

// TestAuthentication goes through the handshakes of a registry that asks for
// credentials, with good ones, bad ones and none.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	r := newRepository(t)
	r.attach(goodBundle(t, s, r.digest), r.digest)
	for _, scheme := range []string{"basic", "bearer", "bearer for anybody"} {
		for _, c := range []struct {
			name        string
			credentials Credentials
		}{
			{"good", Credentials{Username: "ci", Password: "s3cret"}},
			{"bad", Credentials{Username: "ci", Password: "guess"}},
			{"none", Credentials{}},
		} {
			t.Run(scheme+", "+c.name, func(t *testing.T) {
				t.Parallel()
				inner := r.serve(true)
				var tokens atomic.Int64
				var server *httptest.Server
				server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					user, password, basic := req.BasicAuth()
					known := basic && user == "ci" && password == "s3cret"
					if req.URL.Path == "/token" {
						tokens.Add(1)
						if !known && (scheme != "bearer for anybody" || basic) {
							w.WriteHeader(http.StatusUnauthorized)
							return
						}
						_ = json.NewEncoder(w).Encode(map[string]string{"token": "t0ken"})
						return
					}
					allowed := known
					challenge := `Basic realm="registry"`
					if scheme != "basic" {
						allowed = req.Header.Get("Authorization") == "Bearer t0ken"
						challenge = `Bearer realm="` + server.URL + `/token",service="registry"`
					}
					if !allowed {
						w.Header().Set("WWW-Authenticate", challenge)
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					inner.ServeHTTP(w, req)
				}))
				t.Cleanup(server.Close)
				k := checker(t, s)
				k.Credentials = c.credentials
				got := k.Check(deadline(t, time.Minute), Target{
					Repository: "oci://" + strings.TrimPrefix(server.URL, "http://") + "/acme/platform", Digest: r.digest, Insecure: true,
				})
				if c.name == "good" || c.name == "none" && scheme == "bearer for anybody" {
					if !want().SignedBy(got.Found) || !got.Complete {
						t.Fatalf("expected to be let in, found:\n%s", tellAll(got))
					}
					return
				}
				if len(got.Failures) != 1 || got.Failures[0].Code != gate.RegistryDenied || got.ManifestRead {
					t.Fatalf("expected registry-denied, found:\n%s", tellAll(got))
				}
				if !strings.Contains(got.Failures[0].Title, got.Credentials) || strings.Contains(tellAll(got), "guess") {
					t.Errorf("expected to be told which credentials and no secret, found:\n%s", tellAll(got))
				}
			})
		}
	}
}

// The GitHub token goes to ghcr.io over TLS only, whatever the source says.
func TestGitHubTokenStaysInTLS(t *testing.T) {
	t.Parallel()
	for address, schemes := range map[string]int{"oci://ghcr.io/acme/platform": 1, "oci://registry.example/acme/platform": 2} {
		r, _, err := newRegistry(address, true, Credentials{GitHubToken: "secret"}, http.DefaultTransport)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.schemes(); len(got) != schemes || got[0] != "https" {
			t.Errorf("%s: expected %d schemes, found %v", address, schemes, got)
		}
	}
}

func TestClusterOnly(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"registry.flux-system.svc.cluster.local:5000": true, "registry.flux-system.svc": true, "registry.flux-system.svc.": true,
		"registry:5000": true, "localhost:5000": true, "127.0.0.1:5000": true, "[::1]:5000": true, "10.0.0.7": true, "192.168.1.1:80": true,
		"172.16.3.4": true, "169.254.1.1": true, "[::ffff:10.0.0.1]:5000": true, "registry.corp.internal": true, "kind-registry.local": true,
		"ghcr.io": false, "registry.example:5000": false, "index.docker.io": false, "8.8.8.8": false, "svc.example": false,
	} {
		if got := clusterOnly(address); got != want {
			t.Errorf("%s: expected %v, found %v", address, want, got)
		}
	}
}

// TestUnreachable says what an address that only the cluster can reach is.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	k := checker(t, sharedSigstore(t))
	got := k.Check(deadline(t, 2*time.Second), Target{Repository: "oci://127.0.0.1:1/acme/platform", Digest: otherDigest, Insecure: true})
	if len(got.Failures) != 1 || got.Failures[0].Code != gate.RegistryUnreachable || !strings.Contains(got.Failures[0].Title, "only the cluster") {
		t.Errorf("expected to be told, found:\n%s", tellAll(got))
	}
	for _, bad := range []Target{
		{Repository: "oci://UPPER/Case", Digest: otherDigest}, {Repository: "", Digest: otherDigest},
		{Repository: "oci://registry.example/a", Digest: "sha256:1"}, {Repository: "oci://registry.example/a", Digest: "any"},
	} {
		got := k.Check(deadline(t, time.Minute), bad)
		if len(got.Failures) != 1 || got.Failures[0].Code != gate.BadInput || got.Complete {
			t.Errorf("expected bad-input for %+v, found:\n%s", bad, tellAll(got))
		}
	}
}

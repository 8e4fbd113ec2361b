package localsigstore_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flux-verify-gate/test/stack/build"
	"flux-verify-gate/test/stack/port"
	"flux-verify-gate/test/stack/process"
)

func builder(tb testing.TB) *build.Builder {
	tb.Helper()
	b, err := build.New(tb.Logf)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// startRegistry returns the address of a registry of the test's own.
func startRegistry(tb testing.TB) string {
	tb.Helper()
	program, err := builder(tb).Binary(tb.Context(), "ociregistry")
	if err != nil {
		tb.Fatal(err)
	}
	reservation, err := port.Reserve()
	if err != nil {
		tb.Fatal(err)
	}
	registry, err := process.Start(process.Config{
		Name: "ociregistry", Path: program, Args: []string{"-address", reservation.Address()},
		Log: filepath.Join(tb.TempDir(), "registry.log"),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := registry.Stop(); err != nil {
			tb.Error(err)
		}
		if err := reservation.Release(); err != nil {
			tb.Error(err)
		}
	})
	for {
		conn, err := net.Dial("tcp", reservation.Address())
		if err == nil {
			conn.Close()
			return reservation.Address()
		}
		select {
		case <-registry.Done():
			tb.Fatal(registry.Failure())
		case <-tb.Context().Done():
			tb.Fatal("the registry is not ready")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// push pushes a new artifact and returns its repository@digest.
func push(tb testing.TB, registry, repository string) string {
	tb.Helper()
	program, err := builder(tb).Binary(tb.Context(), "fluxpush")
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "configmap.yaml"), []byte("# of "+repository+"\n"), 0o644); err != nil {
		tb.Fatal(err)
	}
	out, err := exec.CommandContext(tb.Context(), program,
		"-revision", "main@sha1:0123456789abcdef0123456789abcdef01234567", registry+"/"+repository+":v1", dir).CombinedOutput()
	if err != nil {
		tb.Fatalf("push: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// signatures says what the registry holds of an artifact: the tag of a
// signature, and a bundle that refers to it.
func signatures(t *testing.T, reference string) (tagged, referring bool) {
	t.Helper()
	name, digest, _ := strings.Cut(reference, "@")
	registry, repository, _ := strings.Cut(name, "/")
	base := "http://" + registry + "/v2/" + repository
	response, err := http.Get(base + "/manifests/" + strings.Replace(digest, ":", "-", 1) + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	tagged = response.StatusCode == http.StatusOK
	if response, err = http.Get(base + "/referrers/" + digest); err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var index struct{ Manifests []json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&index); err != nil {
		t.Fatal(err)
	}
	return tagged, len(index.Manifests) > 0
}

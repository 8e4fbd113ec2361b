package registries_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"flux-verify-gate/test/stack/build"
	"flux-verify-gate/test/stack/registries"
)

// TestRegistry runs the kinds that every suite needs, stops and restarts them
// under their address.
func TestRegistry(t *testing.T) {
	t.Parallel()
	builder, err := build.New(t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for kind, referrers := range map[registries.Kind]int{registries.Referrers: http.StatusOK, registries.Tags: http.StatusNotFound} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			program, err := builder.Binary(t.Context(), kind.Component())
			if err != nil {
				t.Fatal(err)
			}
			r, err := registries.Start(t.Context(), registries.Options{Kind: kind, Program: program, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}()
			for range 2 {
				url := "http://" + r.Address() + "/v2/a/referrers/" + push(t, r.Address())
				response, err := http.Get(url)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if response.StatusCode != referrers {
					t.Errorf("the referrers API answers %d, want %d", response.StatusCode, referrers)
				}
				if err := r.Stop(); err != nil {
					t.Fatal(err)
				}
				if response, err := http.Get(url); err == nil {
					response.Body.Close()
					t.Error("a stopped registry answers")
				}
				if err := r.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// push pushes a manifest, which a registry in memory has lost after a restart,
// and returns its digest.
func push(t *testing.T, address string) string {
	t.Helper()
	const mediaType = "application/vnd.oci.image.manifest.v1+json"
	manifest := `{"schemaVersion":2,"mediaType":"` + mediaType + `","config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},"layers":[]}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+address+"/v2/a/manifests/v1", strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", mediaType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("push: %s", response.Status)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(manifest)))
}

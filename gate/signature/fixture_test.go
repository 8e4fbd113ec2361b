package signature

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	ociregistry "github.com/google/go-containerregistry/pkg/registry"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signature/internal/testsigstore"
	"flux-verify-gate/gate/signer"
)

// at is when the signatures of the tests are made.
var at = time.Date(2026, 11, 30, 17, 20, 0, 0, time.UTC)

// The one signer that the tests require.
const (
	requiredRepository = "acme/platform"
	requiredWorkflow   = "cd.yaml"
	requiredRef        = "refs/heads/main"
)

var requiredSigner = signer.Signer{
	Issuer:  "https://token.actions.githubusercontent.com",
	Subject: "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main",
}

func requiredIdentity() testsigstore.Identity {
	return testsigstore.GitHub(requiredRepository, requiredWorkflow, requiredRef)
}

// newSigstore makes an instance that began long before the signatures.
func newSigstore(t testing.TB) *testsigstore.Sigstore {
	t.Helper()
	s, err := testsigstore.New(at.AddDate(-1, 0, 0))
	if err != nil {
		t.Fatalf("make a Sigstore: %v", err)
	}
	return s
}

// shared is one instance for the tests that only sign with it.
var shared = sync.OnceValues(func() (*testsigstore.Sigstore, error) { return testsigstore.New(at.AddDate(-1, 0, 0)) })

func sharedSigstore(t testing.TB) *testsigstore.Sigstore {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("make a Sigstore: %v", err)
	}
	return s
}

// writeRoot writes the trusted root of an instance to a file.
func writeRoot(t testing.TB, s *testsigstore.Sigstore) string {
	t.Helper()
	body, err := s.TrustedRoot()
	if err != nil {
		t.Fatalf("trusted root: %v", err)
	}
	path := filepath.Join(t.TempDir(), "trusted_root.json")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func keylessFor(t testing.TB, s *testsigstore.Sigstore) keyless {
	t.Helper()
	material, err := readTrustedRoot(writeRoot(t, s))
	if err != nil {
		t.Fatalf("read the trusted root: %v", err)
	}
	return keyless{material}
}

func makeBundle(t testing.TB, s *testsigstore.Sigstore, w testsigstore.Signing) *protobundle.Bundle {
	t.Helper()
	b, err := s.Bundle(w)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	return b
}

func marshal(t testing.TB, b *protobundle.Bundle) []byte {
	t.Helper()
	raw, err := testsigstore.MarshalBundle(b)
	if err != nil {
		t.Fatalf("write the bundle: %v", err)
	}
	return raw
}

// bundleEvidence is a bundle as it would have been fetched.
func bundleEvidence(raw []byte) evidence {
	return evidence{layout: gate.LayoutBundle, digest: digestOf([]byte("manifest")), bundle: raw}
}

func makeLayer(t testing.TB, s *testsigstore.Sigstore, w testsigstore.Signing) evidence {
	t.Helper()
	annotations, err := s.Layer(w)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	return evidence{layout: gate.LayoutTag, digest: digestOf(w.Payload), payload: w.Payload, annotations: annotations}
}

// goodBundle and goodLayer are a required signer's signatures of a digest.
func goodBundle(t testing.TB, s *testsigstore.Sigstore, digest string) evidence {
	t.Helper()
	return bundleEvidence(marshal(t, makeBundle(t, s, testsigstore.Signing{
		Identity: requiredIdentity(), At: at, Payload: testsigstore.Statement(cosignPredicate, digest),
	})))
}

func goodLayer(t testing.TB, s *testsigstore.Sigstore, digest string) evidence {
	t.Helper()
	return makeLayer(t, s, testsigstore.Signing{
		Identity: requiredIdentity(), At: at, Log: testsigstore.LogV1Promise, Payload: testsigstore.Payload("registry.example/acme/platform", digest),
	})
}

// repository is the content of one repository, to be put into a registry or
// an OCI layout.
type repository struct {
	t        testing.TB
	digest   string // of the artifact
	blobs    map[string][]byte
	types    map[string]string // of manifests, by digest
	order    []string          // manifests, as they came
	tags     map[string]string
	referrer []map[string]any
	layers   []map[string]any
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
	emptyType    = "application/vnd.oci.empty.v1+json"
)

func newRepository(t testing.TB) *repository {
	t.Helper()
	r := &repository{t: t, blobs: map[string][]byte{}, types: map[string]string{}, tags: map[string]string{}}
	layer := r.blob("application/vnd.cncf.flux.content.v1.tar+gzip", []byte("the artifact of "+t.Name()))
	r.digest = r.manifest(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": r.blob("application/vnd.cncf.flux.config.v1+json", []byte("{}")), "layers": []any{layer},
	})
	r.tags["v1"] = r.digest
	return r
}

// blob stores bytes and returns their descriptor.
func (r *repository) blob(mediaType string, body []byte) map[string]any {
	digest := digestOf(body)
	r.blobs[digest] = body
	return map[string]any{"mediaType": mediaType, "digest": digest, "size": len(body)}
}

func (r *repository) manifest(mediaType string, m map[string]any) string {
	r.t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		r.t.Fatal(err)
	}
	digest := digestOf(body)
	if _, known := r.types[digest]; !known {
		r.order = append(r.order, digest)
	}
	r.blobs[digest], r.types[digest] = body, mediaType
	return digest
}

func (r *repository) descriptor(digest string) map[string]any {
	return map[string]any{"mediaType": r.types[digest], "digest": digest, "size": len(r.blobs[digest])}
}

// attach puts evidence where it belongs: a bundle among the referrers of about,
// a layer under its .sig tag.
func (r *repository) attach(e evidence, about string) string {
	r.t.Helper()
	if e.layout == gate.LayoutTag {
		layer := r.blob(simpleSigning, e.payload)
		layer["annotations"] = e.annotations
		r.layers = append(r.layers, layer)
		digest := r.manifest(manifestType, map[string]any{
			"schemaVersion": 2, "mediaType": manifestType,
			"config": r.blob("application/vnd.oci.image.config.v1+json", []byte(`{"rootfs":{}}`)), "layers": r.layers,
		})
		r.tags[signatureTagOf(about)] = digest
		return digest
	}
	return r.refer(about, r.blob("application/vnd.dev.sigstore.bundle.v0.3+json", e.bundle))
}

// refer stores a manifest with the given layers that names about as subject.
func (r *repository) refer(about string, layers ...any) string {
	r.t.Helper()
	digest := r.manifest(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json",
		"config": r.blob(emptyType, []byte("{}")), "layers": layers, "subject": r.descriptor(about),
		"annotations": map[string]any{"dev.sigstore.bundle.content": "dsse-envelope"},
	})
	d := r.descriptor(digest)
	// As ghcr.io reports it.
	d["artifactType"] = emptyType
	r.referrer = append(r.referrer, d)
	return digest
}

// server is a registry with the content of a repository.
type server struct {
	*httptest.Server
	mutex    sync.Mutex
	requests []string
	inner    http.Handler
	// before may answer instead; it says whether it did.
	before func(http.ResponseWriter, *http.Request) bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mutex.Lock()
	s.requests = append(s.requests, req.Method+" "+req.URL.Path)
	before := s.before
	s.mutex.Unlock()
	if before != nil && before(w, req) {
		return
	}
	s.inner.ServeHTTP(w, req)
}

func (s *server) count() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.requests)
}

// serve puts the repository into a registry, with the referrers API or with the
// index under the fallback tag.
func (r *repository) serve(api bool) *server {
	r.t.Helper()
	s := &server{inner: ociregistry.New(ociregistry.WithReferrersSupport(api), ociregistry.Logger(log.New(io.Discard, "", 0)))}
	s.Server = httptest.NewServer(s)
	r.t.Cleanup(s.Close)
	put := func(path, contentType string, body []byte, method string) {
		r.t.Helper()
		req, err := http.NewRequest(method, s.URL+path, bytes.NewReader(body))
		if err != nil {
			r.t.Fatal(err)
		}
		req.Header.Set("Content-Type", contentType)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			r.t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			r.t.Fatalf("%s %s: %s", method, path, resp.Status)
		}
	}
	for digest, body := range r.blobs {
		if _, isManifest := r.types[digest]; !isManifest {
			put("/v2/acme/platform/blobs/uploads/?digest="+digest, "application/octet-stream", body, http.MethodPost)
		}
	}
	for _, digest := range r.order {
		put("/v2/acme/platform/manifests/"+digest, r.types[digest], r.blobs[digest], http.MethodPut)
	}
	for tag, digest := range r.tags {
		put("/v2/acme/platform/manifests/"+tag, r.types[digest], r.blobs[digest], http.MethodPut)
	}
	if !api && len(r.referrer) > 0 {
		put("/v2/acme/platform/manifests/"+tagOf(r.digest), indexType, r.fallback(), http.MethodPut)
	}
	s.mutex.Lock()
	s.requests = nil
	s.mutex.Unlock()
	return s
}

// fallback is the index of the fallback tag.
func (r *repository) fallback() []byte {
	body, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": r.referrer})
	if err != nil {
		r.t.Fatal(err)
	}
	return body
}

func (s *server) target(r *repository) Target {
	return Target{Repository: "oci://" + strings.TrimPrefix(s.URL, "http://") + "/acme/platform", Digest: r.digest, Insecure: true}
}

// write writes the repository as an OCI layout.
func (r *repository) write(dir string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	write := func(path string, body []byte) {
		if err := os.WriteFile(filepath.Join(dir, path), body, 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	for digest, body := range r.blobs {
		write("blobs/sha256/"+strings.TrimPrefix(digest, "sha256:"), body)
	}
	var entries []map[string]any
	for _, digest := range r.order {
		entry := r.descriptor(digest)
		for tag, tagged := range r.tags {
			if tagged == digest {
				entry["annotations"] = map[string]any{refName: tag}
			}
		}
		entries = append(entries, entry)
	}
	index, err := json.MarshalIndent(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": entries}, "", "  ")
	if err != nil {
		r.t.Fatal(err)
	}
	write("index.json", append(index, '\n'))
	write("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
}

// deadline is generous where nothing is expected to wait.
func deadline(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// want is what the tests require.
func want() gate.Requirements {
	return gate.Requirements{Required: []signer.Signer{requiredSigner}, Digest: gate.DigestAny, Signature: gate.SignatureVerify}
}

func checker(t testing.TB, s *testsigstore.Sigstore) *Checker {
	t.Helper()
	return &Checker{Want: want(), TrustedRoot: writeRoot(t, s), grace: time.Minute}
}

func tellAll(s gate.Signatures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "complete %v, manifest %v, self-test %+v\n", s.Complete, s.ManifestRead, s.SelfTest)
	for _, f := range s.Found {
		fmt.Fprintf(&b, "  %s %s verified=%v step=%s why=%s\n", f.Layout, f.Identity.Subject, f.Verified, f.Step, f.Why)
	}
	for _, f := range s.Failures {
		fmt.Fprintf(&b, "  failure %s: %s: %s\n", f.Code, f.Title, f.Found)
	}
	for _, h := range s.Hints {
		fmt.Fprintf(&b, "  hint %s\n", h)
	}
	return b.String()
}

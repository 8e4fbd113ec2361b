package signature

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signer"
)

// realVectors is the directory of real signatures, which are read in place.
func realVectors(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("REAL_VECTORS")
	if dir == "" {
		t.Skip("REAL_VECTORS is not set: the real signatures are not checked")
	}
	return dir
}

func readFile(t testing.TB, parts ...string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestRealTag verifies real .sig signatures about the digests that they name.
// The artifacts' own manifests are not among the vectors, so no registry can
// answer for those; the signatures themselves are served by one.
func TestRealTag(t *testing.T) {
	t.Parallel()
	dir := realVectors(t)
	const issuer = "https://token.actions.githubusercontent.com"
	const workflow = "https://github.com/salrashid123/go-bazel-github-workflow/.github/workflows/release.yaml@refs/tags/"
	for name, ref := range map[string]string{"8c0d347a": "v0.0.28", "120ef883": "v0.0.26", "bbfdc97b": "v0.0.25"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			digest := strings.TrimSpace(string(readFile(t, dir, "legacy", name, "digest")))
			m, err := readManifest(readFile(t, dir, "legacy", name, "sig-manifest.json"))
			if err != nil || len(m.layers) != 1 {
				t.Fatalf("expected one layer, found %v, %v", m, err)
			}
			e := evidence{
				layout: gate.LayoutTag, digest: m.layers[0].Digest,
				payload: readFile(t, dir, "legacy", name, "payload.json"), annotations: m.layers[0].Annotations,
			}
			if digestOf(e.payload) != e.digest {
				t.Fatalf("expected the payload of the layer, found another")
			}
			v := keyless{mustRoot(t, dir, "public-good.json")}
			sig := readFile(t, dir, "legacy", name, "sig-manifest.json")
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				switch {
				case strings.HasSuffix(req.URL.Path, "/manifests/"+signatureTagOf(digest)):
					w.Header().Set("Content-Type", manifestType)
					_, _ = w.Write(sig)
				case strings.HasSuffix(req.URL.Path, "/blobs/"+e.digest):
					_, _ = w.Write(e.payload)
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			t.Cleanup(server.Close)
			where, _, err := newRegistry(strings.TrimPrefix(server.URL, "http://")+"/a/b", true, Credentials{}, http.DefaultTransport)
			if err != nil {
				t.Fatal(err)
			}
			where.use(where.guard, "http")
			h := newHunt(deadline(t, time.Minute), where, failures{}, v, digest, &Checker{})
			h.run()
			if found := h.found(); len(found) != 1 || !found[0].Verified || len(h.failed()) > 0 {
				t.Errorf("expected the registry's signature to verify, found %+v", found)
			}
			if !publicGood(v.material) {
				t.Error("expected the public-good root to be known as such")
			}
			got := v.verify(e, question{digest: digest})
			if !got.Verified || got.Identity != (signer.Identity{Issuer: issuer, Subject: workflow + ref}) {
				t.Fatalf("expected it to verify, found %+v", got)
			}
			if got.Claims.BuildTrigger != "push" || got.Claims.RunnerEnvironment != "github-hosted" || got.LoggedAt.IsZero() {
				t.Errorf("expected a build by push on GitHub's runner, found %+v", got)
			}
			test := selfTest(v, e, digest, []signer.Signer{{Issuer: issuer, Subject: got.Identity.Subject}})
			if test.DigestRefusedAt != gate.StepBinding || test.IdentityRefusedAt != gate.StepIdentity {
				t.Errorf("expected the self-test to refuse twice, found %+v", test)
			}
			github := keyless{mustRoot(t, dir, "github.json")}
			if publicGood(github.material) {
				t.Error("expected GitHub's root not to be taken for the public-good one")
			}
			if got := github.verify(e, question{digest: digest}); got.Verified || got.Step != gate.StepCertificate {
				t.Errorf("expected GitHub's root to refuse the certificate, found %+v", got)
			}
			changed := e
			changed.payload = []byte(strings.Replace(string(e.payload), "server_image", "server-image", 1))
			if got := v.verify(changed, question{digest: digest}); got.Verified || got.Step != gate.StepLog {
				t.Errorf("expected a changed payload to be refused by its log entry, found %+v", got)
			}
		})
	}
}

// TestRealServed serves real .sig signatures from a registry, about an artifact
// that is not theirs: they are about another digest there.
func TestRealServed(t *testing.T) {
	t.Parallel()
	dir := realVectors(t)
	r := newRepository(t)
	m, err := readManifest(readFile(t, dir, "legacy", "8c0d347a", "sig-manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	r.attach(evidence{
		layout: gate.LayoutTag, payload: readFile(t, dir, "legacy", "8c0d347a", "payload.json"), annotations: m.layers[0].Annotations,
	}, r.digest)
	r.attach(bundleEvidence(readFile(t, dir, "bundles", "reusable-workflow-attestation.sigstore.json")), r.digest)
	r.attach(bundleEvidence(readFile(t, dir, "bundles", "github-private-instance.jsonl")), r.digest)
	k := &Checker{Want: want(), TrustedRoot: filepath.Join(dir, "roots", "public-good.json")}
	for _, api := range []bool{true, false} {
		got := k.Check(deadline(t, time.Minute), r.serve(api).target(r))
		if len(got.Found) != 3 || !got.Complete || !got.PublicGood || got.SelfTest != nil {
			t.Fatalf("expected three candidates under the public-good root, found:\n%s", tellAll(got))
		}
		for _, f := range got.Found {
			if f.Verified || f.Step != gate.StepBinding {
				t.Errorf("expected a refusal at the binding, found %+v", f)
			}
		}
	}
}

// TestRealBundles verifies real bundles about the digests in their statements.
func TestRealBundles(t *testing.T) {
	t.Parallel()
	dir := realVectors(t)
	public := keyless{mustRoot(t, dir, "public-good.json")}

	e := bundleEvidence(readFile(t, dir, "bundles", "reusable-workflow-attestation.sigstore.json"))
	parsed, err := e.parse(true)
	if err != nil {
		t.Fatal(err)
	}
	got := public.verify(e, question{digest: parsed.claim.digests[0]})
	if !got.Verified || got.Kind != gate.KindAttestation {
		t.Fatalf("expected an attestation that verifies, found %+v", got)
	}
	if !strings.Contains(got.Identity.Subject, "/artifact-attestations-workflows/.github/workflows/attest.yml@09b495c3") {
		t.Errorf("expected the called workflow as subject, found %q", got.Identity.Subject)
	}
	if got.Claims.SourceRepository == "" || strings.Contains(got.Identity.Subject, strings.TrimPrefix(got.Claims.SourceRepository, "https://github.com/")) {
		t.Errorf("expected the caller in the claims, found %+v", got.Claims)
	}
	required := gate.Requirements{
		Required:     []signer.Signer{{Issuer: got.Identity.Issuer, Subject: got.Identity.Subject}},
		Attestations: []string{got.PredicateType},
	}
	findings, _ := gate.JudgeSignatures(required, gate.Signatures{
		Digest: parsed.claim.digests[0], Complete: true, ManifestRead: true, Found: []gate.Signature{got},
	}, parsed.claim.digests[0])
	shared := false
	for _, f := range findings {
		shared = shared || f.Code == gate.SignerShared && f.Outcome == gate.Note
	}
	if !shared {
		t.Errorf("expected a note that the signer is shared, found %+v", findings)
	}

	private := bundleEvidence(readFile(t, dir, "bundles", "github-private-instance.jsonl"))
	parsed, err = private.parse(true)
	if err != nil {
		t.Fatal(err)
	}
	q := question{digest: parsed.claim.digests[0]}
	if got := public.verify(private, q); got.Verified || got.Step != gate.StepCertificate || got.Hint == "" {
		t.Errorf("expected the public-good root to refuse the certificate with a hint, found %+v", got)
	}
	// Under GitHub's own root it still lacks a log, which the controller wants.
	if got := (keyless{mustRoot(t, dir, "github.json")}).verify(private, q); got.Verified {
		t.Errorf("expected a refusal for want of a log, found %+v", got)
	}
}

func mustRoot(t testing.TB, dir, name string) root.TrustedMaterial {
	t.Helper()
	material, err := readTrustedRoot(filepath.Join(dir, "roots", name))
	if err != nil {
		t.Fatal(err)
	}
	return material
}

// BenchmarkVerifyReal verifies a real signature under the public-good root.
func BenchmarkVerifyReal(b *testing.B) {
	dir := realVectors(b)
	m, err := readManifest(readFile(b, dir, "legacy", "8c0d347a", "sig-manifest.json"))
	if err != nil {
		b.Fatal(err)
	}
	e := evidence{layout: gate.LayoutTag, payload: readFile(b, dir, "legacy", "8c0d347a", "payload.json"), annotations: m.layers[0].Annotations}
	v := keyless{mustRoot(b, dir, "public-good.json")}
	q := question{digest: strings.TrimSpace(string(readFile(b, dir, "legacy", "8c0d347a", "digest")))}
	b.ReportAllocs()
	for b.Loop() {
		if got := v.verify(e, q); !got.Verified {
			b.Fatalf("expected it to verify, found %+v", got)
		}
	}
}

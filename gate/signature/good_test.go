package signature

import (
	"testing"
	"time"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signature/internal/testsigstore"
	"flux-verify-gate/gate/signer"
)

// goodCase is one kind of signature that must be accepted.
type goodCase struct {
	name  string
	make  func(t *testing.T, digest string) evidence
	kind  gate.Kind
	entry string
	when  time.Time
	// by is who signed; the zero value is the required signer.
	by signer.Signer
}

func goodCases(t *testing.T, s *testsigstore.Sigstore) []goodCase {
	t.Helper()
	return []goodCase{
		{"bundle", func(t *testing.T, d string) evidence { return goodBundle(t, s, d) }, gate.KindSignature, "dsse/0.0.1", at.Add(time.Minute), signer.Signer{}},
		{"bundle of Rekor v2", func(t *testing.T, d string) evidence {
			return bundleEvidence(marshal(t, makeBundle(t, s, testsigstore.Signing{
				Identity: requiredIdentity(), At: at, Log: testsigstore.LogV2, Payload: testsigstore.Statement(cosignPredicate, d),
			})))
		}, gate.KindSignature, "hashedrekord/0.0.2", at.Add(2 * time.Minute), signer.Signer{}},
		{"bundle with a stamp beside the log's time", func(t *testing.T, d string) evidence {
			return bundleEvidence(marshal(t, makeBundle(t, s, testsigstore.Signing{
				Identity: requiredIdentity(), At: at, Stamp: true, Payload: testsigstore.Statement(cosignPredicate, d),
			})))
		}, gate.KindSignature, "dsse/0.0.1", at.Add(time.Minute), signer.Signer{}},
		{"bundle about several subjects", func(t *testing.T, d string) evidence {
			return bundleEvidence(marshal(t, makeBundle(t, s, testsigstore.Signing{
				Identity: requiredIdentity(), At: at,
				Payload: testsigstore.Statement(cosignPredicate, digestOf([]byte("1")), d, digestOf([]byte("2"))),
			})))
		}, gate.KindSignature, "dsse/0.0.1", at.Add(time.Minute), signer.Signer{}},
		{"attestation", func(t *testing.T, d string) evidence {
			return bundleEvidence(marshal(t, makeBundle(t, s, testsigstore.Signing{
				Identity: requiredIdentity(), At: at, Payload: testsigstore.Statement(provenancePredicate, d),
			})))
		}, gate.KindAttestation, "dsse/0.0.1", at.Add(time.Minute), signer.Signer{}},
		{"tag", func(t *testing.T, d string) evidence { return goodLayer(t, s, d) }, gate.KindSignature, "hashedrekord/0.0.1", at.Add(time.Minute), signer.Signer{}},
		{"tag with a stamp", func(t *testing.T, d string) evidence {
			return makeLayer(t, s, testsigstore.Signing{
				Identity: requiredIdentity(), At: at, Stamp: true, Payload: testsigstore.Payload("elsewhere.example/mirror", d),
			})
		}, gate.KindSignature, "hashedrekord/0.0.1", at.Add(time.Minute), signer.Signer{}},
		{"tag without the chain", func(t *testing.T, d string) evidence {
			e := goodLayer(t, s, d)
			delete(e.annotations, annotationChain)
			return e
		}, gate.KindSignature, "hashedrekord/0.0.1", at.Add(time.Minute), signer.Signer{}},
		{"bundle with only the newer issuer extension", func(t *testing.T, d string) evidence {
			id := requiredIdentity()
			id.OnlyNewIssuer = true
			return bundleOf(s, id)(t, d)
		}, gate.KindSignature, "dsse/0.0.1", at.Add(time.Minute), signer.Signer{}},
		{"bundle with a second name", func(t *testing.T, d string) evidence {
			id := requiredIdentity()
			id.SecondSubject = "https://acme.example/second"
			return bundleOf(s, id)(t, d)
		}, gate.KindSignature, "dsse/0.0.1", at.Add(time.Minute), signer.Signer{}},
		{"e-mail subject", func(t *testing.T, d string) evidence {
			return bundleEvidence(marshal(t, makeBundle(t, s, testsigstore.Signing{
				Identity: testsigstore.Identity{Issuer: "https://accounts.google.com", Email: "jane@acme.example"},
				At:       at, Payload: testsigstore.Statement(cosignPredicate, d),
			})))
		}, gate.KindSignature, "dsse/0.0.1", at.Add(time.Minute), signer.Signer{Issuer: "https://accounts.google.com", Subject: "jane@acme.example"}},
	}
}

// TestGood verifies every kind of signature that must be accepted, in every
// place where it may lie, through the registry and through a layout.
func TestGood(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	for _, c := range goodCases(t, s) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.attach(c.make(t, r.digest), r.digest)
			dir := t.TempDir()
			r.write(dir)
			places := map[string]func() (*Checker, Target){
				"api": func() (*Checker, Target) { return checker(t, s), r.serve(true).target(r) },
				"tag": func() (*Checker, Target) { return checker(t, s), r.serve(false).target(r) },
				"layout": func() (*Checker, Target) {
					k := checker(t, s)
					k.Layout = dir
					return k, Target{Repository: "oci://registry.example/acme/platform", Digest: r.digest}
				},
			}
			for name, place := range places {
				k, target := place()
				got := k.Check(deadline(t, time.Minute), target)
				if !got.Complete || !got.ManifestRead || len(got.Found) != 1 || !got.Found[0].Verified {
					t.Fatalf("%s: expected one verified signature, found:\n%s", name, tellAll(got))
				}
				f := got.Found[0]
				if f.Kind != c.kind || len(f.EntryKinds) != 1 || f.EntryKinds[0] != c.entry || !f.LoggedAt.Equal(c.when) {
					t.Errorf("%s: expected %s, %s at %s, found %+v", name, c.kind, c.entry, c.when, f)
				}
				if got.MediaType != manifestType || got.Digest != r.digest || got.PublicGood {
					t.Errorf("%s: expected the artifact's facts, found %+v", name, got)
				}
				if got.SelfTest == nil || got.SelfTest.DigestRefusedAt != gate.StepBinding || got.SelfTest.IdentityRefusedAt != gate.StepIdentity {
					t.Errorf("%s: expected a self-test that was refused twice, found %+v", name, got.SelfTest)
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	s := newSigstore(b)
	v := keylessFor(b, s)
	digest := digestOf([]byte("artifact"))
	for _, c := range []struct {
		name string
		e    evidence
	}{{"bundle", goodBundle(b, s, digest)}, {"tag", goodLayer(b, s, digest)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := v.verify(c.e, question{digest: digest}); !got.Verified {
					b.Fatalf("expected it to verify, found %s: %s", got.Step, got.Why)
				}
			}
		})
	}
}

package signature

import (
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signature/internal/testsigstore"
)

// keyCase is one signature where public keys are required.
type keyCase struct {
	name string
	make func(*testing.T, string) evidence
	step gate.Step // empty: it verifies
	code gate.Code
	keys []string // any of them
}

func keyCases(t *testing.T, s *testsigstore.Sigstore) []keyCase {
	t.Helper()
	key, keyPEM, err := testsigstore.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	foreign, foreignPEM, err := testsigstore.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	bundleBy := func(change func(*testsigstore.Signing), spoil func(*protobundle.Bundle)) func(*testing.T, string) evidence {
		return func(t *testing.T, digest string) evidence {
			t.Helper()
			w := testsigstore.Signing{Key: key, At: at, Log: testsigstore.LogNone, Payload: testsigstore.Statement(cosignPredicate, digest)}
			if change != nil {
				change(&w)
			}
			b := makeBundle(t, s, w)
			if spoil != nil {
				spoil(b)
			}
			return bundleEvidence(marshal(t, b))
		}
	}
	layerBy := func(change func(*testsigstore.Signing), spoil func(*evidence)) func(*testing.T, string) evidence {
		return func(t *testing.T, digest string) evidence {
			t.Helper()
			w := testsigstore.Signing{Key: key, At: at, Log: testsigstore.LogNone, Payload: testsigstore.Payload("a", digest)}
			if change != nil {
				change(&w)
			}
			e := makeLayer(t, s, w)
			if spoil != nil {
				spoil(&e)
			}
			return e
		}
	}
	cases := []keyCase{
		{"bundle", bundleBy(nil, nil), "", "", nil},
		{"bundle with a log entry", bundleBy(func(w *testsigstore.Signing) { w.Log = testsigstore.LogV1 }, nil), "", "", nil},
		{"bundle with a log entry that does not hold", bundleBy(func(w *testsigstore.Signing) { w.Log, w.BadPromise = testsigstore.LogV1, true }, nil), "", "", nil},
		{"tag", layerBy(nil, nil), "", "", nil},
		{"tag with a log entry", layerBy(func(w *testsigstore.Signing) { w.Log = testsigstore.LogV1Promise }, nil), "", "", nil},
		{"tag with a log entry that does not hold", layerBy(func(w *testsigstore.Signing) { w.Log, w.BadPromise = testsigstore.LogV1Promise, true }, nil), "", "", nil},
		{"tag with a log entry that is no JSON", layerBy(nil, func(e *evidence) { e.annotations[annotationBundle] = "an entry" }), gate.StepParse, gate.Unsigned, nil},
		{"tag with a stamp that is no JSON", layerBy(nil, func(e *evidence) { e.annotations[annotationTimestamp] = "a stamp" }), gate.StepParse, gate.Unsigned, nil},
		{"tag with somebody's certificate beside the key", func(t *testing.T, d string) evidence {
			t.Helper()
			e := layerBy(nil, nil)(t, d)
			e.annotations[annotationCertificate] = goodLayer(t, s, d).annotations[annotationCertificate]
			return e
		}, gate.StepCertificate, gate.SignedByOthers, nil},
		{"attestation", bundleBy(func(w *testsigstore.Signing) {
			w.Payload = []byte(strings.Replace(string(w.Payload), cosignPredicate, provenancePredicate, 1))
		}, nil), "", gate.NotASignature, nil},
		{"bundle by another key", bundleBy(func(w *testsigstore.Signing) { w.Key = foreign }, nil), gate.StepSignature, gate.SignatureInvalid, nil},
		{"tag by another key", layerBy(func(w *testsigstore.Signing) { w.Key = foreign }, nil), gate.StepSignature, gate.SignatureInvalid, nil},
		{"bundle over something else", bundleBy(func(w *testsigstore.Signing) { w.BadSignature = true }, nil), gate.StepSignature, gate.SignatureInvalid, nil},
		{"tag over something else", layerBy(func(w *testsigstore.Signing) { w.BadSignature = true }, nil), gate.StepSignature, gate.SignatureInvalid, nil},
		{"bundle, changed statement", bundleBy(nil, func(b *protobundle.Bundle) {
			e := b.GetDsseEnvelope()
			e.Payload = []byte(strings.Replace(string(e.Payload), `"predicate":{}`, `"predicate":{"a":1}`, 1))
		}), gate.StepSignature, gate.SignatureInvalid, nil},
		{"tag, changed payload", layerBy(nil, func(e *evidence) {
			e.payload = []byte(strings.Replace(string(e.payload), `"optional":null`, `"optional":{}`, 1))
		}), gate.StepSignature, gate.SignatureInvalid, nil},
		{"bundle about another artifact", bundleBy(func(w *testsigstore.Signing) {
			w.Payload = testsigstore.Statement(cosignPredicate, otherDigest)
		}, nil), gate.StepBinding, gate.SignatureInvalid, nil},
		{"tag about another artifact", layerBy(func(w *testsigstore.Signing) { w.Payload = testsigstore.Payload("a", otherDigest) }, nil), gate.StepBinding, gate.SignatureInvalid, nil},
		{"bundle with a certificate", func(t *testing.T, d string) evidence { t.Helper(); return goodBundle(t, s, d) }, gate.StepCertificate, gate.SignedByOthers, nil},
		{"tag with a certificate", func(t *testing.T, d string) evidence { t.Helper(); return goodLayer(t, s, d) }, gate.StepCertificate, gate.SignedByOthers, nil},
		{"a payload of another type", layerBy(func(w *testsigstore.Signing) { w.Payload = []byte("{}") }, nil), gate.StepParse, gate.Unsigned, nil},
	}
	for i := range cases {
		cases[i].keys = []string{foreignPEM, keyPEM}
		if cases[i].step == gate.StepSignature {
			cases[i].keys = []string{keyPEM}
		}
	}
	return cases
}

// TestKeys verifies with required public keys, any of them.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range keyCases(t, sharedSigstore(t)) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.attach(c.make(t, r.digest), r.digest)
			requirements := gate.Requirements{Keys: &gate.Keys{Secret: "cosign-pub", PEM: c.keys}}
			for _, api := range []bool{true, false} {
				// No trusted root is needed: there is none at that path.
				k := &Checker{Want: requirements, TrustedRoot: "/nowhere"}
				got := k.Check(deadline(t, time.Minute), r.serve(api).target(r))
				if len(got.Found) != 1 || !got.Complete {
					t.Fatalf("expected one candidate, found:\n%s", tellAll(got))
				}
				f := got.Found[0]
				if f.Verified != (c.step == "") || f.Step != c.step {
					t.Fatalf("expected the step %q, found:\n%s", c.step, tellAll(got))
				}
				if f.Verified {
					if f.Key == "" || f.Identity.Subject != "" {
						t.Errorf("expected a key and no identity, found %+v", f)
					}
					if got.SelfTest == nil || got.SelfTest.DigestRefusedAt != gate.StepBinding || got.SelfTest.IdentityRefusedAt != gate.StepSignature {
						t.Errorf("expected a self-test that was refused twice, found %+v", got.SelfTest)
					}
				}
				findings, results := gate.JudgeSignatures(requirements, got, r.digest)
				if c.code == "" && !results[0].Counts {
					t.Errorf("expected it to count, found %+v", results)
				}
				for _, finding := range findings {
					if (finding.Outcome == gate.Fail) != (c.code != "") || finding.Outcome == gate.Fail && finding.Code != c.code {
						t.Errorf("expected %q, found %+v", c.code, finding)
					}
				}
			}
		})
	}
}

func TestReadKeys(t *testing.T) {
	t.Parallel()
	_, good, err := testsigstore.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]string{nil, {""}, {"a key"}, {good + good}, {good, "a key"}, {strings.ReplaceAll(good, "PUBLIC", "PRIVATE")}} {
		if keys, err := readKeys(bad); err == nil {
			t.Errorf("expected %q to be refused, found %v", bad, keys)
		}
	}
	if keys, err := readKeys([]string{good, good}); err != nil || len(keys) != 2 || len(keys[0].id) != 64 {
		t.Errorf("expected two keys, found %v, %v", keys, err)
	}
}

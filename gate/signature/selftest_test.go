package signature

import (
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signer"
)

// lax are verifiers with a fault, which the self-test must find.
type lax func(e evidence, q question) gate.Signature

func (l lax) verify(e evidence, q question) gate.Signature { return l(e, q) }

func TestSelfTest(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	real := keylessFor(t, s)
	digest := digestOf([]byte("artifact"))
	required := []signer.Signer{
		requiredSigner,
		{Issuer: requiredSigner.Issuer, SubjectPattern: `https://github\.com/acme/.*|https://github\.com/b/.*`},
		{IssuerPattern: ".*", SubjectPattern: "(?s).*"},
	}
	cases := []struct {
		name string
		v    verifier
		ok   bool
	}{
		{"sound", real, true},
		{"accepts everything", lax(func(evidence, question) gate.Signature { return gate.Signature{Verified: true} }), false},
		{"refuses everything", lax(func(evidence, question) gate.Signature { return gate.Signature{Step: gate.StepParse} }), false},
		{"does not look at the digest", lax(func(e evidence, q question) gate.Signature {
			q.digest = digest
			return real.verify(e, q)
		}), false},
		{"does not ask for the identity", lax(func(e evidence, q question) gate.Signature {
			q.accept = nil
			return real.verify(e, q)
		}), false},
		{"refuses the digest late", lax(func(e evidence, q question) gate.Signature {
			got := real.verify(e, q)
			if got.Step == gate.StepBinding {
				got.Step = gate.StepSignature
			}
			return got
		}), false},
	}
	for _, c := range cases {
		for name, e := range map[string]evidence{"bundle": goodBundle(t, s, digest), "tag": goodLayer(t, s, digest)} {
			got := selfTest(c.v, e, digest, required)
			ok := got.DigestRefusedAt == gate.StepBinding && got.IdentityRefusedAt == gate.StepIdentity
			if ok != c.ok || ok != (got.Detail == "") {
				t.Errorf("%s, %s: expected it to be sound %v, found %+v", c.name, name, c.ok, got)
			}
			findings := gate.JudgeSelfTest(gate.Requirements{Required: required}, gate.Signatures{
				Digest: digest, Found: []gate.Signature{{Verified: true}}, SelfTest: got,
			})
			if len(findings) != 1 || (findings[0].Outcome == gate.Pass) != c.ok || !c.ok && findings[0].Outcome != gate.Fail {
				t.Errorf("%s, %s: expected the finding to say so, found %+v", c.name, name, findings)
			}
		}
	}
}

func TestChange(t *testing.T) {
	t.Parallel()
	for _, digest := range []string{digestOf(nil), "sha256:0", "sha256:1"} {
		if got := changeDigest(digest); got == digest || len(got) != len(digest) {
			t.Errorf("expected another digest than %s, found %s", digest, got)
		}
	}
}

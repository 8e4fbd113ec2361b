package e2e

import (
	"os"
	"path/filepath"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
)

// keySecret is the name of the Secret with the public key.
const keySecret = "cosign"

// soon is the timeout of runs in which nothing is to be waited for.
const soon = "12s"

// withKey makes the scenario one with our key: the Secret, the policy, and what
// the gate requires.
func (s *stage) withKey() {
	s.t.Helper()
	s.secret(keySecret, map[string]string{"cosign.pub": s.ours.Public})
	s.requireKey(keySecret, s.ours)
	verifyByKey(&s.desired.Spec)
}

// withVerified makes the scenario one in which an artifact under the tag v1 is
// signed with our key, verified and served, and returns its digest.
func (s *stage) withVerified() string {
	s.t.Helper()
	s.withKey()
	a := s.pushSigned("v1", "a")
	s.apply()
	s.becomes("10a-verified")
	return a
}

func (s *stage) requireKey(secret string, keys ...cosigncli.Key) {
	s.t.Helper()
	s.required = in{"required-keys": s.keysInput(secret, keys...)}
}

// keysInput is a value of the input required-keys.
func (s *stage) keysInput(secret string, keys ...cosigncli.Key) string {
	s.t.Helper()
	var texts []string
	for _, key := range keys {
		text, err := os.ReadFile(key.Public)
		s.check(err)
		texts = append(texts, string(text))
	}
	required, err := yaml.Marshal(map[string]any{"secret": secret, "keys": texts})
	s.check(err)
	return string(required)
}

// keyed are the recorded cases of gate/testdata/cases/live made live again, and
// their neighbours: those with keys, and the few that were recorded keyless.
func keyed() []scenario {
	return slices.Concat(
		keySignatures(),
		policyEdits(),
		suspensions(),
		references(),
		rotations(),
		outages(),
		controllers(),
		withoutReferrers(),
		places(),
		recordedKeyless(),
	)
}

// keySignatures are the ways in which an artifact may be signed with a key, or not.
func keySignatures() []scenario {
	return []scenario{
		{name: "key-bundle", core: true, newer: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Bundle)
			s.apply()
			s.gate(in{"digest": a}).verified(a)
			s.becomes("01-signed-bundle")
		}},
		{name: "key-tag", core: true, run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.apply()
			s.gate(in{"digest": a}).verified(a)
			s.becomes("01-signed-bundle") // the conditions do not name the layout
		}},
		{name: "key-unsigned", core: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.apply()
			s.becomes("03-unsigned")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing, gate.NotReady)
		}},
		{name: "key-bundle-of-somebody-else", newer: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.signKey(a, s.theirs, cosigncli.Bundle)
			s.apply()
			s.becomes("04-otherkey-bundle")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
		}},
		{name: "key-of-somebody-else", core: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.signKey(a, s.theirs, cosigncli.Tag)
			s.apply()
			s.becomes("04-otherkey-bundle")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
		}},
		{name: "key-attestation-only", newer: true, run: func(s *stage) {
			// To the controller any bundle by the key is a signature.
			s.withKey()
			a := s.push("v1", "a")
			predicate := filepath.Join(s.t.TempDir(), "predicate.json")
			s.check(os.WriteFile(predicate, []byte(`{"result": "PASSED"}`), 0o600))
			s.check(s.stack.Sigstore.AttestKey(s.t.Context(), s.reference(a), s.ours, cosigncli.Bundle, "https://acme.example/tested", predicate))
			s.apply()
			s.becomes("01-signed-bundle")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.NotASignature)
		}},
		{name: "key-signed-while-waiting", core: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.apply()
			s.becomes("03-unsigned")
			run := s.gate(in{"digest": a})
			run.waits(gate.VerificationFailed)
			s.signKey(a, s.ours, cosigncli.Tag)
			run.verified(a)
		}},
	}
}

// policyEdits are changes of spec.verify under an artifact that is stored.
func policyEdits() []scenario {
	return []scenario{
		{name: "verify-missing", core: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.apply(noVerify)
			s.becomes("06a-noverify-unsigned-stored")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerifyAbsent, gate.Unsigned)
		}},
		{name: "verify-added-to-unsigned", core: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.apply(noVerify)
			s.awaitServing(a)
			s.apply(verifyByKey)
			s.becomesLike("generation 2, observed 1", "Ready False VerificationError of 2", "SourceVerified False VerificationError of 2", "artifact true")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.Unsigned, gate.NotReady)
			if got := serving(s.read()); got != a {
				s.t.Errorf("the controller serves %q now, want the unverified %s still", got, a)
			}
		}},
		{name: "verify-added-to-signed", run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.apply(noVerify)
			s.becomes("07a-noverify-signed-stored")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerifyAbsent)
			s.apply(verifyByKey)
			s.gate(in{"digest": a}).verified(a)
			s.becomes("07b-verify-added-to-signed-stored")
		}},
		{name: "verify-added-while-waiting", run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.apply(noVerify)
			s.awaitServing(a)
			run := s.gate(in{"digest": a})
			run.waits(gate.VerifyAbsent)
			s.apply(verifyByKey)
			run.verified(a)
		}},
		{name: "verify-removed", run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.apply(noVerify)
			s.awaitServing(a)
			s.apply(verifyByKey)
			s.becomes("07b-verify-added-to-signed-stored")
			s.apply(noVerify)
			s.becomes("08-verify-removed-after-verified")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerifyAbsent)
		}},
		{name: "verify-without-secret", run: func(s *stage) {
			s.withVerified()
			s.apply(func(spec *sourcev1.OCIRepositorySpec) {
				spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: "cosign"}
			})
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"timeout": soon}).rejected(gate.KeyMissing, gate.VerificationFailed)
		}},
		{name: "verify-with-another-secret", run: func(s *stage) {
			// Their Secret has our key too: the controller is content.
			s.withKey()
			s.secret("other", map[string]string{"cosign.pub": s.ours.Public, "theirs.pub": s.theirs.Public})
			a := s.pushSigned("v1", "a")
			s.apply(verifyByKeyOf("other"))
			s.becomes("10a-verified")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.KeyUnexpected)
		}},
		{name: "verify-by-notation", run: func(s *stage) {
			s.withVerified()
			s.apply(func(spec *sourcev1.OCIRepositorySpec) { spec.Verify.Provider = "notation" })
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"timeout": soon}).rejected(gate.VerifyProvider, gate.VerificationFailed)
		}},
	}
}

package signature

import (
	"fmt"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signer"
)

// selfTest verifies evidence that has just been verified once more, with one
// thing changed each time. A verifier that would accept anything is found out
// here, in every run and not only in its tests.
//
// Keyless, the changed identity is that of the required signers: each of them
// with something appended, and then matched as ever. With keys it is a changed
// key, and the step that must refuse it is the signature's.
func selfTest(v verifier, e evidence, digest string, required []signer.Signer) *gate.VerifierTest {
	test := &gate.VerifierTest{}
	changed := v.verify(e, question{digest: changeDigest(digest)})
	test.DigestRefusedAt = refusedAt(changed)
	if test.DigestRefusedAt != gate.StepBinding {
		test.Detail = fmt.Sprintf("with the digest changed: %s", tell(changed))
	}

	other := v
	accept := func(id signer.Identity) bool {
		for _, s := range required {
			if changeSigner(s).Matches(id) {
				return true
			}
		}
		return false
	}
	want := gate.StepIdentity
	if keys, ok := v.(keyed); ok {
		foreign, err := foreignKey()
		if err != nil {
			test.Detail = err.Error()
			return test
		}
		keys.keys = []publicKey{foreign}
		other, accept, want = keys, nil, gate.StepSignature
	}
	changed = other.verify(e, question{digest: digest, accept: accept})
	test.IdentityRefusedAt = refusedAt(changed)
	if test.IdentityRefusedAt != want && test.Detail == "" {
		test.Detail = fmt.Sprintf("with the identity changed: %s", tell(changed))
	}
	return test
}

// refusedAt is the step of a refusal; empty where there was none.
func refusedAt(s gate.Signature) gate.Step {
	if s.Verified {
		return ""
	}
	return s.Step
}

func tell(s gate.Signature) string {
	if s.Verified {
		return "it was accepted"
	}
	return fmt.Sprintf("it was refused at the step %s: %s", s.Step, s.Why)
}

// changeDigest changes the last digit.
func changeDigest(digest string) string {
	last := byte('0')
	if digest[len(digest)-1] == '0' {
		last = '1'
	}
	return digest[:len(digest)-1] + string(last)
}

// changeSigner asks for a signer that is nobody: a space stands in no subject.
func changeSigner(s signer.Signer) signer.Signer {
	const suffix = " (changed)"
	if s.SubjectPattern != "" {
		s.SubjectPattern = `(?:` + s.SubjectPattern + `) \(changed\)`
	} else {
		s.Subject += suffix
	}
	return s
}

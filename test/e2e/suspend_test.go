package e2e

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate"
)

// suspensions are sources that look fine while nothing is verified.
func suspensions() []scenario {
	return []scenario{
		{name: "suspended", core: true, run: func(s *stage) {
			a := s.withVerified()
			s.apply(suspend)
			s.becomes("09a-suspended-after-verified")
			s.gate(in{"digest": a}).rejected(gate.SourceSuspended, gate.VerificationStale)
		}},
		{name: "suspended-ref-changed", run: func(s *stage) {
			a := s.withVerified()
			b := s.pushSigned("v2", "b")
			s.apply(suspend)
			s.becomes("09a-suspended-after-verified")
			s.apply(follow("v2"))
			s.becomes("09c-suspended-and-ref-changed")
			s.gate(in{"digest": b}).rejected(gate.SourceSuspended, gate.VerificationStale, gate.DigestMismatch)
			if got := serving(s.read()); got != a {
				s.t.Errorf("the controller serves %q now, want %s still", got, a)
			}
		}},
		{name: "created-suspended", run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.apply(suspend)
			s.becomes("09d-created-suspended")
			s.gate(in{"digest": a}).rejected(gate.SourceSuspended, gate.VerificationMissing, gate.ArtifactMissing)
		}},
		{name: "suspended-with-the-policy", core: true, run: func(s *stage) {
			a := s.suspendedWithPolicy()
			s.gate(in{"digest": a}).rejected(gate.SourceSuspended, gate.VerificationMissing, gate.Unsigned)
		}},
		{name: "resumed", run: func(s *stage) {
			a := s.withVerified()
			s.apply(suspend)
			s.becomes("09a-suspended-after-verified")
			s.apply(resume)
			s.gate(in{"digest": a}).verified(a)
			s.becomesLike("generation 3, observed 3", "SourceVerified True Succeeded of 3", "Ready True Succeeded of 3")
		}},
		{name: "resumed-on-unsigned", run: func(s *stage) {
			a := s.suspendedWithPolicy()
			s.apply(resume)
			s.becomesLike("generation 3, observed 2", "SourceVerified False VerificationError of 3", "artifact true")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.Unsigned)
		}},
	}
}

// suspendedWithPolicy makes a source that has stored an unsigned artifact, and
// got policy and suspension in one edit.
func (s *stage) suspendedWithPolicy() string {
	s.t.Helper()
	s.withKey()
	a := s.push("v1", "a")
	s.apply(noVerify)
	s.awaitServing(a)
	s.becomes("06a-noverify-unsigned-stored")
	s.apply(verifyByKey, suspend)
	s.becomesLike("generation 2, observed 2", "Ready True Succeeded of 2", sourcev1.SourceVerifiedCondition, "artifact true")
	return a
}

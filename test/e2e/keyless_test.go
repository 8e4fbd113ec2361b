package e2e

import (
	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/githubtoken"
)

// keyless are scenarios with certificates that Fulcio issues for GitHub's
// tokens.
func keyless() []scenario {
	return []scenario{
		{name: "keyless", core: true, newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.push("v1", "a")
			s.signAs(a, githubtoken.Claims{})
			s.apply()
			s.gate(in{"digest": a}).verified(a, gate.TrustedRootCustom)
		}},
		{name: "keyless-other-branch", core: true, newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.push("v1", "a")
			s.signAs(a, githubtoken.Claims{Ref: "refs/heads/feature"})
			s.apply()
			s.gate(in{"digest": a, "timeout": "15s"}).rejected(gate.VerificationFailed)
		}},
	}
}

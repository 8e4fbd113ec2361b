package e2e

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
)

// recordedKeyless are the keyless ones of the recorded cases.
func recordedKeyless() []scenario {
	return []scenario{
		{name: "recorded-keyless", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.apply()
			s.becomes("20-keyless-ok")
			s.becomes("30-vsig-ok") // the same with signatures that no service made
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "recorded-keyless-wrong-issuer", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.apply(verifyBy(exactly("https://accounts.google.com", subject)))
			s.becomes("22-keyless-wrong-issuer")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.SignerMissing, gate.VerificationFailed)
		}},
		{name: "recorded-keyless-unsigned", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.push("v1", "a")
			s.apply()
			s.becomes("24-keyless-unsigned")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
		}},
		{name: "recorded-keyless-signed-with-a-key", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Bundle)
			s.apply()
			s.becomes("26-keyless-but-key-signed")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
		}},
		{name: "recorded-keyless-public-root", newer: true, run: func(s *stage) {
			// Whether the controller can reach the public root or not, it refuses.
			s.withSigner()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.apply(func(spec *sourcev1.OCIRepositorySpec) { spec.Verify.TrustedRootSecretRef = nil })
			s.becomes("27-keyless-public-root-offline")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
		}},
		{name: "recorded-keyless-two-entries", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.apply(verifyBy(exactly(issuer, subject), sourcev1.OIDCIdentityMatch{
				Issuer: exactly(issuer, subject).Issuer, Subject: "^https://github.com/acme/other.*$",
			}))
			s.becomes("28-keyless-two-identities")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.MatchersMultiple, gate.VerificationFailed)
		}},
		{name: "recorded-keyless-other-sigstore", newer: true, run: func(s *stage) {
			s.withSigner()
			s.secret(rootSecret, map[string]string{"trusted_root.json": s.anotherSigstore().TrustedRoot()})
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.apply()
			s.becomes("32-keyless-untrusted-root")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
		}},
	}
}

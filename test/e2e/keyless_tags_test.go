package e2e

import (
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
)

// tagged is a scenario in which somebody has signed under the tag
// sha256-<hex>.sig, under a policy with these entries.
func tagged(name string, core bool, by []job, entries []sourcev1.OIDCIdentityMatch, then func(s *stage, signer *testSigner, digest string)) scenario {
	return scenario{name: name, core: core, newer: true, run: func(s *stage) {
		s.withSigner()
		signer := s.testSigstore()
		verifyBy(entries...)(&s.desired.Spec)
		a := s.push("v1", "a")
		for _, b := range by {
			signer.signTag(a, b)
		}
		s.apply()
		then(s, signer, a)
	}}
}

// openTag is the scenario of a policy that the controller takes for anybody in
// this layout, and a stranger's signature.
func openTag(name string, entries ...sourcev1.OIDCIdentityMatch) scenario {
	return tagged(name, false, []job{ofStranger}, entries, func(s *stage, _ *testSigner, a string) {
		s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
		s.gate(in{"digest": a}, briefly).rejected(gate.SignerUnconstrained, gate.SignedByOthers)
	})
}

// refusedTag is the scenario of a signature that the controller refuses in a
// class.
func refusedTag(name string, by job, class gate.Class, reason gate.Code, entry sourcev1.OIDCIdentityMatch) scenario {
	return tagged(name, false, []job{by}, []sourcev1.OIDCIdentityMatch{entry}, func(s *stage, _ *testSigner, a string) {
		s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
		s.classed(s.gate(in{"digest": a}, patiently).rejected(reason, gate.VerificationFailed), class)
	})
}

// keylessTags are about certificates' signatures in the older layout.
func keylessTags() []scenario {
	exact := exactly(issuer, subject)
	one := []sourcev1.OIDCIdentityMatch{exact}
	two := []sourcev1.OIDCIdentityMatch{exactly(issuer, releaseSubject), exact}
	return []scenario{
		tagged("keyless-tag-signature", true, []job{ofDefault}, one, func(s *stage, _ *testSigner, a string) {
			s.gate(in{"digest": a}).verified(a)
		}),
		tagged("keyless-tag-signature-of-two", false, []job{ofStranger, ofDefault}, one, func(s *stage, _ *testSigner, a string) {
			s.gate(in{"digest": a}).verified(a)
		}),
		tagged("keyless-tag-two-entries", true, []job{ofDefault}, two, func(s *stage, _ *testSigner, a string) {
			// In this layout the entries are an OR.
			s.requireSigners(in{"issuer": issuer, "subject": subject}, in{"issuer": issuer, "subject": releaseSubject})
			s.gate(in{"digest": a}).verified(a, gate.MatchersMultiple)
		}),
		tagged("keyless-tag-dual-control", false, []job{ofDefault, ofRelease}, two, func(s *stage, _ *testSigner, a string) {
			s.requireSigners(in{"issuer": issuer, "subject": subject}, in{"issuer": issuer, "subject": releaseSubject})
			s.gate(in{"digest": a, "require-all": "true"}).verified(a, gate.MatchersMultiple)
		}),
		tagged("keyless-tag-hidden-by-a-bundle", true, []job{ofDefault}, one, func(s *stage, signer *testSigner, a string) {
			// Whoever can push a bundle has the controller refuse what is signed.
			s.gate(in{"digest": a}).verified(a)
			signer.signBundle(a, ofStranger)
			s.gate(in{"digest": a}, briefly).apart("the bundle came afterwards").verified(a, gate.WillRefuse)
			s.apply(touch)
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a}, briefly).rejected(gate.VerificationFailed)
			signer.signBundle(a, ofDefault)
			s.apply(touch)
			s.gate(in{"digest": a}).verified(a)
		}),
		tagged("keyless-tag-and-bundle", false, []job{ofDefault}, one, func(s *stage, signer *testSigner, a string) {
			signer.signBundle(a, ofDefault)
			s.gate(in{"digest": a}).verified(a)
		}),
		openTag("keyless-tag-no-identities"),
		openTag("keyless-tag-empty-subject", sourcev1.OIDCIdentityMatch{Issuer: exact.Issuer}),
		refusedTag("keyless-tag-other-signer", ofStranger, gate.ClassWrongSigner, gate.VerificationFailed, exact),
		refusedTag("keyless-tag-bad-pattern", ofDefault, gate.ClassBadPattern, gate.MatcherInvalid,
			sourcev1.OIDCIdentityMatch{Issuer: exact.Issuer, Subject: `^https://github\.com/acme/(?!mallory).*$`}),
	}
}

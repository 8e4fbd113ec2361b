package e2e

import (
	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/registries"
)

// withoutReferrers are registries without the referrers API, where a bundle is
// found by the index under the tag sha256-<hex>.
func withoutReferrers() []scenario {
	var all []scenario
	for _, kind := range []registries.Kind{registries.Tags, registries.Distribution} {
		for _, layout := range []cosigncli.Layout{cosigncli.Bundle, cosigncli.Tag} {
			all = append(all, scenario{
				name: "registry-" + string(kind) + "-" + layout.String(), newer: layout == cosigncli.Bundle,
				core: kind == registries.Distribution && layout == cosigncli.Bundle,
				run: func(s *stage) {
					s.ownRegistry(kind)
					s.withKey()
					a := s.push("v1", "a")
					s.signKey(a, s.ours, layout)
					s.apply()
					s.gate(in{"digest": a}).verified(a)
				},
			})
		}
		all = append(all, scenario{name: "registry-" + string(kind) + "-unsigned", run: func(s *stage) {
			s.ownRegistry(kind)
			s.withKey()
			a := s.push("v1", "a")
			s.apply(noVerify)
			s.awaitServing(a)
			s.apply(verifyByKey)
			s.becomesLike("SourceVerified False VerificationError of 2", "artifact true")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.Unsigned)
		}})
	}
	return append(all, scenario{name: "bundle-of-another-beside-ours", newer: true, run: func(s *stage) {
		// A bundle hides the signature under the tag from the controller, and ours
		// does not help: the gate says what the controller does.
		s.withKey()
		a := s.pushSigned("v1", "a")
		s.signKey(a, s.theirs, cosigncli.Bundle)
		s.apply()
		s.becomes("04-otherkey-bundle")
		s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
	}})
}

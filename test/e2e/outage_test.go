package e2e

import (
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/registries"
)

// outages are registries that are gone for a while, or have lost what they had.
func outages() []scenario {
	return []scenario{
		{name: "registry-down", core: true, run: func(s *stage) {
			s.ownRegistry(registries.Referrers)
			a := s.withVerified()
			s.becomes("13a-verified-before-registry-down")
			s.check(s.registry.Stop())
			s.reconcile()
			s.becomes("13c-verified-then-registry-down")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.FetchFailed, gate.NotReady, gate.RegistryUnreachable)
		}},
		{name: "registry-down-unnoticed", run: func(s *stage) {
			// The controller has not asked again; the gate does, in vain.
			s.ownRegistry(registries.Referrers)
			rarely(&s.desired.Spec)
			a := s.withVerified()
			s.check(s.registry.Stop())
			s.gate(in{"digest": a, "timeout": soon}).undecided(gate.RegistryUnreachable)
		}},
		{name: "registry-down-at-first", run: func(s *stage) {
			s.ownRegistry(registries.Distribution)
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.check(s.registry.Stop())
			s.apply()
			s.becomes("13f-created-while-registry-down")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.FetchFailed, gate.ArtifactMissing, gate.VerificationMissing)
		}},
		{name: "registry-back-up", run: func(s *stage) {
			s.ownRegistry(registries.Distribution)
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.check(s.registry.Stop())
			s.apply()
			s.becomes("13f-created-while-registry-down")
			run := s.gate(in{"digest": a})
			run.waits(gate.FetchFailed)
			s.check(s.registry.Restart(s.t.Context()))
			run.verified(a)
		}},
		{name: "registry-back-up-for-the-gate", run: func(s *stage) {
			// Down when the gate asks for signatures, and up again in time.
			s.ownRegistry(registries.Distribution)
			a := s.withVerified()
			s.check(s.registry.Stop())
			s.reconcile()
			s.becomes("13c-verified-then-registry-down")
			run := s.gate(in{"digest": a})
			run.waits(gate.FetchFailed)
			s.check(s.registry.Restart(s.t.Context()))
			run.verified(a)
		}},
		{name: "verify-added-while-registry-down", run: func(s *stage) {
			s.ownRegistry(registries.Referrers)
			s.withKey()
			a := s.push("v1", "a")
			s.apply(noVerify)
			s.becomes("13b-stored-noverify-before-registry-down")
			s.check(s.registry.Stop())
			s.apply(verifyByKey)
			s.becomesLike("generation 2, observed 1", "Ready False OCIArtifactPullFailed of 2", sourcev1.SourceVerifiedCondition, "artifact true")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.FetchFailed, gate.VerificationMissing, gate.RegistryUnreachable)
		}},
		{name: "ref-changed-while-registry-down", run: func(s *stage) {
			s.ownRegistry(registries.Referrers)
			a := s.withVerified()
			b := s.pushSigned("v2", "b")
			s.check(s.registry.Stop())
			s.apply(follow("v2"))
			s.becomesLike("generation 2, observed 1", "Ready False OCIArtifactPullFailed of 2", "SourceVerified True Succeeded of 1", "artifact true")
			s.gate(in{"digest": b, "timeout": soon}).rejected(gate.FetchFailed, gate.VerificationStale, gate.DigestMismatch, gate.SourceUnobserved)
			if got := serving(s.read()); got != a {
				s.t.Errorf("the controller serves %q now, want %s still", got, a)
			}
		}},
		{name: "registry-login-missing", run: func(s *stage) {
			// The source names a Secret with credentials that is not there.
			a := s.withVerified()
			s.apply(func(spec *sourcev1.OCIRepositorySpec) { spec.SecretRef = &meta.LocalObjectReference{Name: "login"} })
			s.becomesLike("FetchFailed True AuthenticationFailed of 2", "SourceVerified True Succeeded of 1", "artifact true")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.FetchFailed, gate.VerificationStale, gate.SourceUnobserved)
		}},
		{name: "registry-lost-content", run: func(s *stage) {
			s.ownRegistry(registries.Referrers)
			a := s.withVerified()
			s.check(s.registry.Restart(s.t.Context())) // it keeps manifests in memory
			s.reconcile()
			s.becomes("14c-untouched-object-after-registry-lost-content")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.FetchFailed, gate.RegistryDenied)
		}},
		{name: "registry-lost-content-unnoticed", run: func(s *stage) {
			s.ownRegistry(registries.Referrers)
			rarely(&s.desired.Spec)
			a := s.withVerified()
			s.check(s.registry.Restart(s.t.Context()))
			s.gate(in{"digest": a, "timeout": soon}).undecided(gate.RegistryDenied)
		}},
		{name: "registry-lost-the-signature", run: func(s *stage) {
			// The artifact is there again, byte for byte, and its signature is not.
			s.ownRegistry(registries.Distribution)
			rarely(&s.desired.Spec)
			a := s.withVerified()
			s.removeTagged(sigTag(a))
			s.gate(in{"digest": a, "timeout": soon}).apart("the signature was lost after the controller had verified").rejected(gate.Unsigned)
		}},
	}
}

package e2e

import (
	"path/filepath"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
	"flux-verify-gate/test/stack/registries"
)

// canaryName is the name in the shipped manifest and Role.
const canaryName = "flux-system-canary"

// canaries are the scenarios of the input canary: a good deployment, verified,
// and beside it a second source with the same policy over an artifact that must
// be refused.
func canaries() []scenario {
	// refused are the artifacts that make a canary.
	refused := func(name string, core bool, setUp func(s *stage), sign func(s *stage, digest string), class gate.Class) scenario {
		return scenario{name: name, core: core, newer: true, run: func(s *stage) {
			setUp(s)
			a := s.goodBeside(sign)
			s.applyCanary()
			got := s.gate(in{"digest": a}, s.canary()).verified(a)
			if c := got.Report.Canary; c == nil || c.Class != class {
				s.t.Errorf("got the canary %+v, want it refused in the class %s", c, class)
			}
		}}
	}
	unsigned := func(*stage, string) {}
	// broken are canaries whose failure says nothing: the verdict is undecided.
	broken := func(name string, prepare func(s *stage), changes ...func(*sourcev1.OCIRepositorySpec)) scenario {
		return scenario{name: name, newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.goodBeside(unsigned)
			if prepare != nil {
				prepare(s)
			}
			s.applyCanary(changes...)
			s.gate(in{"digest": a, "timeout": "75s"}, s.canary()).undecided(gate.CanaryAccepted)
		}}
	}
	return []scenario{
		refused("canary-unsigned", true, (*stage).withSigner, unsigned, gate.ClassNoSignature),
		refused("canary-of-another-signer", true, (*stage).withSigner, func(s *stage, digest string) { s.signAs(digest, stranger) }, gate.ClassWrongSigner),
		refused("canary-of-another-key", false, (*stage).withKey, func(s *stage, digest string) { s.signKey(digest, s.theirs, cosigncli.Bundle) }, gate.ClassNoMatchingKey),
		{name: "canary-accepted", newer: true, run: func(s *stage) {
			// The policy accepts every workflow of the world; what is refused
			// beside it is only the unsigned.
			s.withSigner()
			wide := exactly(issuer, subject)
			wide.Subject = "^https://github\\.com/"
			verifyBy(wide)(&s.desired.Spec)
			a := s.goodBeside(func(s *stage, digest string) { s.signAs(digest, stranger) })
			s.applyCanary()
			s.gate(in{"digest": a, "timeout": "75s"}, s.canary()).rejected(gate.PolicyTooWide, gate.CanaryAccepted)
		}},
		{name: "canary-without-policy", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.goodBeside(unsigned)
			s.applyCanary(noVerify)
			s.gate(in{"digest": a, "timeout": "75s"}, s.canary()).rejected(gate.CanaryAccepted, gate.CanaryDiffers)
		}},
		{name: "canary-of-another-policy", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.goodBeside(unsigned)
			s.applyCanary(verifyBy(exactly(issuer, releaseSubject)))
			s.gate(in{"digest": a, "timeout": "75s"}, s.canary()).rejected(gate.CanaryDiffers)
		}},
		{name: "canary-missing", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.goodBeside(unsigned)
			s.gate(in{"digest": a, "timeout": "75s"}, s.canary()).undecided(gate.CanaryAccepted)
		}},
		{name: "canary-not-permitted", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.goodBeside(unsigned)
			s.applyCanary()
			s.applyYAML("admin", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: flux-verify-gate-canary, namespace: "+s.namespace+"}, rules: []}")
			s.gate(in{"digest": a, "timeout": "75s"}, s.canary()).undecided(gate.AccessDenied)
		}},
		broken("canary-suspended", nil, suspend),
		broken("canary-registry-down", nil, func(spec *sourcev1.OCIRepositorySpec) {
			spec.URL = "oci://127.0.0.1:1/acme/platform"
		}),
		broken("canary-tag-gone", nil, follow("gone")),
		{name: "canary-secret-broken", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.goodBeside(unsigned)
			// The source is not verified again; the canary is, at every try.
			s.secret(rootSecret, map[string]string{"trusted_root.json": filepath.Join("..", "..", "go.mod")})
			s.applyCanary()
			s.gate(in{"digest": a, "timeout": "75s"}, s.canary()).undecided(gate.CanaryAccepted)
		}},
		{name: "canary-of-several-identities", newer: true, run: func(s *stage) {
			// Every bundle is refused for that, so nothing is shown.
			s.withSigner()
			a := s.goodBeside(func(s *stage, digest string) { s.signAs(digest, stranger) })
			s.applyCanary(verifyBy(exactly(issuer, subject), exactly(issuer, releaseSubject)))
			s.gate(in{"digest": a, "timeout": "75s"}, s.canary()).is(gate.Rejected, gate.CanaryDiffers, gate.CanaryAccepted)
		}},
		{name: "canary-sigstore-unreachable", newer: true, run: func(s *stage) {
			// Both policies trust the public Sigstore, which cannot be reached
			// from here: the source fails too, and the canary shows nothing.
			s.withSigner()
			s.desired.Spec.Verify.TrustedRootSecretRef = nil
			s.permit("role-canary.yaml", canaryName)
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.apply()
			s.push("canary", "canary")
			s.applyCanary()
			got := s.gate(in{"digest": a, "timeout": "75s"}, s.canary()).uncompared("the public Sigstore cannot be reached").
				rejected(gate.VerificationFailed, gate.CanaryAccepted)
			if f := got.Finding(s.t, gate.CanaryAccepted); f.Outcome != gate.Unknown {
				s.t.Errorf("got the outcome %s for a canary that nobody could verify, want unknown", f.Outcome)
			}
		}},
		{name: "canary-comes-late", newer: true, run: func(s *stage) {
			s.ownRegistry(registries.Tags)
			s.withSigner()
			a := s.goodBeside(unsigned)
			g := s.gate(in{"digest": a, "timeout": "90s"}, s.canary())
			g.Saw("canary-accepted")
			s.applyCanary()
			g.verified(a)
		}},
	}
}

// goodBeside deploys a signed artifact that is verified, and pushes another
// under the canary's tag, signed as the scenario says.
func (s *stage) goodBeside(sign func(s *stage, digest string)) string {
	s.t.Helper()
	s.permit("role-canary.yaml", canaryName)
	a := s.push("v1", "a")
	if s.required["required-keys"] != "" {
		s.signKey(a, s.ours, cosigncli.Bundle)
	} else {
		s.signAs(a, githubtoken.Claims{})
	}
	s.apply()
	s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
	sign(s, s.push("canary", "canary"))
	return a
}

// canary is the input that asks for the canary.
func (s *stage) canary() in { return in{"canary": s.namespace + "/" + canaryName} }

// applyCanary applies the canary: the source as it was applied last, under the
// tag canary, with changes.
func (s *stage) applyCanary(changes ...func(*sourcev1.OCIRepositorySpec)) {
	s.t.Helper()
	canary := s.desired.DeepCopy()
	canary.Name = canaryName
	canary.Spec.Reference = &sourcev1.OCIRepositoryRef{Tag: "canary"}
	for _, change := range changes {
		change(&canary.Spec)
	}
	_, err := s.objects().Apply(s.t.Context(), canaryName, plain(s.t, canary), metav1.ApplyOptions{FieldManager: "kustomize-controller", Force: true})
	s.check(err)
	s.t.Cleanup(func() {
		ctx, cancel := afterTest()
		defer cancel()
		_ = s.objects().Delete(ctx, canaryName, metav1.DeleteOptions{})
	})
	if canary.Spec.Suspend {
		return
	}
	// The gate waits for its word too; this keeps its time-out for the verdict.
	s.awaitCanary()
}

// awaitCanary waits until the controller has come to the canary.
func (s *stage) awaitCanary() {
	s.t.Helper()
	s.eventually("a word about the canary", func() bool {
		u, err := s.objects().Get(s.t.Context(), canaryName, metav1.GetOptions{})
		s.check(err)
		c := condition(s.typed(u), meta.ReadyCondition)
		return c != nil && c.Status != metav1.ConditionUnknown
	})
}

package e2e

import (
	"os"
	"path/filepath"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/githubtoken"
	"flux-verify-gate/test/stack/localsigstore"
)

// anotherSigstore runs a Sigstore of the scenario's own.
func (s *stage) anotherSigstore() *localsigstore.Sigstore {
	s.t.Helper()
	other, err := s.stack.NewSigstore(s.t.Context(), "sigstore-of-"+s.namespace)
	s.check(err)
	s.t.Cleanup(func() { s.mustNot("stop the Sigstore", other.Stop()) })
	return other
}

// brokenRoot is the scenario of a good signature under a policy whose trusted
// root cannot be used.
func brokenRoot(name string, class gate.Class, breakIt func(s *stage)) scenario {
	return scenario{name: name, newer: true, run: func(s *stage) {
		s.withSigner()
		breakIt(s)
		a := s.signed(githubtoken.Claims{})
		s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
		got := s.gate(in{"digest": a}, briefly).rejected(gate.VerificationFailed)
		s.classed(got, class)
	}}
}

// keylessRoots are about which Sigstore is trusted.
func keylessRoots() []scenario {
	return []scenario{
		{name: "keyless-services-stopped", core: true, newer: true, run: func(s *stage) {
			// Neither side needs a service of Sigstore's to verify.
			s.withSigner()
			other := s.anotherSigstore()
			s.trustRoot(other.TrustedRoot())
			a := s.push("v1", "a")
			s.signAt(other, a, githubtoken.Claims{})
			s.check(other.Stop())
			s.apply()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-untrusted-sigstore", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.push("v1", "a")
			s.signAt(s.anotherSigstore(), a, githubtoken.Claims{})
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a}, patiently).rejected(gate.VerificationFailed)
		}},
		{name: "keyless-untrusted-sigstore-beside", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.signAt(s.anotherSigstore(), a, githubtoken.Claims{})
			s.apply()
			s.gate(in{"digest": a}).verified(a, gate.SignatureInvalid)
		}},
		{name: "keyless-root-rotated", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.signed(githubtoken.Claims{})
			s.gate(in{"digest": a}).verified(a)
			other := s.anotherSigstore()
			s.trustRoot(other.TrustedRoot())
			// The controller does not look again by itself; the gate does.
			s.gate(in{"digest": a}, briefly).apart("the trusted root was replaced after the controller had verified").
				rejected(gate.SignatureInvalid, gate.ControllerDisagrees)
			s.apply(touch)
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a}, briefly).rejected(gate.VerificationFailed, gate.SignatureInvalid)
			s.signAt(other, a, githubtoken.Claims{})
			s.apply(touch)
			s.gate(in{"digest": a}).verified(a, gate.SignatureInvalid)
		}},
		{name: "keyless-public-root-offline", newer: true, run: func(s *stage) {
			s.withSigner()
			s.desired.Spec.Verify.TrustedRootSecretRef = nil
			a := s.signed(githubtoken.Claims{})
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a, "trusted-root": "tuf"}, briefly).rejected(gate.VerificationFailed)
			s.gate(in{"digest": a}, briefly).rejected(gate.VerificationFailed, gate.TrustedRootDiffers)
		}},
		{name: "keyless-gate-with-the-public-root", core: true, newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.signed(githubtoken.Claims{})
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.gate(in{"digest": a, "trusted-root": "tuf"}, briefly).undecided(gate.TrustedRootDiffers, gate.TrustedRootUnavailable)
		}},
		{name: "keyless-gate-without-the-root-file", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.signed(githubtoken.Claims{})
			s.gate(in{"digest": a, "trusted-root": filepath.Join(s.t.TempDir(), "missing.json")}).undecided(gate.BadInput)
		}},
		brokenRoot("keyless-root-secret-missing", gate.ClassSecretMissing, func(s *stage) {
			s.desired.Spec.Verify.TrustedRootSecretRef.Name = "of-nobody"
		}),
		brokenRoot("keyless-root-secret-with-another-entry", gate.ClassSecretMissing, func(s *stage) {
			s.secret("half", map[string]string{"root.json": s.stack.Sigstore.TrustedRoot()})
			s.desired.Spec.Verify.TrustedRootSecretRef.Name = "half"
		}),
		brokenRoot("keyless-root-secret-broken", gate.ClassSigstoreTrouble, func(s *stage) {
			path := filepath.Join(s.t.TempDir(), "broken.json")
			s.check(os.WriteFile(path, []byte("{}"), 0o600))
			s.secret("broken", map[string]string{"trusted_root.json": path})
			s.desired.Spec.Verify.TrustedRootSecretRef.Name = "broken"
		}),
	}
}

package e2e

import (
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
)

// refusingPolicy is the scenario of a good signature under a policy with which
// the controller refuses everything.
func refusingPolicy(name string, core bool, class gate.Class, reason gate.Code, entries ...sourcev1.OIDCIdentityMatch) scenario {
	return scenario{name: name, core: core, newer: true, run: func(s *stage) {
		s.withSigner()
		verifyBy(entries...)(&s.desired.Spec)
		a := s.signed(githubtoken.Claims{})
		s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
		got := s.gate(in{"digest": a}, patiently).rejected(reason, gate.VerificationFailed)
		s.classed(got, class)
	}}
}

// widePolicy is the scenario of a policy that accepts the required signer and
// more: the controller is content, and the gate names somebody else who could
// sign.
func widePolicy(name string, core bool, entry sourcev1.OIDCIdentityMatch) scenario {
	return scenario{name: name, core: core, newer: true, run: func(s *stage) {
		s.withSigner()
		verifyBy(entry)(&s.desired.Spec)
		a := s.signed(githubtoken.Claims{})
		s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
		got := s.gate(in{"digest": a}, briefly).rejected(gate.PolicyTooWide)
		witness := slices.IndexFunc(got.Report.Policy.Witnesses, func(w gate.Witness) bool { return w.Code == gate.PolicyTooWide })
		switch {
		case witness < 0:
			s.t.Error("no witness is in the report")
		case got.Report.Policy.Witnesses[witness].Subject == subject && got.Report.Policy.Witnesses[witness].Issuer == issuer:
			s.t.Error("the witness is the required signer")
		}
		suggested := got.Report.Policy.Suggested
		if suggested == nil {
			s.t.Fatal("no entry is suggested")
		}
		// The suggestion, taken over as it is, must be good for both.
		s.apply(verifyBy(sourcev1.OIDCIdentityMatch{Issuer: suggested.Issuer, Subject: suggested.Subject}))
		s.gate(in{"digest": a}).verified(a)
	}}
}

// keylessPolicies are about what the policy says.
func keylessPolicies() []scenario {
	exact := exactly(issuer, subject)
	return []scenario{
		refusingPolicy("keyless-two-entries", true, gate.ClassMultipleIdentities, gate.MatchersMultiple, exact, exactly(issuer, releaseSubject)),
		refusingPolicy("keyless-no-identities", true, gate.ClassNoIdentity, gate.SignerUnconstrained),
		refusingPolicy("keyless-empty-subject", false, gate.ClassNoIdentity, gate.SignerUnconstrained, sourcev1.OIDCIdentityMatch{Issuer: exact.Issuer}),
		refusingPolicy("keyless-empty-issuer", false, gate.ClassNoIdentity, gate.SignerUnconstrained, sourcev1.OIDCIdentityMatch{Subject: exact.Subject}),
		refusingPolicy("keyless-bad-pattern", true, gate.ClassBadPattern, gate.MatcherInvalid,
			sourcev1.OIDCIdentityMatch{Issuer: exact.Issuer, Subject: `^https://github\.com/acme/(?!mallory).*$`}),
		refusingPolicy("keyless-other-signer-in-the-policy", false, gate.ClassWrongSigner, gate.SignerMissing, exactly(issuer, releaseSubject)),
		widePolicy("keyless-unanchored", true, sourcev1.OIDCIdentityMatch{Issuer: issuer, Subject: "https://github.com/acme/platform"}),
		widePolicy("keyless-any-branch", false, sourcev1.OIDCIdentityMatch{
			Issuer: exact.Issuer, Subject: `^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/.*$`}),
		widePolicy("keyless-half-anchored-alternation", false, sourcev1.OIDCIdentityMatch{
			Issuer: exact.Issuer, Subject: `^https://github\.com/acme/other|https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$`}),
		widePolicy("keyless-issuer-without-end", false, sourcev1.OIDCIdentityMatch{
			Issuer: `^https://token\.actions\.githubusercontent\.com`, Subject: exact.Subject}),
		{name: "keyless-wildcard", newer: true, run: func(s *stage) {
			// Unlike nothing at all, .* satisfies the controller for a bundle.
			s.withSigner()
			verifyBy(sourcev1.OIDCIdentityMatch{Issuer: ".*", Subject: ".*"})(&s.desired.Spec)
			a := s.signed(stranger)
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.gate(in{"digest": a}, briefly).rejected(gate.SignerUnconstrained, gate.PolicyTooWide, gate.SignedByOthers)
		}},
		{name: "keyless-dot-not-escaped", newer: true, run: func(s *stage) {
			// Under the public Sigstore nobody can get a name that only an
			// unescaped dot lets in, so this is loose and not wide. There is no
			// way to that Sigstore here; the policy is judged all the same.
			s.withSigner()
			verifyBy(sourcev1.OIDCIdentityMatch{Issuer: "^" + issuer + "$", Subject: exact.Subject})(&s.desired.Spec)
			s.desired.Spec.Verify.TrustedRootSecretRef = nil
			a := s.signed(githubtoken.Claims{})
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a, "trusted-root": "tuf"}, briefly).rejected(gate.VerificationFailed, gate.PolicyLoose)
			s.gate(in{"digest": a, "trusted-root": "tuf", "policy-loose": "fail"}, briefly).rejected(gate.PolicyLoose, gate.VerificationFailed)
		}},
		{name: "keyless-notation", newer: true, run: func(s *stage) {
			s.withSigner()
			s.secret(keySecret, map[string]string{"cosign.pub": s.ours.Public})
			verifyByKey(&s.desired.Spec)
			s.desired.Spec.Verify.Provider = "notation"
			a := s.signed(githubtoken.Claims{})
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a}, briefly).rejected(gate.VerifyProvider)
		}},
		{name: "keyless-required-and-a-key-in-the-policy", newer: true, run: func(s *stage) {
			// Signed both ways, so nobody but the gate is discontent.
			s.withSigner()
			s.secret(keySecret, map[string]string{"cosign.pub": s.ours.Public})
			verifyByKey(&s.desired.Spec)
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Bundle)
			s.signAs(a, githubtoken.Claims{})
			s.apply()
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.gate(in{"digest": a}, briefly).rejected(gate.KeyUnexpected)
		}},
		{name: "keyless-identities-ignored", core: true, newer: true, run: func(s *stage) {
			s.withSigner()
			s.secret(keySecret, map[string]string{"cosign.pub": s.ours.Public})
			s.desired.Spec.Verify.SecretRef = &meta.LocalObjectReference{Name: keySecret}
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Bundle)
			s.apply()
			// The controller takes the key, whoever the identities name.
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			got := s.gate(in{"digest": a}, briefly).rejected(gate.IdentitiesIgnored)
			if slices.ContainsFunc(got.Report.Signers, func(r gate.SignerResult) bool { return r.Counts }) {
				s.t.Errorf("a signature by a key counts for an identity: %+v", got.Report.Signers)
			}
		}},
		{name: "keyless-policy-for-a-key-signature", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Bundle)
			s.apply()
			s.gate(in{"digest": a}, patiently).rejected(gate.VerificationFailed)
		}},
		{name: "key-policy-for-a-keyless-signature", newer: true, run: func(s *stage) {
			s.withKey()
			a := s.signed(githubtoken.Claims{})
			s.gate(in{"digest": a}, patiently).rejected(gate.VerificationFailed)
		}},
		{name: "key-required-of-a-keyless-policy", newer: true, run: func(s *stage) {
			s.withKey()
			s.secret(rootSecret, map[string]string{"trusted_root.json": s.stack.Sigstore.TrustedRoot()})
			verifyBy(exact)(&s.desired.Spec)
			a := s.signed(githubtoken.Claims{})
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			got := s.gate(in{"digest": a}, briefly).rejected(gate.KeyMissing, gate.SignedByOthers)
			if found := got.Finding(s.t, gate.SignedByOthers).Found; !strings.Contains(found, subject) {
				s.t.Errorf("the finding does not show who signed: %s", found)
			}
		}},
		{name: "keyless-policy-changed-after", newer: true, run: func(s *stage) {
			// A policy that no longer accepts what is being served: the controller
			// keeps it, and says that it would not take it again.
			s.withSigner()
			a := s.signed(githubtoken.Claims{})
			s.gate(in{"digest": a}).verified(a)
			s.apply(verifyBy(exactly(issuer, releaseSubject)))
			s.requireSigners(in{"issuer": issuer, "subject": releaseSubject})
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a}, patiently).rejected(gate.VerificationFailed, gate.SignedByOthers)
		}},
		{name: "keyless-signature-skipped", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.signed(githubtoken.Claims{})
			s.gate(in{"digest": a, "signature": "skip"}).verified(a, gate.SignatureSkipped)
		}},
		{name: "keyless-other-url", newer: true, run: func(s *stage) {
			// Whoever can write the source must not have the gate's credentials
			// sent to a registry of his own.
			s.withSigner()
			a := s.signed(githubtoken.Claims{})
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			const looks = "looking for signatures of"
			if got := s.gate(in{"digest": a}).verified(a); !strings.Contains(got.Stdout, looks) {
				s.t.Errorf("the log does not say that the registry is asked")
			}
			elsewhere := in{"digest": a, "url": "oci://registry.acme.example/platform", "registry-username": "ci", "registry-password": "hunter2"}
			if got := s.gate(elsewhere, briefly).rejected(gate.SourceURL, gate.NoAnswer); strings.Contains(got.Stdout, looks) || len(got.Report.Signers) > 0 {
				s.t.Errorf("another registry was asked: %v", got.Report.Signers)
			}
		}},
		{name: "keyless-other-digest", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.signed(githubtoken.Claims{})
			b := s.push("v2", "b")
			s.signAs(b, githubtoken.Claims{})
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.gate(in{"digest": b}, briefly).rejected(gate.DigestMismatch)
			s.gate(in{"digest": gate.DigestAny}, briefly).verified(a, gate.DigestMismatch)
		}},
	}
}

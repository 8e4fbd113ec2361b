package e2e

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
	"flux-verify-gate/test/stack/controller"
	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
)

// scannerSubject is nobody whom a policy here accepts, and the claims of its jobs.
const scannerSubject = "https://github.com/mallory/tools/.github/workflows/scan.yaml@refs/heads/main"

var scanner = githubtoken.Claims{Repository: "mallory/tools", WorkflowRef: strings.TrimPrefix(scannerSubject, "https://github.com/")}

// Two scenarios in which nothing is wrong with the deployment yet.
const (
	short = "12s"
	later = "it was attached after the controller had verified, and it does not verify again"
)

// disagree are the ways in which the controller's word and the signatures in the
// registry come apart.
func disagree() []scenario {
	return []scenario{
		{name: "hidden-by-bundle-of-other-key", core: true, newer: true, run: func(s *stage) {
			s.withKey()
			a := s.signedByKey("v1", cosigncli.Tag)
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionTrue)
			s.signKey(a, s.theirs, cosigncli.Bundle)
			got := s.gate(in{"digest": a}).apart(later).verified(a, gate.WillRefuse)
			s.says(got, gate.WillRefuse, "1.9", "bundle", "by a required key, valid", "refused at the step signature", "cosign")

			// It does refuse: any change of the spec makes it look again.
			s.apply(pollRarely)
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a, "timeout": short}).rejected(gate.VerificationFailed)
		}},
		{name: "hidden-by-attestation-of-stranger", newer: true, run: func(s *stage) {
			s.withKey()
			a := s.signedByKey("v1", cosigncli.Tag)
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionTrue)
			s.attestProvenance(a, scanner)
			got := s.gate(in{"digest": a}).apart(later).verified(a, gate.WillRefuse)
			s.says(got, gate.WillRefuse, "1.9", "bundle", "attestation by "+scannerSubject, "by a required key, valid")
		}},
		{name: "bundle-of-stranger-beside-ours", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.signedBy("v1", githubtoken.Claims{})
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionTrue)
			s.signAs(a, scanner)
			got := s.gate(in{"digest": a}).verified(a)
			s.without(got, gate.WillRefuse) // any bundle suffices
		}},
		{name: "policy-changed-before-look", newer: true, run: func(s *stage) {
			c := s.ownSources()
			s.withSigner()
			a := s.signedBy("v1", githubtoken.Claims{})
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionTrue)
			s.check(c.Stop())
			s.apply(verifyBy(exactly(issuer, releaseSubject)))
			s.requireSigners(in{"issuer": issuer, "subject": releaseSubject})
			got := s.gate(in{"digest": a, "timeout": short}).rejected(gate.SignedByOthers, gate.VerificationStale, gate.WillRefuse)
			s.without(got, gate.ControllerDisagrees)
			s.says(got, gate.SignedByOthers, subject)
			s.says(got, gate.WillRefuse, "bundle", subject)

			s.check(c.Restart(s.t.Context()))
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a, "timeout": short}).rejected(gate.VerificationFailed, gate.SignedByOthers)
		}},
		{name: "entry-added-before-look", newer: true, run: func(s *stage) {
			c := s.ownSources()
			s.withSigner()
			s.allowRelease()
			a := s.signedBy("v1", githubtoken.Claims{})
			s.apply(verifyBy(eitherWorkflow()))
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionTrue)
			s.check(c.Stop())
			s.apply(verifyBy(exactly(issuer, subject), exactly(issuer, releaseSubject)))
			got := s.gate(in{"digest": a, "timeout": short}).rejected(gate.MatchersMultiple, gate.VerificationStale, gate.WillRefuse)
			s.without(got, gate.ControllerDisagrees)
			s.says(got, gate.WillRefuse, "bundle", "several identities", subject)

			s.check(c.Restart(s.t.Context()))
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a, "timeout": short}).rejected(gate.MatchersMultiple, gate.VerificationFailed)
		}},
		{name: "key-replaced-gate-knows-old", run: func(s *stage) {
			s.withKey()
			a := s.signedByKey("v1", cosigncli.Tag)
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionTrue)
			s.secret(keySecret, map[string]string{"cosign.pub": s.theirs.Public})
			// The gate does not read Secrets, and says so.
			s.gate(in{"digest": a}).apart("the key was replaced after the controller had verified").verified(a, gate.KeysUnread)
		}},
		{name: "key-replaced-gate-knows-new", run: func(s *stage) {
			s.withKey()
			a := s.signedByKey("v1", cosigncli.Tag)
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionTrue)
			s.secret(keySecret, map[string]string{"cosign.pub": s.theirs.Public})
			s.requireKey(keySecret, s.theirs)
			got := s.gate(in{"digest": a}).apart("the key was replaced after the controller had verified").rejected(gate.SignatureInvalid, gate.WillRefuse)
			s.says(got, gate.WillRefuse, "required key", "somebody unknown", "sign the digest with the new key")

			// What the finding says to do heals it.
			s.signKey(a, s.theirs, cosigncli.Tag)
			s.apply(pollRarely)
			got = s.gate(in{"digest": a}).verified(a)
			s.without(got, gate.WillRefuse)
		}},
		{name: "signature-removed", core: true, run: func(s *stage) {
			s.withKey()
			a := s.signedByKey("v1", cosigncli.Tag)
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionTrue)
			s.removeTagged(a)
			got := s.gate(in{"digest": a, "timeout": short}).apart("the signature was removed after the controller had verified").
				rejected(gate.Unsigned, gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, s.stack.Line.Name, "finds no signature", "The gate sees nothing", "sign the digest again")
		}},
		{name: "signature-replaced", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.signedBy("v1", githubtoken.Claims{})
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionTrue)
			s.removeBundles(a)
			s.signAs(a, scanner)
			got := s.gate(in{"digest": a}).apart("the signature was replaced after the controller had verified").
				rejected(gate.SignedByOthers, gate.ControllerDisagrees)
			s.says(got, gate.SignedByOthers, scannerSubject)
			s.says(got, gate.ControllerDisagrees, "1.9", "bundle", "none by an identity of the policy", scannerSubject+", valid", "Do not promote")
		}},
		{name: "entry-added-during-verification", core: true, newer: true, run: func(s *stage) {
			// Nothing but the comparison sees this one: the required signer has
			// signed, and the policy accepts whom it may.
			s.withSigner()
			s.allowRelease()
			held := s.holdSignatures()
			a := s.signedBy("v1", githubtoken.Claims{})
			s.apply(verifyBy(eitherWorkflow()))
			held.wait(s)
			s.apply(verifyBy(exactly(issuer, subject), exactly(issuer, releaseSubject)))
			held.release()
			s.awaitAllGreen()
			got := s.gate(in{"digest": a}).apart("the policy changed while the verification ran").rejected(gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "1.9", "refuses every bundle", "several identities", subject+", valid", "while the controller verified")
		}},
		{name: "signer-changed-during-verification", core: true, newer: true, run: func(s *stage) {
			s.withSigner()
			held := s.holdSignatures()
			a := s.signedBy("v1", githubtoken.Claims{})
			s.apply()
			held.wait(s)
			s.apply(verifyBy(exactly(issuer, releaseSubject)))
			held.release()
			s.awaitAllGreen()
			s.requireSigners(in{"issuer": issuer, "subject": releaseSubject})
			got := s.gate(in{"digest": a}).apart("the policy changed while the verification ran").
				rejected(gate.SignedByOthers, gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "1.9", "bundle", "none by an identity of the policy", subject+", valid", "any change of the spec")

			// What the finding says to do brings it out.
			s.apply(pollRarely)
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a, "timeout": short}).rejected(gate.VerificationFailed, gate.SignedByOthers)
		}},
		{name: "secret-changed-during-verification", newer: true, run: func(s *stage) {
			s.withKey()
			s.secret("new", map[string]string{"cosign.pub": s.theirs.Public})
			held := s.holdSignatures()
			a := s.signedByKey("v1", cosigncli.Tag)
			s.apply()
			held.wait(s)
			s.apply(func(spec *sourcev1.OCIRepositorySpec) {
				spec.Verify.SecretRef = &meta.LocalObjectReference{Name: "new"}
			})
			held.release()
			s.awaitAllGreen()
			s.requireKey("new", s.theirs)
			got := s.gate(in{"digest": a}).apart("the policy changed while the verification ran").rejected(gate.SignatureInvalid, gate.WillRefuse)
			s.says(got, gate.WillRefuse, ".sig", "somebody unknown")
		}},
		{name: "signed-after-refusal", run: func(s *stage) {
			c := s.ownSources()
			s.withKey()
			a := s.push("v1", "a")
			s.apply()
			s.hold(c)
			s.signKey(a, s.ours, cosigncli.Tag)
			got := s.gate(in{"digest": a, "timeout": short}).apart("it was signed after the controller's last try").
				rejected(gate.VerificationFailed)
			s.without(got, gate.WillRefuse)

			s.check(c.Restart(s.t.Context()))
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "verified-by-new-policy-too-late", newer: true, run: func(s *stage) {
			// The first artifact stays. A second version of the policy is refused
			// for another's signature, and then the right one signs.
			c := s.ownSources()
			s.withSigner()
			a := s.signedBy("v1", scanner)
			s.apply(verifyBy(exactly(issuer, scannerSubject)))
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionTrue)
			s.apply(verifyBy(exactly(issuer, subject)))
			s.hold(c)
			s.signAs(a, githubtoken.Claims{})
			got := s.gate(in{"digest": a, "timeout": short}).apart("it was signed after the controller's last try").
				rejected(gate.VerificationFailed, gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "bundle", scannerSubject+", valid", subject+", valid", "reconciliation")

			s.check(c.Restart(s.t.Context()))
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "registry-hides-signer-from-controller", newer: true, run: func(s *stage) {
			s.withSigner()
			var a string
			s.behind(func(w http.ResponseWriter, r *http.Request, registry http.Handler) {
				s.t.Logf("%s %s %s", r.UserAgent(), r.Method, r.URL.Path)
				registry.ServeHTTP(w, r)
			})
			a = s.signedBy("v1", githubtoken.Claims{})
			s.apply()
			s.gate(in{"digest": a}).verified(a)
			s.t.Fail()
		}},
		{name: "tag-moved-between-looks", run: func(s *stage) {
			c := s.ownSources()
			s.withKey()
			a := s.signedByKey("v1", cosigncli.Tag)
			s.apply()
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.check(c.Stop())
			b := s.signedByKey("next", cosigncli.Tag)
			s.tag("v1", b)
			// What is being served is verified all the same, and is not the new one.
			s.gate(in{"digest": a}).verified(a)
			got := s.gate(in{"digest": b, "timeout": short}).rejected(gate.DigestMismatch)
			s.says(got, gate.DigestMismatch, a)
			s.without(got, gate.ControllerDisagrees)

			s.check(c.Restart(s.t.Context()))
			s.gate(in{"digest": b}).verified(b)
		}},
		{name: "root-replaced", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.signedBy("v1", githubtoken.Claims{})
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionTrue)
			other, err := s.stack.NewSigstore(s.t.Context(), "sigstore-of-"+s.namespace)
			s.check(err)
			s.t.Cleanup(func() { s.mustNot("stop Sigstore", other.Stop()) })
			s.secret(rootSecret, map[string]string{"trusted_root.json": other.TrustedRoot()})
			const why = "the trusted root was replaced after the controller had verified"
			s.gate(in{"digest": a}).apart(why).verified(a, gate.TrustedRootCustom)
			got := s.gate(in{"digest": a, "trusted-root": other.TrustedRoot()}).apart(why).
				rejected(gate.SignatureInvalid, gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "1.9", "bundle", subject, "refused at the step certificate")
		}},
	}
}

// pollRarely is a change of the spec that changes nothing about the policy.
func pollRarely(spec *sourcev1.OCIRepositorySpec) { spec.Interval.Duration *= 2 }

// says holds that a finding tells in its words each of these.
func (s *stage) says(got actiontest.Result, code gate.Code, texts ...string) {
	s.t.Helper()
	f := got.Finding(s.t, code)
	told := f.Title + " | " + f.Found + " | " + f.Remedy
	for _, text := range texts {
		if !strings.Contains(told, text) {
			s.t.Errorf("%s does not say %q: %s", code, text, told)
		}
	}
}

// without holds that there is no finding of a code but a pass.
func (s *stage) without(got actiontest.Result, code gate.Code) {
	s.t.Helper()
	for _, f := range got.Report.Findings {
		if f.Code == code && f.Outcome != gate.Pass {
			s.t.Errorf("got %s %s: %s", code, f.Outcome, f.Found)
		}
	}
}

// awaitAllGreen waits until everything in the status speaks of the live
// generation, and is good.
func (s *stage) awaitAllGreen() {
	s.t.Helper()
	s.await("everything green", func(o *sourcev1.OCIRepository) bool {
		for _, kind := range []string{meta.ReadyCondition, sourcev1.SourceVerifiedCondition} {
			if c := condition(o, kind); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != o.Generation {
				return false
			}
		}
		return o.Status.ObservedGeneration == o.Generation
	})
}

// hold stops a controller that has refused, and whose condition flaps, at a moment
// at which it has spoken.
func (s *stage) hold(c *controller.Controller) {
	s.t.Helper()
	for range 10 {
		s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
		s.check(c.Stop())
		live := s.read()
		if c := condition(live, sourcev1.SourceVerifiedCondition); c != nil && c.Status == metav1.ConditionFalse {
			return
		}
		s.check(c.Restart(s.t.Context()))
	}
	s.t.Fatal("the controller was never stopped while its refusal stood in the status")
}

// held is a registry that keeps those who ask for signatures waiting.
type held struct {
	reached, open chan struct{}
	first         sync.Once
}

// holdSignatures puts a proxy before the registry that answers nobody who asks
// for signatures until it is released.
func (s *stage) holdSignatures() *held {
	s.t.Helper()
	h := &held{reached: make(chan struct{}), open: make(chan struct{})}
	s.behind(func(w http.ResponseWriter, r *http.Request, registry http.Handler) {
		if asksForSignatures(r) {
			h.first.Do(func() { close(h.reached) })
			select {
			case <-h.open:
			case <-r.Context().Done():
				return
			}
		}
		registry.ServeHTTP(w, r)
	})
	return h
}

// wait returns when somebody waits for signatures.
func (h *held) wait(s *stage) {
	s.t.Helper()
	select {
	case <-h.reached:
	case <-time.After(patience):
		s.t.Fatal("nobody has asked for signatures")
	}
}

func (h *held) release() { close(h.open) }

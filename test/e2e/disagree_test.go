package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/controller"
	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
)

// scannerSubject is nobody whom a policy here accepts, and the claims of its jobs.
const scannerSubject = "https://github.com/mallory/tools/.github/workflows/scan.yaml@refs/heads/main"

var scanner = githubtoken.Claims{Repository: "mallory/tools", WorkflowRef: strings.TrimPrefix(scannerSubject, "https://github.com/")}

// later is why a bundle can hide a signature without a word of the controller.
const later = "it was attached after the controller had verified, and it does not verify again"

// disagree are the ways in which the controller's word and the signatures in the
// registry come apart.
func disagree() []scenario {
	return []scenario{
		{name: "hidden-by-bundle-of-other-key", core: true, newer: true, run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "v1")
			s.apply()
			s.awaitAllGreen()
			s.signKey(a, s.theirs, cosigncli.Bundle)
			got := s.gate(in{"digest": a}).apart(later).verified(a, gate.WillRefuse)
			s.says(got, gate.WillRefuse, "1.8 to 1.10", "bundles only", "valid signature under the .sig tag, by a required key", "refused at the step signature", "cosign 3")

			// And so it is: any change of the spec makes it look again.
			s.apply(touch)
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
		}},
		{name: "hidden-by-attestation-of-stranger", newer: true, run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "v1")
			s.apply()
			s.awaitAllGreen()
			s.attestProvenance(a, scanner)
			got := s.gate(in{"digest": a}).apart(later).verified(a, gate.WillRefuse)
			s.says(got, gate.WillRefuse, "1.8 to 1.10", "bundles only", "by "+scannerSubject, "valid signature under the .sig tag, by a required key")
		}},
		{name: "bundle-of-stranger-beside-ours", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.apply()
			s.awaitAllGreen()
			s.signAs(a, scanner)
			got := s.gate(in{"digest": a}).verified(a)
			s.without(got, gate.WillRefuse) // any bundle suffices
		}},
		{name: "policy-changed-before-look", newer: true, run: func(s *stage) {
			c := s.ownSources()
			s.withSigner()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.apply()
			s.awaitAllGreen()
			s.check(c.Stop())
			s.apply(verifyBy(exactly(issuer, releaseSubject)))
			s.requireSigners(in{"issuer": issuer, "subject": releaseSubject})
			got := s.gate(in{"digest": a, "timeout": soon}).rejected(gate.SignedByOthers, gate.VerificationStale, gate.WillRefuse)
			s.without(got, gate.ControllerDisagrees)
			s.says(got, gate.SignedByOthers, subject)
			s.says(got, gate.WillRefuse, "bundle", subject)

			s.check(c.Restart(s.t.Context()))
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.SignedByOthers)
		}},
		{name: "entry-added-before-look", newer: true, run: func(s *stage) {
			c := s.ownSources()
			s.withSigner()
			s.allowRelease()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.apply(verifyBy(either))
			s.awaitAllGreen()
			s.check(c.Stop())
			s.apply(verifyBy(exactly(issuer, subject), exactly(issuer, releaseSubject)))
			got := s.gate(in{"digest": a, "timeout": soon}).rejected(gate.MatchersMultiple, gate.VerificationStale, gate.WillRefuse)
			s.without(got, gate.ControllerDisagrees)
			s.says(got, gate.WillRefuse, "bundle", "several identities", subject)

			s.check(c.Restart(s.t.Context()))
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.MatchersMultiple, gate.VerificationFailed)
		}},
		{name: "key-replaced-gate-knows-old", run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "v1")
			s.apply()
			s.awaitAllGreen()
			s.secret(keySecret, map[string]string{"cosign.pub": s.theirs.Public})
			// The gate does not read Secrets, and says so.
			s.gate(in{"digest": a}).apart("the key was replaced after the controller had verified").verified(a, gate.KeysUnread)
		}},
		{name: "key-replaced-gate-knows-new", run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "v1")
			s.apply()
			s.awaitAllGreen()
			s.secret(keySecret, map[string]string{"cosign.pub": s.theirs.Public})
			s.requireKey(keySecret, s.theirs)
			got := s.gate(in{"digest": a}).apart("the key was replaced after the controller had verified").rejected(gate.SignatureInvalid, gate.WillRefuse)
			s.says(got, gate.WillRefuse, "required key", ".sig tag, refused at the step signature", "sign the digest with the key that the Secret holds now")

			// What the finding says to do heals it.
			s.signKey(a, s.theirs, cosigncli.Tag)
			s.apply(touch)
			got = s.gate(in{"digest": a}).verified(a)
			s.without(got, gate.WillRefuse)
		}},
		{name: "signature-removed", core: true, run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "v1")
			s.apply()
			s.awaitAllGreen()
			s.untag(sigTag(a))
			got := s.gate(in{"digest": a, "timeout": soon}).apart("the signature was removed after the controller had verified").
				rejected(gate.Unsigned, gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "finds no signature", "gate sees nothing", "sign the digest again")
		}},
		{name: "signature-replaced", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.apply()
			s.awaitAllGreen()
			s.removeBundles(a)
			s.signAs(a, scanner)
			got := s.gate(in{"digest": a}).apart("the signature was replaced after the controller had verified").
				rejected(gate.SignedByOthers, gate.ControllerDisagrees)
			s.says(got, gate.SignedByOthers, scannerSubject)
			s.says(got, gate.ControllerDisagrees, "1.9", "bundle", "none by an identity of the policy", "valid signature in a bundle, by "+scannerSubject, "Do not promote")
		}},
		{name: "entry-added-during-verification", core: true, newer: true, run: func(s *stage) {
			// Nothing but the comparison sees this one: the required signer has
			// signed, and the policy accepts whom it may.
			s.withSigner()
			s.allowRelease()
			a := s.changeDuringVerification(func(digest string) { s.signAs(digest, githubtoken.Claims{}) },
				verifyBy(either), verifyBy(exactly(issuer, subject), exactly(issuer, releaseSubject)))
			got := s.gate(in{"digest": a}).apart("the policy changed while the verification ran").rejected(gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "1.9", "refuses every bundle", "several identities", "valid signature in a bundle, by "+subject, "while the controller verified")

			// What anybody who can push can add explains nothing.
			s.pushUnreadable(a)
			got = s.gate(in{"digest": a, "timeout": soon}).apart("the policy changed while the verification ran").undecided(gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "cannot read", "refused at the step parse")
		}},
		{name: "signer-changed-during-verification", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.changeDuringVerification(func(digest string) { s.signAs(digest, githubtoken.Claims{}) },
				verifyBy(exactly(issuer, subject)), verifyBy(exactly(issuer, releaseSubject)))
			s.requireSigners(in{"issuer": issuer, "subject": releaseSubject})
			got := s.gate(in{"digest": a}).apart("the policy changed while the verification ran").
				rejected(gate.SignedByOthers, gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "1.9", "bundle", "none by an identity of the policy", "valid signature in a bundle, by "+subject, "any change of the spec")

			// What the finding says to do brings it out.
			s.apply(touch)
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.SignedByOthers)
		}},
		{name: "secret-changed-during-verification", newer: true, run: func(s *stage) {
			s.withKey()
			s.secret("new", map[string]string{"cosign.pub": s.theirs.Public})
			a := s.changeDuringVerification(func(digest string) { s.signKey(digest, s.ours, cosigncli.Tag) },
				verifyByKey, verifyByKeyOf("new"))
			s.requireKey("new", s.theirs)
			got := s.gate(in{"digest": a}).apart("the policy changed while the verification ran").rejected(gate.SignatureInvalid, gate.WillRefuse)
			s.says(got, gate.WillRefuse, ".sig tag, refused at the step signature")
		}},
		{name: "signed-after-refusal", run: func(s *stage) {
			c := s.ownSources()
			s.withKey()
			a := s.push("v1", "a")
			s.apply()
			s.hold(c)
			s.signKey(a, s.ours, cosigncli.Tag)
			got := s.gate(in{"digest": a, "timeout": soon}).apart("it was signed after the controller's last try").
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
			a := s.pushSignedAs("v1", scanner)
			s.apply(verifyBy(exactly(issuer, scannerSubject)))
			s.awaitAllGreen()
			s.apply(verifyBy(exactly(issuer, subject)))
			s.hold(c)
			s.signAs(a, githubtoken.Claims{})
			got := s.gate(in{"digest": a, "timeout": soon}).apart("it was signed after the controller's last try").
				rejected(gate.VerificationFailed, gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "bundle", scannerSubject, subject, "reconcil")

			s.check(c.Restart(s.t.Context()))
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "registry-shows-controller-another", newer: true, run: func(s *stage) {
			s.withSigner()
			shown := s.showTwoFaces()
			a := s.pushSignedAs("v1", scanner)
			shown.controllerOnly(s.referrers(a)...)
			s.signAs(a, githubtoken.Claims{})
			shown.gateOnly(s.referrers(a)...)
			s.apply(verifyBy(exactly(issuer, scannerSubject)))
			s.awaitAllGreen()
			s.apply(verifyBy(exactly(issuer, subject)))
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			got := s.gate(in{"digest": a, "timeout": soon}).apart("the registry shows the controller another signature").
				rejected(gate.VerificationFailed, gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "1.9", "bundle", "accepts", "by "+subject,
				"failed to verify", "the same repository")
		}},
		{name: "registry-shows-gate-nothing", newer: true, run: func(s *stage) {
			s.withSigner()
			shown := s.showTwoFaces()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			shown.controllerOnly(s.referrers(a)...)
			s.apply()
			s.awaitAllGreen()
			got := s.gate(in{"digest": a, "timeout": soon}).apart("the registry shows the gate nothing").
				rejected(gate.Unsigned, gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "1.9", "finds no signature", "gate sees nothing")
		}},
		{name: "tag-moved-between-looks", run: func(s *stage) {
			c := s.ownSources()
			s.withKey()
			a := s.pushSigned("v1", "v1")
			s.apply()
			s.awaitAllGreen()
			s.check(c.Stop())
			b := s.pushSigned("next", "next")
			s.tag("v1", b)
			// What is being served is verified all the same, and is not the new one.
			s.gate(in{"digest": a}).verified(a)
			got := s.gate(in{"digest": b, "timeout": soon}).rejected(gate.DigestMismatch)
			s.says(got, gate.DigestMismatch, a)
			s.without(got, gate.ControllerDisagrees)

			s.check(c.Restart(s.t.Context()))
			s.gate(in{"digest": b}).verified(b)
		}},
		{name: "root-replaced", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.apply()
			s.awaitAllGreen()
			other := s.anotherSigstore()
			s.secret(rootSecret, map[string]string{"trusted_root.json": other.TrustedRoot()})
			const why = "the trusted root was replaced after the controller had verified"
			s.gate(in{"digest": a}).apart(why).verified(a, gate.TrustedRootCustom)
			got := s.gate(in{"digest": a, "trusted-root": other.TrustedRoot()}).apart(why).
				rejected(gate.SignatureInvalid, gate.ControllerDisagrees)
			s.says(got, gate.ControllerDisagrees, "1.9", "bundle", subject, "refused at the step certificate")
		}},
	}
}

// awaitAllGreen waits until everything in the status speaks of the live
// generation, and is good.
func (s *stage) awaitAllGreen() {
	s.t.Helper()
	s.await("everything green", green)
}

func green(o *sourcev1.OCIRepository) bool {
	for _, kind := range []string{meta.ReadyCondition, sourcev1.SourceVerifiedCondition} {
		if c := condition(o, kind); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != o.Generation {
			return false
		}
	}
	return o.Status.ObservedGeneration == o.Generation
}

// refused says that the controller has refused at the live generation.
func refused(o *sourcev1.OCIRepository) bool {
	c := condition(o, sourcev1.SourceVerifiedCondition)
	return c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == o.Generation
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

// changeDuringVerification pushes and signs an artifact, and changes the policy
// while the controller verifies it: it waits for the signatures then. Whether the
// older policy's answer is stamped with the newer generation depends on what the
// controller has read when, so it is tried again until that is so.
func (s *stage) changeDuringVerification(sign func(digest string), before, after func(*sourcev1.OCIRepositorySpec)) string {
	s.t.Helper()
	h := &held{}
	s.behind(func(w http.ResponseWriter, r *http.Request, registry http.Handler) {
		if !asksForSignatures(r) || h.pass(r) {
			registry.ServeHTTP(w, r)
		}
	})
	for try := range 10 {
		digest := s.push("v1", fmt.Sprintf("try %d", try))
		sign(digest)
		h.close()
		s.apply(before)
		h.wait(s)
		s.apply(after)
		s.awaitSeen()
		h.release()
		live := s.await("an answer about the new policy", func(o *sourcev1.OCIRepository) bool {
			// One that was refused is not served, unless it was before.
			return serving(o) == digest && green(o) || refused(o)
		})
		if green(live) {
			return digest
		}
	}
	s.t.Fatal("the controller has taken notice of the new policy every time")
	return ""
}

// held keeps those who ask for signatures waiting while it is closed.
type held struct {
	mu            sync.Mutex
	reached, open chan struct{}
}

func (h *held) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reached, h.open = make(chan struct{}, 1), make(chan struct{})
}

func (h *held) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.open)
}

// pass waits until it is released, and says whether who asks still waits too.
func (h *held) pass(r *http.Request) bool {
	h.mu.Lock()
	reached, open := h.reached, h.open
	h.mu.Unlock()
	if open == nil {
		return true
	}
	select {
	case reached <- struct{}{}:
	default:
	}
	select {
	case <-open:
		return true
	case <-r.Context().Done():
		return false
	}
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

// awaitSeen returns when the controller knows the source as it is now. It sees
// the changes of all sources in one order, so it does if it has dealt with one
// that was made later: a suspended one, to which it does nothing but put its
// finalizer.
func (s *stage) awaitSeen() {
	s.t.Helper()
	marker := s.desired.DeepCopy()
	marker.Name, marker.Spec.Suspend, marker.Spec.Verify = "marker", true, nil
	_, err := s.objects().Apply(s.t.Context(), marker.Name, plain(s.t, marker), metav1.ApplyOptions{FieldManager: "admin", Force: true})
	s.check(err)
	s.eventually("the controller to see the marker", func() bool {
		u, err := s.objects().Get(s.t.Context(), marker.Name, metav1.GetOptions{})
		s.check(err)
		return len(u.GetFinalizers()) > 0
	})
	s.check(s.objects().Delete(s.t.Context(), marker.Name, metav1.DeleteOptions{}))
}

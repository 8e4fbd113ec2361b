package e2e

import (
	"syscall"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
)

// serves makes the scenario one with our key that serves a signed artifact,
// whose digest it returns.
func (s *stage) serves(content string, changes ...func(*sourcev1.OCIRepositorySpec)) string {
	s.t.Helper()
	s.withKey()
	digest := s.pushSigned("v1", content)
	s.apply(changes...)
	s.awaitServing(digest)
	s.awaitReadyNow()
	return digest
}

// nextSecret is the name of the Secret with the key that is to be used next.
const nextSecret = "cosign-next"

// requireNext makes that Secret, and a gate that requires its key.
func (s *stage) requireNext() {
	s.t.Helper()
	s.secret(nextSecret, map[string]string{"cosign.pub": s.theirs.Public})
	s.requireKey(nextSecret, s.theirs)
}

// timed are stories of when the gate looks.
func timed() []scenario {
	return []scenario{
		{name: "gate-before-the-source", run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "a")
			g := s.gate(in{"digest": a})
			g.waits(gate.SourceMissing)
			s.apply()
			g.verified(a)
		}},
		{name: "gate-before-the-push", run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("candidate", "a")
			s.apply()
			s.awaitCondition(sourcev1.FetchFailedCondition, metav1.ConditionTrue)
			g := s.gate(in{"digest": a})
			g.waits(gate.FetchFailed)
			s.tag("v1", a)
			g.verified(a)
		}},
		{name: "gate-before-the-next-push", core: true, run: func(s *stage) {
			s.serves("a")
			b := s.pushSigned("candidate", "b")
			g := s.gate(in{"digest": b})
			g.waits(gate.DigestMismatch)
			s.tag("v1", b)
			g.verified(b)
		}},
		{name: "gate-during-reconcile", run: func(s *stage) {
			s.serves("a")
			b := s.pushSigned("v1", "b")
			s.reconcile()
			s.gate(in{"digest": b}).verified(b)
		}},
		{name: "gate-after-reconcile", run: func(s *stage) {
			a := s.serves("a")
			s.gate(in{"digest": a, "timeout": "0"}).verified(a)
		}},
		{name: "timeout-0-too-early", run: func(s *stage) {
			a := s.serves("a", rarely)
			b := s.pushSigned("v1", "b")
			got := s.gate(in{"digest": b, "timeout": "0"}).rejected(gate.DigestMismatch)
			if got.Outputs["revision"] != "v1@"+a {
				s.t.Errorf("got the revision %s, want the old one", got.Outputs["revision"])
			}
			s.reconcile()
			s.awaitServing(b)
			s.awaitReadyNow()
			s.gate(in{"digest": b, "timeout": "0"}).verified(b)
		}},
		{name: "signed-late", run: func(s *stage) {
			s.serves("a")
			b := s.push("v1", "b")
			s.reconcile()
			g := s.gate(in{"digest": b, "timeout": "90s"})
			g.waits(gate.VerificationFailed)
			pushed := time.Now()
			s.await("20 s of refusals", func(o *sourcev1.OCIRepository) bool {
				if c := condition(o, sourcev1.SourceVerifiedCondition); c != nil && c.Status == metav1.ConditionTrue && serving(o) == b {
					s.t.Fatal("the unsigned artifact was verified")
				}
				return time.Since(pushed) > 20*time.Second
			})
			s.signKey(b, s.ours, cosigncli.Tag)
			g.verified(b)
		}},
		{name: "signed-late-at-first", run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			g := s.gate(in{"digest": a})
			g.waits(gate.VerificationFailed)
			s.signKey(a, s.ours, cosigncli.Tag)
			g.verified(a)
		}},
		{name: "policy-then-push", run: func(s *stage) {
			s.serves("a")
			s.requireNext()
			s.apply(verifyByKeyOf(nextSecret))
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			b := s.push("candidate", "b")
			s.signKey(b, s.theirs, cosigncli.Tag)
			g := s.gate(in{"digest": b, "timeout": "90s"})
			g.waits(gate.VerificationFailed)
			s.tag("v1", b)
			g.verified(b)
		}},
		{name: "push-then-policy", run: func(s *stage) {
			s.serves("a")
			s.requireNext()
			b := s.push("v1", "b")
			s.signKey(b, s.theirs, cosigncli.Tag)
			s.reconcile()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			g := s.gate(in{"digest": b, "timeout": "90s"})
			g.waits(gate.KeyUnexpected)
			s.apply(verifyByKeyOf(nextSecret))
			g.verified(b)
		}},
		{name: "push-then-signer", newer: true, run: func(s *stage) {
			s.withSuggested(signerMain, "")
			a := s.push("v1", "a")
			s.signAs(a, githubtoken.Claims{})
			s.apply()
			s.awaitServing(a)
			// The next one is signed by another workflow, and the policy that
			// accepts it comes after it.
			next, _ := s.suggest(signerRelease, "")
			s.also(in{"required-signers": signerRelease})
			b := s.push("v1", "b")
			s.signAs(b, byWorkflow("release.yaml"))
			s.reconcile()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			g := s.gate(in{"digest": b, "timeout": "90s"})
			g.waits(gate.SignerMissing)
			s.apply(func(spec *sourcev1.OCIRepositorySpec) { spec.Verify = next })
			g.verified(b)
		}},
		{name: "failed-then-repaired", core: true, run: func(s *stage) {
			s.serves("a")
			b := s.push("v1", "b")
			s.reconcile()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": b, "timeout": "5s"}).rejected(gate.VerificationFailed, gate.DigestMismatch)
			c := s.pushSigned("candidate", "c")
			// The old failure is all that there is to see when the repair begins.
			g := s.gate(in{"digest": c})
			g.waits(gate.VerificationFailed)
			s.tag("v1", c)
			g.verified(c)
		}},
		{name: "failed-signer-then-repaired", newer: true, run: func(s *stage) {
			s.withSuggested(signerMain, "")
			a := s.push("v1", "a")
			s.signAs(a, githubtoken.Claims{})
			s.apply()
			s.awaitServing(a)
			b := s.push("v1", "b")
			s.signAs(b, byWorkflow("other.yaml"))
			s.reconcile()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			// A wrong signer is final: it does not wait for the time-out, which is
			// longer than the harness's patience.
			s.gate(in{"digest": b, "timeout": "10m"}).rejected(gate.VerificationFailed, gate.DigestMismatch)
			c := s.push("candidate", "c")
			s.signAs(c, githubtoken.Claims{})
			g := s.gate(in{"digest": c})
			g.waits(gate.VerificationFailed)
			s.tag("v1", c)
			g.verified(c)
		}},
		{name: "pushed-twice", run: func(s *stage) {
			s.serves("a", rarely)
			b, c := s.pushSigned("b", "b"), s.pushSigned("c", "c")
			overtaken, newest := s.gate(in{"digest": b, "timeout": "20s"}), s.gate(in{"digest": c})
			overtaken.waits(gate.DigestMismatch)
			newest.waits(gate.DigestMismatch)
			s.tag("v1", b)
			s.tag("v1", c)
			s.reconcile()
			newest.verified(c)
			if got := overtaken.rejected(gate.DigestMismatch); got.Outputs["revision"] == "v1@"+b {
				s.t.Errorf("the overtaken revision %s was served", got.Outputs["revision"])
			}
		}},
		{name: "seldom-polled", run: func(s *stage) {
			s.serves("a", rarely)
			b := s.pushSigned("v1", "b")
			s.gate(in{"digest": b, "timeout": "5s"}).rejected(gate.DigestMismatch, gate.TimeoutShort)
			s.permit("role-reconcile.yaml", sourceName)
			s.gate(in{"digest": b, "reconcile": "true"}).verified(b)
		}},
		{name: "cancelled", core: true, run: func(s *stage) {
			s.serves("a", rarely)
			b := s.pushSigned("candidate", "b")
			g := s.gate(in{"digest": b, "timeout": "10m"})
			g.waits(gate.DigestMismatch)
			g.Signal(syscall.SIGTERM)
			g.undecided(gate.Cancelled)
		}},
		{name: "warned", run: func(s *stage) {
			s.serves("a", rarely)
			b := s.pushSigned("candidate", "b")
			for mode, status := range map[string]int{"warn": 0, "enforce": 1} {
				if got := s.gate(in{"digest": b, "timeout": "0", "mode": mode}).rejected(gate.DigestMismatch); got.Status != status {
					s.t.Errorf("mode %s: got the exit status %d, want %d", mode, got.Status, status)
				}
			}
			// A source that was never read is no warning.
			if got := s.gate(in{"name": "other", "mode": "warn"}).undecided(gate.AccessDenied); got.Status != 2 {
				s.t.Errorf("got the exit status %d, want 2", got.Status)
			}
			g := s.gate(in{"digest": b, "timeout": "10m", "mode": "warn"})
			g.waits(gate.DigestMismatch)
			g.Signal(syscall.SIGTERM)
			if got := g.undecided(gate.Cancelled); got.Status != 0 {
				s.t.Errorf("got the exit status %d, want 0", got.Status)
			}
		}},
		{name: "flapping", run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			// The failure goes to and fro, and the deadlines fall on every phase.
			var gates []*run
			for _, timeout := range []string{"3s", "3500ms", "4s", "4700ms", "5300ms", "6100ms"} {
				gates = append(gates, s.gate(in{"digest": a, "timeout": timeout}))
			}
			for _, g := range gates {
				g.rejected(gate.VerificationFailed, gate.ArtifactMissing)
			}
		}},
		{name: "flapping-for-a-minute", run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			// Final after a minute: the time-out is longer than the harness's
			// patience.
			s.gate(in{"digest": a, "timeout": "10m"}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
		}},
	}
}

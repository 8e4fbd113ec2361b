package e2e

import (
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
)

// rotated is why the controller's word is not what the Secret says now.
const rotated = "the key was replaced after the controller had verified, and it does not verify again"

// rotations are changes of the Secret that a policy takes its keys from, which
// the gate cannot see.
func rotations() []scenario {
	return []scenario{
		{name: "key-rotated", core: true, run: func(s *stage) {
			// The controller looks at the Secret again with the next revision or
			// generation; until then it goes by the old key, and is green.
			a := s.withRotatedKey()
			s.becomes("11a-verified-with-key-a")
			s.gate(in{"digest": a, "timeout": soon}).apart(rotated).rejected(gate.SignatureInvalid)
		}},
		{name: "key-rotated-for-the-controller-only", run: func(s *stage) {
			// The gate is asked for the old key still, and reads no Secret.
			a := s.withRotatedKey()
			s.gate(in{"digest": a, "required-keys": s.keysInput(keySecret, s.ours)}).apart(rotated).verified(a, gate.KeysUnread)
		}},
		{name: "key-rotated-then-spec-touched", run: func(s *stage) {
			a := s.withRotatedKey()
			s.apply(touch)
			s.becomes("11c-then-spec-touched")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.NotReady)
		}},
		{name: "key-rotated-then-signed", run: func(s *stage) {
			a := s.withRotatedKey()
			s.apply(touch)
			s.becomes("11c-then-spec-touched")
			run := s.gate(in{"digest": a})
			run.waits(gate.VerificationFailed)
			s.signKey(a, s.theirs, cosigncli.Tag)
			run.verified(a)
		}},
		{name: "key-rotated-with-both-in-the-secret", run: func(s *stage) {
			// How a rotation is done: both keys for a while.
			s.withKey()
			s.secret(keySecret, map[string]string{"old.pub": s.ours.Public, "new.pub": s.theirs.Public})
			s.requireKey(keySecret, s.ours, s.theirs)
			a := s.pushSigned("v1", "a")
			s.apply()
			s.gate(in{"digest": a}).verified(a)
			b := s.push("v1", "b")
			s.signKey(b, s.theirs, cosigncli.Tag)
			s.reconcile()
			s.gate(in{"digest": b}).verified(b)
		}},
		{name: "secret-missing", run: func(s *stage) {
			s.requireKey(keySecret, s.ours)
			a := s.pushSigned("v1", "a")
			s.apply(verifyByKey)
			s.becomes("12-secret-missing")
			got := s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
			s.classed(got, gate.ClassSecretMissing)
		}},
		{name: "secret-arrives-late", run: func(s *stage) {
			s.requireKey(keySecret, s.ours)
			a := s.pushSigned("v1", "a")
			s.apply(verifyByKey)
			s.becomes("12-secret-missing")
			run := s.gate(in{"digest": a})
			run.waits(gate.VerificationFailed)
			s.secret(keySecret, map[string]string{"cosign.pub": s.ours.Public})
			run.verified(a)
		}},
		{name: "secret-without-key", run: func(s *stage) {
			// The key is there, under a name that the controller does not take.
			s.requireKey(keySecret, s.ours)
			s.secret(keySecret, map[string]string{"cosign.pem": s.ours.Public})
			a := s.pushSigned("v1", "a")
			s.apply(verifyByKey)
			s.becomesLike("generation 1, observed -1", "SourceVerified False VerificationError of 1", "artifact false")
			got := s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
			s.classed(got, gate.ClassNoMatchingKey)
		}},
		{name: "secret-deleted-after-verified", run: func(s *stage) {
			// Nothing is verified again until the next revision comes.
			a := s.withVerified()
			s.deleteSecret(keySecret)
			s.reconciled()
			s.gate(in{"digest": a}).verified(a)
			b := s.pushSigned("v1", "b")
			s.reconcile()
			s.becomesLike(movedToUnsigned...)
			s.gate(in{"digest": b, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactOutdated, gate.DigestMismatch)
		}},
	}
}

// withRotatedKey makes a source that has verified an artifact, whose digest is
// returned, with a key that is no longer in the Secret, and a gate that requires
// the new one.
func (s *stage) withRotatedKey() string {
	s.t.Helper()
	a := s.withVerified()
	s.secret(keySecret, map[string]string{"cosign.pub": s.theirs.Public})
	s.requireKey(keySecret, s.theirs)
	s.reconciled()
	return a
}

// reconciled asks the controller to look again, and waits until it has.
func (s *stage) reconciled() {
	s.t.Helper()
	s.reconcile()
	s.await("a reconciliation", func(o *sourcev1.OCIRepository) bool {
		return o.Status.LastHandledReconcileAt == o.Annotations[meta.ReconcileRequestAnnotation]
	})
}

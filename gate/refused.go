package gate

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RefusedDigest gives the digest of the artifact that the controller refused and
// does not serve: the one that its conditions name, else the expected one. It is
// empty where nothing was refused, or where the refused artifact is the one being
// served, whose signatures are looked for anyway.
//
// What the registry holds of it (Evidence.Refused) explains the refusal and
// decides nothing: the verdict is about what is being served.
func (p Policy) RefusedDigest(e Evidence) string {
	s := e.Source
	switch {
	case s == nil || s.Object.Spec.Verify == nil:
		return ""
	case s.anyWith(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse) != nil:
	case e.EarlierFailure == "" || s.verification() == verificationGood:
		return ""
	}
	digest := s.failedDigest()
	if digest == "" && p.want.Digest != DigestAny {
		digest = p.want.Digest
	}
	if digest == s.Digest() {
		return ""
	}
	return digest
}

// heldOfRefused says what the registry holds of the artifact that the controller
// refused, and what to do about that; empty where it was not looked at, or was
// looked at under another trust than the policy's.
func (f *facts) heldOfRefused() (found, remedy string) {
	refused := f.evidence.Refused
	if refused == nil || refused.Digest == "" || refused.Digest != (Policy{want: f.want}).RefusedDigest(f.evidence) {
		return "", ""
	}
	if !f.comparable() {
		return "", ""
	}
	of := "; of " + refused.Digest + " the gate sees: "
	if f.want.SignedBy(refused.Found) {
		return of + "a required signer has signed it", ""
	}
	findings, _ := JudgeSignatures(f.want, *refused, refused.Digest)
	for _, finding := range findings {
		if finding.Outcome == Fail {
			return of + finding.Title + " (" + finding.Found + ")", finding.Remedy
		}
	}
	return "", "" // it could not be looked at
}

package gate

import (
	"fmt"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkController compares the controller's word with what its own rules say of
// the signatures that the gate has found. Two opinions that differ are a
// finding, in either direction; a difference that a version or the passing of
// time explains is not.
func checkController(f *facts) []Finding {
	s := f.evidence.Signatures
	if !f.comparable() || !s.IsOf(f.source) {
		return nil
	}
	verify := f.source.Object.Spec.Verify
	switch f.source.verification() {
	case verificationGood:
		return f.explainAccepted(verify, *s)
	case verificationBad:
		return f.explainRefused(verify, *s)
	}
	return nil
}

// comparable says whether the gate verified under the same trust as the
// controller: the required keys stand for the Secret's, and a private root for
// the policy's.
func (f *facts) comparable() bool {
	if f.want.Signature == SignatureSkip || !f.usesCosign() {
		return false
	}
	verify := f.source.Object.Spec.Verify
	if f.want.Keys != nil {
		return verify.SecretRef != nil && verify.SecretRef.Name == f.want.Keys.Secret
	}
	return verify.SecretRef == nil && f.sameRoot()
}

// explainAccepted looks for a series that could have said True.
func (f *facts) explainAccepted(verify *sourcev1.OCIRepositoryVerification, s Signatures) []Finding {
	var possible, refusing []series
	for _, v := range couldBe(f.source) {
		if !v.couldHaveAccepted(verify, s.Found) {
			continue
		}
		possible = append(possible, v)
		if now := v.emulate(verify, s.Found); !now.accepts && !now.unsure {
			refusing = append(refusing, v)
		}
	}
	if len(possible) == 0 {
		if !s.Complete && !f.want.SignedBy(s.Found) {
			return nil // what could not be looked at is the cause, and says it
		}
		finding := Finding{
			Code: ControllerDisagrees, Outcome: Fail, Wait: WaitOnceMore,
			Title:    "the controller says that it verified the signature, and nothing in the registry explains that",
			Expected: "a signature that the live policy accepts, in a layout that the controller looks at",
			Found:    f.sides(verify, s),
			Remedy:   "do not promote. The policy may have changed while a verification ran: make the controller verify again (any change of the spec), then run the gate again",
		}
		if len(s.Found) == 0 {
			// As long as unsigned waits for a signature that is on its way, for
			// example into a mirror, this must not end the waiting.
			finding.Wait = WaitMinute
		}
		if !s.Complete {
			// A required signer has signed, so nobody else says that something
			// was left out.
			finding.Outcome, finding.Wait = Unknown, WaitDeadline
			finding.Title = "the controller says that it verified the signature, and the search for what explains that was not complete"
		}
		return one(finding)
	}
	findings := pass(ControllerDisagrees, "what the registry holds explains the controller's word")
	if len(refusing) > 0 {
		now := refusing[len(refusing)-1].emulate(verify, s.Found)
		findings = append(findings, Finding{
			Code: WillRefuse, Outcome: Note,
			Title:    "the condition is green now, and the next verification will refuse (source-controller " + names(refusing) + ")",
			Expected: "signatures that the live policy accepts now", Found: "the controller " + now.why + " (" + layoutOf(now) + ")",
			Remedy: willRefuseRemedy(now),
		})
	}
	return findings
}

// explainRefused looks for a series that refuses for the reason that the
// condition gives. That nothing was found, or no key matched, is explained by a
// signature or key that came later; trouble with a service, a Secret or an
// unknown text says nothing about signatures.
func (f *facts) explainRefused(verify *sourcev1.OCIRepositoryVerification, s Signatures) []Finding {
	c := f.source.anyWith(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
	class := classify(c.Message)
	switch class {
	case ClassWrongSigner, ClassMultipleIdentities, ClassNoIdentity, ClassBadPattern:
	default:
		return nil
	}
	if c.ObservedGeneration != f.source.Object.Generation || f.source.failedDigest() != s.Digest {
		return nil
	}
	for _, v := range couldBe(f.source) {
		if now := v.emulate(verify, s.Found); now.unsure || !now.accepts && now.class == class {
			return pass(ControllerDisagrees, "what the registry holds explains the controller's refusal")
		}
	}
	return one(Finding{
		Code: ControllerDisagrees, Outcome: Fail, Wait: WaitOnceMore,
		Title:    "the controller refuses signatures that every known version should accept under this policy",
		Expected: "SourceVerified True", Found: f.sides(verify, s) + "; the controller says: " + c.Message,
		Remedy: "see whether the signature arrived after the controller's last try (request a reconciliation), and whether its trusted root is current. What is being served is still the older artifact",
	})
}

// sides says which layout each of the two looked at, and which identities each
// saw.
func (f *facts) sides(verify *sourcev1.OCIRepositoryVerification, s Signatures) string {
	var parts []string
	for _, v := range couldBe(f.source) {
		now := v.emulate(verify, s.Found)
		parts = append(parts, fmt.Sprintf("source-controller %s %s (%s)", v.name, now.why, layoutOf(now)))
	}
	var seen []string
	for _, found := range s.Found {
		state := "valid"
		if !found.Verified {
			state = "refused at the step " + string(found.Step)
		}
		seen = append(seen, fmt.Sprintf("%s %s by %s, %s", found.Layout, found.Kind, identityOrKey(found), state))
	}
	if len(seen) == 0 {
		seen = []string{"nothing"}
	}
	return strings.Join(parts, "; ") + "; the gate sees: " + strings.Join(seen, "; ")
}

func layoutOf(o opinion) string {
	switch o.looked {
	case LayoutBundle:
		return "it looks at the bundles only, because there are any"
	case LayoutTag:
		return "it looks at the tag sha256-….sig"
	}
	return "there is nothing to look at"
}

func willRefuseRemedy(o opinion) string {
	switch o.class {
	case ClassMultipleIdentities:
		return "merge the entries of matchOIDCIdentity into one; the suggested entry below does that"
	case ClassNoIdentity:
		return "give the policy one identity with an issuer and a subject"
	}
	if o.looked == LayoutBundle {
		return "sign with a bundle too (cosign v3), or remove the bundle that hides the signature; until the next verification the deployment stays as it is"
	}
	return "sign the digest again by a signer whom the live policy accepts; until the next verification the deployment stays as it is"
}

func names(list []series) string {
	var texts []string
	for _, v := range list {
		texts = append(texts, v.name)
	}
	return strings.Join(texts, ", ")
}

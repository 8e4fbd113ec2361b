package gate

import (
	"fmt"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkController compares the controller's word with what its own rules say of
// the signatures that the gate has found. Two opinions that differ are a
// finding, in either direction; a difference that a version or the passing of
// time explains is not, but is told where it needs somebody to act.
func checkController(f *facts) []Finding {
	s := f.evidence.Signatures
	if !f.comparable() || !s.IsOf(f.source) {
		return nil
	}
	c := comparison{facts: f, verify: f.source.Object.Spec.Verify, found: s.Found, complete: s.Complete, versions: couldBe(f.source)}
	switch f.source.verification() {
	case verificationGood:
		return c.accepted()
	case verificationBad:
		return c.refused()
	}
	return c.outstanding()
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

// comparison is one comparison of the controller's word with the rules of the
// versions that may have given it.
type comparison struct {
	*facts
	verify   *sourcev1.OCIRepositoryVerification
	found    []Signature
	complete bool
	versions []series
}

// which gives the versions of which something holds.
func (c comparison) which(holds func(series) bool) []series {
	var list []series
	for _, v := range c.versions {
		if holds(v) {
			list = append(list, v)
		}
	}
	return list
}

func (c comparison) now(v series) opinion { return v.emulate(c.verify, c.found) }

// accepted looks for a version that could have said True.
func (c comparison) accepted() []Finding {
	sure := c.which(func(v series) bool { _, sure := v.couldHaveAccepted(c.verify, c.found); return sure })
	could := c.which(func(v series) bool { could, _ := v.couldHaveAccepted(c.verify, c.found); return could })
	switch {
	case len(sure) > 0:
		findings := pass(ControllerDisagrees, "what the registry holds explains the controller's word")
		return append(findings, c.willRefuse(sure, func(now opinion) (string, string) {
			cause, remedy := c.whyNext(now)
			return cause, remedy + c.meanwhile()
		})...)
	case len(could) > 0:
		finding := Finding{
			Code: ControllerDisagrees, Outcome: Note,
			Title:    "only what the gate cannot read explains that the controller accepted",
			Expected: "a signature that both can read", Found: c.sides(),
			Remedy: "sign again with a current cosign, or remove what cannot be read" + c.meanwhile(),
		}
		if c.want.SignedBy(c.found) {
			// Nothing else stands in the way then, and anybody who can push
			// can put something unreadable there.
			finding.Outcome, finding.Wait = Unknown, WaitDeadline
		}
		return one(finding)
	}
	if replaced := c.which(func(v series) bool { return v.replacedKey(c.verify, c.found) }); len(replaced) > 0 {
		findings := pass(ControllerDisagrees, "a key that was replaced explains the controller's word")
		return append(findings, c.willRefuse(replaced, func(opinion) (string, string) {
			return "the key in the Secret was probably replaced, since none of the required keys has signed",
				"sign the digest with the key that the Secret holds now" + c.meanwhile()
		})...)
	}
	if !c.complete && !c.want.SignedBy(c.found) {
		return nil // what could not be looked at is the cause, and says it
	}
	finding := Finding{
		Code: ControllerDisagrees, Outcome: Fail, Wait: WaitOnceMore,
		Expected: "a signature that the live policy accepts, in a place that the controller looks at", Found: c.sides(),
	}
	finding.Title, finding.Remedy = c.whyNever()
	if len(c.found) == 0 {
		// As long as unsigned waits for a signature that is on its way, for
		// example into a mirror, this must not end the waiting.
		finding.Wait = WaitMinute
	}
	if !c.complete {
		// A required signer has signed, so nobody else says that something
		// was left out.
		finding.Outcome, finding.Wait = Unknown, WaitDeadline
		finding.Title = "the controller accepted, and the search for what explains that was not complete"
		finding.Remedy = "run again when the registry shows everything" + c.meanwhile()
	}
	return one(finding)
}

// whyNever says what may be behind a True that no version could give.
func (c comparison) whyNever() (title, remedy string) {
	if len(c.found) == 0 {
		return "the controller accepted a signature, and the registry holds none",
			"see whether it was removed, or not copied to this repository; sign the digest again" + c.meanwhile()
	}
	if c.verify.SecretRef != nil {
		return "the controller accepted a key's signature, and none in the registry is by a required key",
			"compare the keys in the Secret with required-keys, then make the controller verify again (any change of the spec)" + c.meanwhile()
	}
	if len(c.verify.MatchOIDCIdentity) > 1 {
		return "the controller accepted, and with several identities no version accepts these bundles",
			"merge the entries of matchOIDCIdentity into one: the policy probably changed while the controller verified" + c.meanwhile()
	}
	return "the controller accepted, and nobody whom the live policy accepts has signed",
		"make the controller verify again (any change of the spec): the policy probably changed while it verified" + c.meanwhile()
}

// willRefuse notes that these versions, which may be the one that said True,
// would refuse now; why gives the cause and the next step.
func (c comparison) willRefuse(possible []series, why func(opinion) (cause, remedy string)) []Finding {
	var refusing []series
	for _, v := range possible {
		if c.now(v).refuses() {
			refusing = append(refusing, v)
		}
	}
	if len(refusing) == 0 {
		return nil
	}
	last := refusing[len(refusing)-1]
	cause, remedy := why(c.now(last))
	return one(Finding{
		Code: WillRefuse, Outcome: Note,
		Title:    "the controller verified it, and the next time will refuse it (source-controller " + names(refusing) + "): " + cause,
		Expected: "what the live policy accepts, where the controller looks", Found: c.sides(), Remedy: remedy,
	})
}

// whyNext says why a version refuses what is there now, and what to do.
func (c comparison) whyNext(now opinion) (cause, remedy string) {
	switch now.class {
	case ClassMultipleIdentities:
		return "there is a bundle, and the policy has several identities", "merge the entries of matchOIDCIdentity into one; the suggested entry does that"
	case ClassNoIdentity:
		return "there is a bundle, and the policy names no whole identity", "give the policy one identity with an issuer and a subject"
	case ClassBadPattern:
		return "a pattern of the policy does not compile", "correct the pattern"
	}
	if now.looked == LayoutBundle && slices.ContainsFunc(c.found, c.tagAlone) {
		return "a bundle hides the .sig signature", "sign the digest with cosign 3 too, which makes a bundle, or remove the bundle that is not yours"
	}
	return "nobody whom the live policy accepts has signed", "let such a signer sign the digest, or correct the policy"
}

// tagAlone says that a .sig signature would be accepted if it were alone.
func (c comparison) tagAlone(s Signature) bool {
	return supported[0].emulate(c.verify, []Signature{s}).accepts // it looks at nothing else
}

// meanwhile says whether the deployment is safe as it is.
func (c comparison) meanwhile() string {
	if c.want.SignedBy(c.found) {
		return ". What is being served stays, and is safe: a required signer has signed it"
	}
	return ". Do not promote: what is being served stays, and nobody required has signed it"
}

// outstanding looks ahead where the newest generation has not been verified yet:
// a policy that was narrowed is refused then if nobody whom it accepts has
// signed.
func (c comparison) outstanding() []Finding {
	condition := c.source.condition(sourcev1.SourceVerifiedCondition)
	if !c.complete || condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration >= c.source.Object.Generation {
		return nil
	}
	if revision, ok := verifiedRevision(condition.Message); !ok || revision != c.source.revision() {
		return nil
	}
	if slices.ContainsFunc(c.versions, func(v series) bool { return !c.now(v).refuses() }) {
		return nil
	}
	return c.willRefuse(c.versions, func(now opinion) (string, string) {
		cause, remedy := c.whyNext(now)
		return fmt.Sprintf("the policy changed after generation %d: %s", condition.ObservedGeneration, cause), remedy + c.meanwhile()
	})
}

// refused looks for a version that refuses for the reason that the condition
// gives. Trouble with a service, a Secret or an unknown text says nothing about
// signatures.
func (c comparison) refused() []Finding {
	condition := c.source.anyWith(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
	if condition.ObservedGeneration != c.source.Object.Generation || c.source.failedDigest() != c.evidence.Signatures.Digest {
		return nil
	}
	class := classify(condition.Message)
	same := func(v series) bool { return c.now(v).class == class }
	earlier := c.which(func(v series) bool { return v.couldHaveRefused(c.verify, c.found, class) })
	accepting := func(v series) bool { return c.now(v).accepts }
	switch class {
	case ClassWrongSigner, ClassMultipleIdentities, ClassNoIdentity, ClassBadPattern:
	case ClassNoSignature, ClassNoMatchingKey:
		if !slices.ContainsFunc(earlier, accepting) {
			return nil // unsigned, or whoever else signed, says it
		}
	default:
		return nil
	}
	const kept = "What is being served stays, and nothing newer is taken in until then"
	if late := slices.DeleteFunc(slices.Clone(earlier), func(v series) bool { return !accepting(v) }); len(late) > 0 {
		finding := Finding{
			Code: ControllerDisagrees, Outcome: Note,
			Title:    "the signature came after the controller's last try (source-controller " + names(late) + ")",
			Expected: "a try after the signature", Found: c.sides(),
			Remedy: "ask for a reconciliation (reconcile: true), or wait for the next. " + kept,
		}
		if blind := c.which(same); len(blind) > 0 {
			finding.Title += ", or it is one that does not look at bundles (" + names(blind) + ")"
			finding.Remedy = "ask for a reconciliation (reconcile: true); if it still refuses, it needs a .sig signature (cosign 3 with --new-bundle-format=false), or source-controller 1.8. " + kept
		}
		return one(finding)
	}
	if agreeing := c.which(same); len(agreeing) > 0 {
		if !c.want.SignedBy(c.found) {
			return pass(ControllerDisagrees, "what the registry holds explains the controller's refusal")
		}
		cause, remedy := c.whyNext(c.now(agreeing[len(agreeing)-1]))
		return one(Finding{
			Code: ControllerDisagrees, Outcome: Note,
			Title:    "a required signer has signed, and the controller refuses as source-controller " + names(agreeing) + " does: " + cause,
			Expected: "what the live policy accepts, where the controller looks", Found: c.sides(), Remedy: remedy + ". " + kept,
		})
	}
	if slices.ContainsFunc(c.versions, func(v series) bool { return c.now(v).unsure }) {
		return one(Finding{
			Code: ControllerDisagrees, Outcome: Note,
			Title:    "a signature that the controller and the gate may read differently explains the refusal",
			Expected: "a signature that both can read", Found: c.sides(),
			Remedy: "sign again with a current cosign, or remove what cannot be read. " + kept,
		})
	}
	return one(Finding{
		Code: ControllerDisagrees, Outcome: Fail, Wait: WaitOnceMore,
		Title:    "the controller refuses for a reason that no known version has under this policy",
		Expected: "SourceVerified True", Found: c.sides() + ". The controller says: " + condition.Message,
		Remedy: "see whether it reads the same repository, and restart source-controller: it keeps its trusted root for as long as it runs. " + kept,
	})
}

package gate

import (
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

// statusChecks is section C: did the controller verify the artifact that it
// serves now?
var statusChecks = []check{
	{[]Code{VerificationFailed}, checkVerificationFailed},
	{[]Code{VerificationMissing}, checkVerificationMissing},
	{[]Code{VerificationStale}, checkVerificationStale},
	{[]Code{VerificationOtherRevision, MessageUnknown}, checkVerificationRevision},
	{[]Code{NotReady}, checkReady},
	{[]Code{FetchFailed}, badNews(FetchFailed, sourcev1.FetchFailedCondition, "the last fetch from the registry failed",
		"repair what the message names (registry, credentials, tag); until then the served artifact is not the newest")},
	{[]Code{ArtifactOutdated}, badNews(ArtifactOutdated, sourcev1.ArtifactOutdatedCondition, "a newer revision was seen and is not being served",
		"see why the new revision was not taken in: verification-failed or fetch-failed tells")},
	{[]Code{StorageFailed}, badNews(StorageFailed, sourcev1.StorageOperationFailedCondition, "the controller could not store the artifact",
		"repair source-controller's storage (disk space, volume)")},
	{[]Code{ArtifactMissing}, checkArtifact},
	{[]Code{ContentConfig}, checkContentConfig},
}

// verifies says whether there is a policy that SourceVerified can be about.
// Without spec.verify the finding is verify-absent, which always fails; that
// its condition is missing too is only a symptom.
func (f *facts) verifies() bool { return f.source.Object.Spec.Verify != nil }

// checkVerificationFailed: the controller looked and refused. How long that may
// still mend itself depends on what failed and on whether it is this
// deployment's artifact.
func checkVerificationFailed(f *facts) []Finding {
	c := f.source.anyWith(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
	if c == nil {
		if f.verifies() && f.source.verifiedNow() {
			return pass(VerificationFailed, "the controller did not refuse the signature")
		}
		return nil
	}
	class := classify(c.Message)
	finding := Finding{
		Code: VerificationFailed, Outcome: Fail, Class: class, Wait: f.failureWait(c, class),
		Title: "the controller refused the signature", Expected: "SourceVerified True", Found: describeCondition(c),
		Remedy: class.remedy(),
	}
	held, remedy := f.heldOfRefused()
	finding.Found += held
	switch {
	case remedy == "":
	case class == ClassWrongSigner:
		finding.Remedy += "; " + remedy
	case class == ClassUnknown:
		// Where the text is not known, what the registry holds is the better
		// guide.
		finding.Remedy = remedy
	}
	return one(finding)
}

// failureWait: a failure that is not known to be about the expected digest, or
// that an older generation left, may be over with the next run. A refusal by a
// policy that is not the required one may be over with the next policy, which is
// given the same time here as in section B: an artifact may come before it in one
// deployment.
func (f *facts) failureWait(c *metav1.Condition, class Class) Wait {
	failed := f.source.failedDigest()
	ours := f.want.Digest == DigestAny || failed != "" && failed == f.want.Digest
	if !ours || c.ObservedGeneration != f.source.Object.Generation {
		return WaitDeadline
	}
	if wait := class.wait(); wait != WaitOnceMore || !f.policyFails() {
		return wait
	}
	return WaitMinute
}

// checkVerificationMissing: only one condition, True or False, and True only
// for the reason Succeeded, is an answer. An ignored notation result leaves no
// condition at all, with Ready True.
func checkVerificationMissing(f *facts) []Finding {
	if !f.verifies() {
		return nil
	}
	found := f.source.conditionsOf(sourcev1.SourceVerifiedCondition)
	if len(found) == 1 {
		c := found[0]
		if c.Status == metav1.ConditionFalse {
			return nil
		}
		if c.Status == metav1.ConditionTrue && c.Reason == meta.SucceededReason {
			return pass(VerificationMissing, "the controller says that it verified the signature")
		}
	}
	finding := Finding{
		Code: VerificationMissing, Outcome: Fail, Wait: WaitDeadline,
		Title:    "the controller does not say that it verified anything",
		Expected: "one SourceVerified condition, True for the reason Succeeded", Found: f.source.describe(sourcev1.SourceVerifiedCondition),
		Remedy: "see why verification was not reached: the Ready condition says it; Ready alone proves nothing about a signature",
	}
	if earlier := f.evidence.EarlierFailure; earlier != "" {
		held, _ := f.heldOfRefused()
		finding.Found += "; earlier in this run the controller said: " + earlier + held
	}
	return one(finding)
}

// checkVerificationStale: the condition's own generation counts. That of the
// status is bumped without verifying, for example by suspending.
func checkVerificationStale(f *facts) []Finding {
	c := f.source.condition(sourcev1.SourceVerifiedCondition)
	if !f.verifies() || c == nil {
		return nil
	}
	generation := f.source.Object.Generation
	if c.ObservedGeneration == generation {
		return pass(VerificationStale, fmt.Sprintf("the verification is of generation %d", generation))
	}
	return one(Finding{
		Code: VerificationStale, Outcome: Fail, Wait: WaitDeadline,
		Title:    "the verification is of an older generation, so not of the policy that is live now",
		Expected: fmt.Sprintf("SourceVerified at generation %d", generation), Found: describeCondition(c),
		Remedy: "wait for the next reconciliation, or request one (reconcile: true)",
	})
}

// checkVerificationRevision: True is about the revision that its message names,
// and about no other. After a failed pull, or a tag that moved back, that is
// not the one being served.
func checkVerificationRevision(f *facts) []Finding {
	c := f.source.condition(sourcev1.SourceVerifiedCondition)
	if !f.verifies() || c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	verified, ok := verifiedRevision(c.Message)
	if !ok {
		return one(Finding{
			Code: MessageUnknown, Outcome: Unknown, Wait: WaitDeadline,
			Title:    "the controller's message does not name a revision in the known form",
			Expected: verifiedPrefix + "<tag>@sha256:<hex>", Found: orNothing(c.Message),
			Remedy: "see whether this release of the gate knows your Flux version (docs/flux-versions.md)",
		})
	}
	if serving := f.source.revision(); verified != serving {
		finding := Finding{
			Code: VerificationOtherRevision, Outcome: Fail, Wait: WaitDeadline,
			Title:    "the controller verified another revision than the one it serves",
			Expected: "a verification of " + serving, Found: "a verification of " + verified,
			Remedy: "see why the verified revision is not the one being served (fetch-failed, a tag that moved back); a new generation or revision makes the controller verify again",
		}
		if serving == "" {
			finding.Title = "the controller verified a revision and serves nothing"
			finding.Expected = verified + " in status.artifact"
			finding.Found += ", and nothing is being served"
			finding.Remedy = "see why the verified revision was not taken in: fetch-failed, storage-failed, or what Ready says"
		}
		return one(finding)
	}
	return pass(VerificationOtherRevision, "the verification names the revision that is being served")
}

// checkReady: Ready and ArtifactInStorage are True at this generation, and what
// is in storage is the revision being served.
func checkReady(f *facts) []Finding {
	finding := Finding{Code: NotReady, Outcome: Fail, Wait: WaitDeadline,
		Remedy: "repair what the message names; where there is none, see whether source-controller runs"}
	generation := f.source.Object.Generation
	if !f.source.trueNow(meta.ReadyCondition) {
		finding.Title = "the source is not Ready"
		finding.Expected = fmt.Sprintf("Ready True at generation %d", generation)
		finding.Found = f.source.describe(meta.ReadyCondition)
		return one(finding)
	}
	if !f.source.trueNow(sourcev1.ArtifactInStorageCondition) {
		finding.Title = "the controller does not say that the artifact is in its storage"
		finding.Expected = fmt.Sprintf("ArtifactInStorage True at generation %d", generation)
		finding.Found = f.source.describe(sourcev1.ArtifactInStorageCondition)
		return one(finding)
	}
	message := f.source.condition(sourcev1.ArtifactInStorageCondition).Message
	if stored, ok := storedRevision(message); !ok || stored != f.source.revision() {
		finding.Title = "what is in storage is not the revision that the status names"
		finding.Expected = storedPrefix + f.source.revision() + "'"
		finding.Found = orNothing(message)
		return one(finding)
	}
	return pass(NotReady, "the source is Ready, and the artifact is in storage")
}

// badNews makes the check of a condition that is only there when something is
// wrong: anything but False, at any generation, means that what is served may not
// be the newest.
func badNews(code Code, kind, title, remedy string) func(*facts) []Finding {
	return func(f *facts) []Finding {
		c := f.source.anyButFalse(kind)
		if c == nil {
			return pass(code, "no condition "+kind)
		}
		return one(Finding{
			Code: code, Outcome: Fail, Wait: WaitDeadline,
			Title: title, Expected: "no condition " + kind, Found: describeCondition(c), Remedy: remedy,
		})
	}
}

// checkArtifact: something is served, under a revision with a digest.
func checkArtifact(f *facts) []Finding {
	revision := f.source.revision()
	if digestOf(revision) != "" {
		return pass(ArtifactMissing, "an artifact is being served")
	}
	finding := Finding{
		Code: ArtifactMissing, Outcome: Fail, Wait: WaitDeadline,
		Title: "nothing is being served", Expected: "status.artifact with a revision that ends in sha256:<hex>", Found: "no status.artifact",
		Remedy: "see why the controller has no artifact: verification-failed, fetch-failed or storage-failed tells",
	}
	if f.source.Object.Status.Artifact != nil {
		finding.Title = "what is being served has no digest"
		finding.Found = "revision " + orNothing(revision)
	}
	return one(finding)
}

// checkContentConfig: an artifact that was built with other ignore rules or
// another layer selector is an old build of the same revision
// (source-controller, internal/controller/ocirepository_controller.go, v1.9,
// ociContentConfigChanged).
func checkContentConfig(f *facts) []Finding {
	if f.source.Object.Status.Artifact == nil {
		return nil
	}
	spec, status := f.source.Object.Spec, f.source.Object.Status
	finding := Finding{Code: ContentConfig, Outcome: Fail, Wait: WaitDeadline,
		Title:  "the artifact was built with another content configuration than the live spec",
		Remedy: "wait for the next reconciliation, or request one (reconcile: true)"}
	if !equalPointers(spec.Ignore, status.ObservedIgnore) {
		finding.Expected = "status.observedIgnore " + quoted(spec.Ignore)
		finding.Found = quoted(status.ObservedIgnore)
		return one(finding)
	}
	if !equalPointers(spec.LayerSelector, status.ObservedLayerSelector) {
		finding.Expected = "status.observedLayerSelector " + selector(spec.LayerSelector)
		finding.Found = selector(status.ObservedLayerSelector)
		return one(finding)
	}
	return pass(ContentConfig, "the artifact was built with the live content configuration")
}

func equalPointers[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func quoted(s *string) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%q", *s)
}

func selector(s *sourcev1.OCILayerSelector) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("{mediaType: %q, operation: %q}", s.MediaType, s.Operation)
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

// canaryRemedy is the next step where the canary itself is not as it must be.
const canaryRemedy = "deploy it as examples/canary/canary.yaml has it (docs/canary.md)"

// canary is the read of the canary; nil where there is none.
func (f *facts) canary() *Source {
	if f.evidence.Canary == nil {
		return nil
	}
	return f.evidence.Canary.Source
}

// refusal is the controller's word, at the object's generation, that it refused
// the artifact; nil where that is not what it says.
func (s *Source) refusal() *metav1.Condition {
	c := s.condition(sourcev1.SourceVerifiedCondition)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != sourcev1.VerificationError || c.ObservedGeneration != s.Object.Generation {
		return nil
	}
	return c
}

// checkCanaryRefused: a canary that could not be looked at, or that was refused
// for a reason that would have met the right artifact too, has shown nothing.
// Only the refusal of what nobody has rightly signed is one.
func checkCanaryRefused(f *facts) []Finding {
	if f.want.Canary == (ObjectName{}) {
		return nil
	}
	name := f.want.Canary.String()
	unread := Finding{
		Code: CanaryAccepted, Outcome: Unknown, Wait: WaitDeadline,
		Title: "the canary " + name + " was not read", Expected: "one read of the object", Found: "none",
		Remedy: "see the log for what was tried",
	}
	switch c := f.evidence.Canary; {
	case c == nil:
		return one(unread)
	case c.Failure != nil:
		finding := failureFinding(*c.Failure)
		finding.Title = "the canary " + name + " could not be read: " + finding.Title
		return one(finding)
	case c.Missing:
		unread.Wait = WaitQuiet
		unread.Title = "there is no canary " + name + ", so nothing shows that a wrong artifact would be refused"
		unread.Expected = "an OCIRepository named " + name
		unread.Found = "the API server answers that it does not exist"
		unread.Remedy = "correct the input canary, or " + canaryRemedy
		return one(unread)
	case c.Source == nil:
		return one(unread)
	}
	for _, rule := range canaryRules {
		if finding := rule(f, f.evidence.Canary.Source); finding != nil {
			finding.Code = CanaryAccepted
			if finding.Outcome == "" {
				finding.Outcome = Unknown
			}
			if finding.Expected == "" {
				finding.Expected = "SourceVerified False at its generation, because no signature of the artifact is by whom the policy names"
			}
			return one(*finding)
		}
	}
	return one(unread)
}

// canaryRules are asked from top to bottom; the first that has an opinion
// decides, and the last one always has one. A rule leaves the outcome out for an
// unknown, and what was expected where that is a refusal.
var canaryRules = []func(*facts, *Source) *Finding{
	canaryIsSource,
	canaryAtRest,
	canaryWithoutWord,
	canaryTaken,
	canaryOfAnotherShard,
	canaryInTrouble,
	canarySameArtifact,
	canaryOtherPolicy,
	canaryClass,
}

// canaryIsSource: the source cannot be its own control.
func canaryIsSource(f *facts, s *Source) *Finding {
	own := f.source.Object
	sameName := s.Object.Namespace == own.Namespace && s.Object.Name == own.Name
	if !sameName && (own.UID == "" || s.Object.UID != own.UID) {
		return nil
	}
	return &Finding{
		Outcome: Fail, Title: "the canary is the source itself, which the policy must accept",
		Expected: "another OCIRepository than the source",
		Found:    "OCIRepository " + s.Object.Namespace + "/" + s.Object.Name + ", uid " + string(s.Object.UID),
		Remedy:   "name another object in the input canary, and " + canaryRemedy,
	}
}

// canaryAtRest: what the controller does not reconcile keeps an old word.
func canaryAtRest(_ *facts, s *Source) *Finding {
	switch deleted := s.Object.DeletionTimestamp; {
	case deleted != nil:
		return &Finding{
			Wait: WaitQuiet, Title: "the canary is being deleted",
			Found: "deleted at " + deleted.UTC().Format(time.RFC3339), Remedy: canaryRemedy,
		}
	case s.Object.Spec.Suspend:
		return &Finding{
			Wait: WaitQuiet, Title: "the canary is suspended, so the controller does not look at it",
			Found: "spec.suspend true", Remedy: "resume it (flux resume source oci " + s.Object.Name + ")",
		}
	}
	return nil
}

// canaryWithoutWord: the controller says nothing about the policy that the
// canary carries now. What it took in all the same was accepted.
func canaryWithoutWord(_ *facts, s *Source) *Finding {
	found, generation := s.conditionsOf(sourcev1.SourceVerifiedCondition), s.Object.Generation
	finding := &Finding{Wait: WaitDeadline,
		Remedy: "see what its Ready condition says, and whether source-controller runs; raise timeout if it was only just deployed"}
	switch {
	case generation < 1:
		finding.Title = "the canary has no generation, so nothing shows that the controller has seen it"
		finding.Found = fmt.Sprintf("metadata.generation %d", generation)
	case len(found) == 0 && s.trueNow(meta.ReadyCondition) && s.revision() != "":
		finding.Outcome, finding.Wait = Fail, WaitQuiet
		finding.Title = "the controller serves the canary's artifact without having verified it"
		finding.Found = "no condition SourceVerified; " + s.describe(meta.ReadyCondition)
		finding.Remedy = "do not promote: give the canary the spec.verify of the source (docs/canary.md)"
	case len(found) != 1, found[0].Status != metav1.ConditionTrue && found[0].Status != metav1.ConditionFalse:
		finding.Title = "the controller does not say what became of the canary"
		finding.Found = s.describe(sourcev1.SourceVerifiedCondition) + "; " + s.describe(meta.ReadyCondition)
	case found[0].ObservedGeneration != generation:
		finding.Title = "what the controller says of the canary is about another generation, so not about the policy that it carries now"
		finding.Found = fmt.Sprintf("generation %d; %s", generation, describeCondition(&found[0]))
	default:
		return nil
	}
	return finding
}

// canaryTaken: the controller accepted what it must refuse. A policy is changed
// in both objects, in no order, so it may be repaired in a moment.
func canaryTaken(_ *facts, s *Source) *Finding {
	c := s.condition(sourcev1.SourceVerifiedCondition)
	if c.Status != metav1.ConditionTrue {
		return nil
	}
	return &Finding{
		Outcome: Fail, Wait: WaitQuiet,
		Title:  "the controller accepted the canary: this policy does not refuse what it must refuse",
		Found:  describeCondition(c),
		Remedy: "do not promote. See who signed the canary's artifact and why the policy accepts that signer (policy-too-wide); if it was signed by mistake, push an unsigned one (docs/canary.md)",
	}
}

// shardKey is the label by which Flux's documents divide the objects among
// several source-controllers (--watch-label-selector=sharding.fluxcd.io/key=…).
const shardKey = "sharding.fluxcd.io/key"

// canaryOfAnotherShard: another controller, perhaps of another version or with
// another trusted root, says nothing about the one of the source.
func canaryOfAnotherShard(f *facts, s *Source) *Finding {
	own, ownThere := f.source.Object.Labels[shardKey]
	other, otherThere := s.Object.Labels[shardKey]
	if own == other && ownThere == otherThere {
		return nil
	}
	return &Finding{
		Wait: WaitQuiet, Title: "the canary is of another shard than the source, so another controller looks at it",
		Expected: "the label " + shardKey + " as at the source: " + orNothing(own), Found: orNothing(other),
		Remedy: "give the canary the label of the source, or leave it out of both",
	}
}

// canaryInTrouble: a refusal beside these is the last word before the trouble.
func canaryInTrouble(_ *facts, s *Source) *Finding {
	for _, kind := range []string{sourcev1.FetchFailedCondition, sourcev1.StorageOperationFailedCondition, meta.StalledCondition} {
		if c := s.anyButFalse(kind); c != nil {
			return &Finding{
				Wait:     WaitDeadline,
				Title:    "the controller could not do its work on the canary, so its word about it is not known to be new",
				Expected: "no condition " + kind, Found: describeCondition(c),
				Remedy: "repair what the message names, so that the controller comes to verify the canary",
			}
		}
	}
	if s.refusal() == nil {
		return &Finding{
			Wait:     WaitDeadline,
			Title:    "the controller's reason is not one that this release knows",
			Expected: "SourceVerified False for the reason " + sourcev1.VerificationError,
			Found:    s.describe(sourcev1.SourceVerifiedCondition),
			Remedy:   "see whether this release of the gate knows your Flux version (docs/flux-versions.md)",
		}
	}
	return nil
}

// canarySameArtifact: a refusal of the very artifact that is being promoted is
// no control of anything. Either the canary is aimed wrongly, or the next
// verification of the source will refuse too.
func canarySameArtifact(f *facts, s *Source) *Finding {
	finding := &Finding{Wait: WaitQuiet,
		Expected: "an artifact that is never to be deployed, under a tag of its own",
		Remedy:   "point the canary at an artifact of its own (docs/canary.md). If it is aimed rightly, the next verification of the source will refuse as well"}
	digest, spec, own := s.failedDigest(), s.Object.Spec, f.source.Object.Spec
	switch {
	case digest == "":
		finding.Wait = WaitDeadline
		finding.Title = "the canary's status does not name the artifact that was refused, so it may be the one that is being promoted"
		finding.Expected = "a condition that names the revision, as the controller writes at the end of every try"
		finding.Found = s.describe(meta.ReconcilingCondition) + "; " + s.describe(meta.ReadyCondition)
		finding.Remedy = "wait for the end of the controller's try (raise timeout); it tries again by itself"
	case digest == f.source.Digest(), digest == f.want.Digest:
		finding.Title = "the canary points at the artifact that is being promoted, so its refusal controls nothing"
		finding.Found = digest
	case spec.URL == own.URL && follows(spec.Reference) == follows(own.Reference):
		finding.Title = "the canary follows the tag of the source, so its refusal controls nothing"
		finding.Found = "the same spec.url and spec.ref as the source: " + spec.URL
	default:
		return nil
	}
	return finding
}

// follows gives the part of a reference that counts, and latest where there is
// none (source-controller, internal/controller/ocirepository_controller.go,
// v1.9, getArtifactRef).
func follows(r *sourcev1.OCIRepositoryRef) sourcev1.OCIRepositoryRef {
	switch {
	case r == nil:
	case r.Digest != "":
		return sourcev1.OCIRepositoryRef{Digest: r.Digest}
	case r.SemVer != "":
		return sourcev1.OCIRepositoryRef{SemVer: r.SemVer, SemverFilter: r.SemverFilter}
	case r.Tag != "":
		return sourcev1.OCIRepositoryRef{Tag: r.Tag}
	}
	return sourcev1.OCIRepositoryRef{Tag: "latest"}
}

// canaryOtherPolicy: the controller names in its text whether it verified with
// keys or keyless. A text of the other way was written for an earlier policy and
// stamped with the generation of this one (fluxcd/pkg runtime/conditions, which
// stamps the generation at the time of writing).
func canaryOtherPolicy(_ *facts, s *Source) *Finding {
	c, verify := s.refusal(), s.Object.Spec.Verify
	if verify != nil && strings.HasPrefix(c.Message, verifyFailedPrefix+providerName(verify)+"': ") {
		return nil
	}
	return &Finding{
		Wait:     WaitDeadline,
		Title:    "the controller's text is not about the policy that the canary carries now",
		Expected: verifyFailedPrefix + "…', the provider being that of the canary's spec.verify",
		Found:    describeCondition(c),
		Remedy:   "wait for the controller's next try (raise timeout); it tries again by itself",
	}
}

// providerName is how the controller calls the way of verifying in its texts
// (source-controller, internal/controller/ocirepository_controller.go, v0.30 to
// v1.10, verifySignature's caller).
func providerName(verify *sourcev1.OCIRepositoryVerification) string {
	if verify.Provider == providerCosign && verify.SecretRef == nil {
		return providerCosign + " keyless"
	}
	return verify.Provider
}

// canaryClass: the class says whether the controller refused the artifact or
// could not judge it.
func canaryClass(f *facts, s *Source) *Finding {
	message := s.refusal().Message
	finding := &Finding{Class: classify(message), Wait: WaitDeadline, Found: message}
	finding.Remedy = finding.Class.remedy()
	refused := &Finding{Outcome: Pass, Title: "the controller refused the canary, as it must", Class: finding.Class, Found: message}
	class := finding.Class
	if class.refuses() && namesTrouble(message) {
		finding.Title = "the controller refused one thing about the canary and could not judge another, so it may refuse for the trouble alone"
		finding.Remedy = "read the message: repair what it names, or push the canary's artifact again with one signature at most"
		return finding
	}
	if class.refuses() && s.Object.Spec.Verify.SecretRef != nil {
		// Whatever goes wrong with a key is said to be no match.
		class = ClassNoMatchingKey
	}
	switch class {
	case ClassNoSignature, ClassWrongSigner:
		return refused
	case ClassNoMatchingKey:
		if f.verifiedWithKeysOf(s) {
			return refused
		}
		finding.Title = "no key matched the canary, and the source is not verified with the same keys, so the keys may be at fault"
		finding.Expected = "the source verified now with the Secret that the canary names, in the same namespace"
		finding.Remedy = "see why the source is not verified; with a Secret without a usable key everything is refused"
	case ClassMultipleIdentities, ClassBadPattern, ClassNoIdentity:
		finding.Wait = WaitQuiet
		finding.Title = "the controller refuses the canary because it cannot use the policy, so it would refuse every artifact"
	case ClassSecretMissing:
		finding.Wait = WaitQuiet
		finding.Title = "the controller could not verify the canary, because a Secret of its policy is not as it must be"
	case ClassSigstoreTrouble, ClassRegistryTrouble:
		finding.Title = "the controller could not verify the canary, so it has not refused it"
	default:
		finding.Title = "the controller's text does not show whether it refused the canary or could not verify it"
	}
	return finding
}

// verifiedWithKeysOf says that the keys which matched nothing of the canary do
// match what they should: the controller says "no matching signatures" of an
// empty Secret as well.
func (f *facts) verifiedWithKeysOf(s *Source) bool {
	own, keys, same := f.source.Object, s.Object.Spec.Verify.SecretRef, f.source.Object.Spec.Verify
	return f.source.verifiedNow() && keys != nil && same != nil && same.SecretRef != nil &&
		same.SecretRef.Name == keys.Name && own.Namespace == s.Object.Namespace
}

// checkCanaryPolicy: a refusal under another policy says nothing about the one
// of the source. A Secret is looked up in the object's own namespace, so the same
// name elsewhere is another Secret.
func checkCanaryPolicy(f *facts) []Finding {
	s := f.canary()
	if f.want.Canary == (ObjectName{}) || s == nil {
		return nil // canary-accepted, or why it could not be read, says it
	}
	own, other := f.source.Object, s.Object
	finding := Finding{Code: CanaryDiffers, Outcome: Fail, Wait: WaitQuiet,
		Remedy: "copy spec.verify of the source into the canary, whole, and let both come from one place in Git (docs/canary.md)"}
	switch {
	case !equality.Semantic.DeepEqual(own.Spec.Verify, other.Spec.Verify):
		finding.Title = "the canary carries another policy than the source"
		finding.Expected = describeVerify(own.Spec.Verify)
		finding.Found = describeVerify(other.Spec.Verify)
	case !slices.Equal(f.source.UnknownVerify, s.UnknownVerify):
		finding.Title = "the canary's policy and the source's have different fields that this release does not know"
		finding.Expected = orNothing(strings.Join(f.source.UnknownVerify, ", "))
		finding.Found = orNothing(strings.Join(s.UnknownVerify, ", "))
	case len(s.UnknownVerify) > 0:
		finding.Outcome = Unknown
		finding.Title = "both policies have fields that this release does not know, and cannot compare"
		finding.Expected = "only provider, secretRef, matchOIDCIdentity (issuer, subject) and trustedRootSecretRef"
		finding.Found = strings.Join(s.UnknownVerify, ", ")
		finding.Remedy = "use a release of the gate that knows your Flux version, or remove the field"
	case own.Namespace != other.Namespace && namesSecret(own.Spec.Verify):
		finding.Title = "the policy names a Secret, and the canary looks for it in another namespace"
		finding.Expected = "the canary in the namespace " + own.Namespace
		finding.Found = "the namespace " + other.Namespace
		finding.Remedy = "move the canary to the namespace of the source"
	default:
		return pass(CanaryDiffers, "the canary carries the policy of the source")
	}
	return one(finding)
}

func namesSecret(verify *sourcev1.OCIRepositoryVerification) bool {
	return verify != nil && (verify.SecretRef != nil || verify.TrustedRootSecretRef != nil)
}

// describeVerify says in one line what a policy is.
func describeVerify(verify *sourcev1.OCIRepositoryVerification) string {
	if verify == nil {
		return "no spec.verify"
	}
	parts := []string{"provider " + orNothing(verify.Provider)}
	if verify.SecretRef != nil {
		parts = append(parts, "secretRef "+orNothing(verify.SecretRef.Name))
	}
	if verify.TrustedRootSecretRef != nil {
		parts = append(parts, "trustedRootSecretRef "+orNothing(verify.TrustedRootSecretRef.Name))
	}
	for _, identity := range verify.MatchOIDCIdentity {
		parts = append(parts, fmt.Sprintf("issuer %q subject %q", identity.Issuer, identity.Subject))
	}
	return strings.Join(parts, ", ")
}

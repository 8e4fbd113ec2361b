package gate

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate/signer"
)

// Decide judges one evidence by one policy, as at the deadline: a fail that may
// still mend itself is a fail. History.Settled says whether to wait instead.
//
// It is a pure function of its arguments; at is the time that the report
// carries. ctx can only cut the policy proof short, which is then unknown.
func Decide(ctx context.Context, p Policy, e Evidence, at time.Time) Report {
	f := &facts{ctx: ctx, want: p.want, evidence: e, source: e.Source}
	findings := f.look()
	if !p.sound {
		findings = append(findings, unsoundPolicy())
	}
	return f.report(findings, at)
}

// CouldNotLook is the report of a run that did not come to looking: its inputs
// are bad, it was cancelled, or it broke. e.Failures say why; the verdict is
// undecided whatever they say.
func CouldNotLook(e Evidence, at time.Time) Report {
	f := &facts{evidence: Evidence{
		Namespace: e.Namespace, Name: e.Name, Live: e.Live, Cluster: e.Cluster, Failures: e.Failures,
	}}
	return f.report(f.look(), at)
}

// SameSubject says whether two reads are of the same object, generation and
// artifact, so that what was found out beside them holds for both.
func SameSubject(a, b *Source) bool {
	if a == nil || b == nil {
		return a == b
	}
	return identityOf(a) == identityOf(b) && a.revision() == b.revision()
}

// report puts the findings in the order of the document, forms the verdict, and
// says beside it what was looked at.
func (f *facts) report(findings []Finding, at time.Time) Report {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Compare(documentOrder(a.Code), documentOrder(b.Code))
	})
	report := Report{
		SchemaVersion: SchemaVersion,
		Gate:          Build{Forms: signer.FormsVersion},
		JudgedAt:      at,
		Mode:          Enforce,
		Live:          f.evidence.Live,
		Cluster:       f.evidence.Cluster,
		Expected:      Expected{Digest: f.want.Digest, URL: f.want.URL},
		Source:        f.sourceSummary(),
		Canary:        f.canarySummary(findings),
		Findings:      findings,
		Signers:       orEmpty(f.signers),
		Policy:        f.policySummary(),
		Owners:        f.owners(),
	}
	report.Verdict, report.Reason = verdictOf(findings)
	return report
}

// look asks every check of the rule book.
func (f *facts) look() []Finding { return f.lookBy(checks) }

// lookBy asks every check of a rule book. What was not read gives an unknown, so
// that a verdict without evidence cannot be verified.
func (f *facts) lookBy(rules []check) []Finding {
	var findings []Finding
	for _, failure := range f.evidence.Failures {
		findings = append(findings, failureFinding(failure))
	}
	if f.source == nil && !f.evidence.Missing {
		if len(findings) == 0 {
			findings = append(findings, nothingRead())
		}
		return findings
	}
	findings = append(findings, sourceMissing(f.evidence))
	if f.source == nil {
		return findings
	}
	for _, c := range rules {
		findings = append(findings, c.look(f)...)
	}
	return append(findings, f.unanswered(findings)...)
}

func nothingRead() Finding {
	return Finding{
		Code: NoAnswer, Outcome: Unknown, Wait: WaitDeadline,
		Title: "the source was not read", Expected: "one read of the object", Found: "none",
		Remedy: "see the log for what was tried",
	}
}

func unsoundPolicy() Finding {
	return Finding{
		Code: Internal, Outcome: Unknown,
		Title: "the policy was not checked before it was used", Expected: "a policy made by NewPolicy", Found: "the zero value",
		Remedy: "report this: it is a fault of the gate",
	}
}

// verdictOf forms the verdict and its reason from the findings: any fail
// rejects, else any unknown leaves it undecided.
func verdictOf(findings []Finding) (Verdict, Code) {
	for _, side := range []struct {
		outcome Outcome
		verdict Verdict
	}{{Fail, Rejected}, {Unknown, Undecided}} {
		for _, code := range reasonOrder {
			for _, f := range findings {
				if f.Code == code && f.Outcome == side.outcome {
					return side.verdict, code
				}
			}
		}
	}
	// A finding whose code stands in no order would be lost above; it must
	// never turn into a pass.
	for _, f := range findings {
		if f.Outcome == Fail || f.Outcome == Unknown {
			return Undecided, Internal
		}
	}
	if len(findings) == 0 {
		return Undecided, Internal
	}
	return Verified, ReasonVerified
}

// unanswered holds the house rule that nothing passes by omission: every code
// that this policy must have had answered has a finding, or there is another
// fail or unknown that explains why not.
func (f *facts) unanswered(findings []Finding) []Finding {
	for _, finding := range findings {
		if finding.Outcome == Fail || finding.Outcome == Unknown {
			return nil
		}
	}
	answers := map[Code]int{}
	for _, finding := range findings {
		answers[finding.Code]++
	}
	var open []string
	for _, code := range f.mandatory() {
		if answers[code]--; answers[code] < 0 {
			open = append(open, string(code))
		}
	}
	if len(open) == 0 {
		return nil
	}
	return one(Finding{
		Code: Internal, Outcome: Unknown,
		Title: "a check gave no answer", Expected: "an answer for every check that this policy needs", Found: "none for " + strings.Join(open, ", "),
		Remedy: "report this: it is a fault of the gate",
	})
}

// mandatory lists the codes without whose answer nothing may be verified; one
// that two checks have to answer stands twice.
func (f *facts) mandatory() []Code {
	codes := []Code{
		SourceMissing, SourceSuspended, SourceDeleting, SourceUnobserved, SourceReconciling, SourceStalled,
		VerifyAbsent, VerifyProvider, KeyUnexpected,
		VerificationFailed, VerificationMissing, VerificationStale, VerificationOtherRevision, NotReady,
		FetchFailed, ArtifactOutdated, StorageFailed, ArtifactMissing, ContentConfig,
		DigestMismatch,
	}
	if f.want.URL != "" {
		codes = append(codes, SourceURL)
	}
	if f.want.Canary != (ObjectName{}) {
		codes = append(codes, CanaryAccepted, CanaryDiffers)
	}
	if f.want.Keys != nil {
		codes = append(codes, KeyMissing)
	} else {
		codes = append(codes, SignerUnconstrained, MatcherInvalid, MatchersMultiple, SignerMissing, PolicyTooWide, SelfTest)
		if f.want.LooseFails && !f.everythingIssuable() {
			codes = append(codes, PolicyLoose)
		}
	}
	if f.want.Signature == SignatureSkip {
		return append(codes, SignatureSkipped)
	}
	return append(codes, Unsigned, SignedByOthers, SignatureInvalid, ControllerDisagrees, SelfTest)
}

func (f *facts) sourceSummary() SourceSummary {
	summary := SourceSummary{Namespace: f.evidence.Namespace, Name: f.evidence.Name}
	if f.source == nil {
		return summary
	}
	object := f.source.Object
	summary = SourceSummary{
		Namespace: object.Namespace, Name: object.Name, APIVersion: object.APIVersion,
		UID: string(object.UID), ResourceVersion: object.ResourceVersion, Generation: object.Generation,
		Revision: f.source.revision(), Digest: digestOf(f.source.revision()), URL: object.Spec.URL,
	}
	if repository, ok := strings.CutPrefix(object.Spec.URL, sourcev1.OCIRepositoryPrefix); ok && summary.Digest != "" {
		summary.Reference = repository + "@" + summary.Digest
	}
	return summary
}

func (f *facts) policySummary() PolicySummary {
	summary := PolicySummary{
		Required: orEmpty(f.want.Required), Allowed: orEmpty(f.want.Allowed), Witnesses: []Witness{},
		Live: LivePolicy{Identities: []signer.Entry{}},
	}
	if f.want.Keys != nil {
		summary.Keys = f.want.Keys.Secret
	}
	if f.source == nil {
		return summary
	}
	if verify := f.source.Object.Spec.Verify; verify != nil {
		summary.Live = LivePolicy{Present: true, Provider: verify.Provider, Identities: f.entries()}
		if verify.SecretRef != nil {
			summary.Live.Secret = verify.SecretRef.Name
		}
		if verify.TrustedRootSecretRef != nil {
			summary.Live.TrustedRoot = verify.TrustedRootSecretRef.Name
		}
	}
	if f.want.Keys == nil {
		summary.Suggested, summary.PrivateRoot = f.suggested(), f.everythingIssuable()
	}
	if f.provable() {
		answer := f.prove()
		for _, m := range answer.Missing {
			summary.Witnesses = append(summary.Witnesses, Witness{SignerMissing, m.Witness})
		}
		if answer.TooWide != nil {
			summary.Witnesses = append(summary.Witnesses, Witness{PolicyTooWide, *answer.TooWide})
		}
		if answer.Loose != nil {
			summary.Witnesses = append(summary.Witnesses, Witness{PolicyLoose, *answer.Loose})
		}
	}
	return summary
}

func (f *facts) owners() []Owner {
	if f.source == nil {
		return []Owner{}
	}
	return orEmpty(f.source.Owners)
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

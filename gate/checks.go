package gate

import (
	"context"
	"slices"

	"flux-verify-gate/gate/signer"
)

// check is one line of the rule book: the codes that it can give (stated, so
// that tests can hold code and document together) and the function that looks.
type check struct {
	codes []Code
	look  func(*facts) []Finding
}

// facts are what a check looks at: one policy, one evidence, and the proof
// between them.
type facts struct {
	ctx      context.Context
	want     Requirements
	evidence Evidence
	// source is evidence.Source; a check of sections A to D is only asked where
	// it is there.
	source *Source
	// proof is made once, by the first check that asks for it.
	proof *signer.Answer
	// signers is what the check of the signatures found, for the report.
	signers []SignerResult
}

// checks is the rule book, in the order of docs/checks.md. Sections A to E are
// asked of a source that was read.
var checks = slices.Concat(sourceChecks, policyChecks, statusChecks, artifactChecks, controlChecks)

// reasonOrder puts the codes in the order in which they explain a verdict: the
// cause before its symptoms.
var reasonOrder = slices.Concat(
	[]Code{SourceMissing, SourceDeleting, SourceSuspended, SourceURL},
	policyOrder,
	[]Code{
		VerificationFailed, FetchFailed, StorageFailed, SourceStalled,
		SignatureInvalid, SignedByOthers, NotASignature, ClaimsMismatch, Unsigned, ControllerDisagrees,
		SelfTest, CanaryAccepted, CanaryDiffers,
		DigestMismatch,
		VerificationOtherRevision, VerificationStale, VerificationMissing,
		ContentConfig, ArtifactOutdated, ArtifactMissing,
		SourceUnobserved, SourceReconciling, NotReady,
	},
	lookOrder,
)

// policyOrder is section B in the order of its table.
var policyOrder = []Code{
	VerifyAbsent, VerifyProvider, KeyMissing, KeyUnexpected, IdentitiesIgnored, SignerUnconstrained, MatcherInvalid,
	MatchersMultiple, SignerMissing, PolicyTooWide, PolicyLoose, TrustedRootCustom, KeysUnread,
}

// lookOrder is section G: what could not be looked at.
var lookOrder = []Code{
	BadInput, AccessDenied, APIMissing, Unreachable, NoAnswer, RegistryDenied, RegistryUnreachable, TrustedRootDiffers,
	TrustedRootUnavailable, ProofTooLarge, VerifyFieldUnknown, MessageUnknown, Cancelled, Internal,
}

func pass(code Code, title string) []Finding {
	return []Finding{{Code: code, Outcome: Pass, Title: title}}
}

func note(code Code, title, remedy string) []Finding {
	return []Finding{{Code: code, Outcome: Note, Title: title, Remedy: remedy}}
}

// one makes a Finding the whole answer of a check.
func one(f Finding) []Finding { return []Finding{f} }

package gate

import "slices"

// Code names one thing that is checked. Codes are stable once released; each is
// documented in docs/checks.md.
type Code string

// A. The source: is this the object, and is its controller done with it?
const (
	SourceMissing     Code = "source-missing"
	SourceURL         Code = "source-url"
	SourceSuspended   Code = "source-suspended"
	SourceDeleting    Code = "source-deleting"
	SourceUnobserved  Code = "source-unobserved"
	SourceReconciling Code = "source-reconciling"
	SourceStalled     Code = "source-stalled"
	SourceInsecure    Code = "source-insecure"
	TimeoutShort      Code = "timeout-short"
)

// B. The policy: does the live spec.verify accept every required signer, and
// nobody else?
const (
	VerifyAbsent        Code = "verify-absent"
	VerifyProvider      Code = "verify-provider"
	KeyMissing          Code = "key-missing"
	KeyUnexpected       Code = "key-unexpected"
	IdentitiesIgnored   Code = "identities-ignored"
	SignerUnconstrained Code = "signer-unconstrained"
	MatcherInvalid      Code = "matcher-invalid"
	MatchersMultiple    Code = "matchers-multiple"
	SignerMissing       Code = "signer-missing"
	PolicyTooWide       Code = "policy-too-wide"
	PolicyLoose         Code = "policy-loose"
	TrustedRootCustom   Code = "trusted-root-custom"
	KeysUnread          Code = "keys-unread"
)

// C. The status: did the controller verify the artifact that it serves now?
const (
	VerificationFailed        Code = "verification-failed"
	VerificationMissing       Code = "verification-missing"
	VerificationStale         Code = "verification-stale"
	VerificationOtherRevision Code = "verification-other-revision"
	NotReady                  Code = "not-ready"
	FetchFailed               Code = "fetch-failed"
	ArtifactOutdated          Code = "artifact-outdated"
	StorageFailed             Code = "storage-failed"
	ArtifactMissing           Code = "artifact-missing"
	ContentConfig             Code = "content-config"
)

// D. The artifact: is it what was promoted, and is it really signed?
const (
	DigestMismatch      Code = "digest-mismatch"
	Unsigned            Code = "unsigned"
	SignedByOthers      Code = "signed-by-others"
	SignatureInvalid    Code = "signature-invalid"
	NotASignature       Code = "not-a-signature"
	ClaimsMismatch      Code = "claims-mismatch"
	SignerShared        Code = "signer-shared"
	ControllerDisagrees Code = "controller-disagrees"
	WillRefuse          Code = "will-refuse"
	SignatureSkipped    Code = "signature-skipped"
)

// E. The controls: could this have failed?
const (
	SelfTest       Code = "self-test"
	CanaryAccepted Code = "canary-accepted"
	CanaryDiffers  Code = "canary-differs"
)

// G. Could not look: always undecided.
const (
	BadInput               Code = "bad-input"
	AccessDenied           Code = "access-denied"
	APIMissing             Code = "api-missing"
	Unreachable            Code = "unreachable"
	NoAnswer               Code = "no-answer"
	RegistryDenied         Code = "registry-denied"
	RegistryUnreachable    Code = "registry-unreachable"
	TrustedRootUnavailable Code = "trusted-root-unavailable"
	TrustedRootDiffers     Code = "trusted-root-differs"
	ProofTooLarge          Code = "proof-too-large"
	VerifyFieldUnknown     Code = "verify-field-unknown"
	MessageUnknown         Code = "message-unknown"
	Cancelled              Code = "cancelled"
	Internal               Code = "internal"
)

// codes lists every code in the order of docs/checks.md, which is the order of
// the findings in a report.
var codes = slices.Concat(
	[]Code{
		SourceMissing, SourceURL, SourceSuspended, SourceDeleting, SourceUnobserved, SourceReconciling, SourceStalled,
		SourceInsecure, TimeoutShort,
	},
	policyOrder,
	[]Code{
		VerificationFailed, VerificationMissing, VerificationStale, VerificationOtherRevision, NotReady, FetchFailed,
		ArtifactOutdated, StorageFailed, ArtifactMissing, ContentConfig,

		DigestMismatch, Unsigned, SignedByOthers, SignatureInvalid, NotASignature, ClaimsMismatch, SignerShared,
		ControllerDisagrees, WillRefuse, SignatureSkipped,

		SelfTest, CanaryAccepted, CanaryDiffers,
	},
	lookOrder,
)

// documentOrder is the place of a code in docs/checks.md; a code that is not
// there comes last.
func documentOrder(code Code) int {
	if i := slices.Index(codes, code); i >= 0 {
		return i
	}
	return len(codes)
}

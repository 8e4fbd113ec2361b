package report

import "flux-verify-gate/gate"

// section is where a code stands in docs/checks.md, and with it which link of
// the chain in the summary it is about.
type section int

const (
	// sectionNone: about none in particular (the run, or all of it).
	sectionNone section = iota
	sectionSource
	sectionPolicy
	sectionStatus
	sectionDigest
	sectionSignature
)

var sections = map[gate.Code]section{
	gate.SourceMissing:     sectionSource,
	gate.SourceURL:         sectionSource,
	gate.SourceSuspended:   sectionSource,
	gate.SourceDeleting:    sectionSource,
	gate.SourceUnobserved:  sectionSource,
	gate.SourceReconciling: sectionSource,
	gate.SourceStalled:     sectionSource,
	gate.SourceInsecure:    sectionSource,
	gate.TimeoutShort:      sectionNone,

	gate.VerifyAbsent:        sectionPolicy,
	gate.VerifyProvider:      sectionPolicy,
	gate.KeyMissing:          sectionPolicy,
	gate.KeyUnexpected:       sectionPolicy,
	gate.IdentitiesIgnored:   sectionPolicy,
	gate.SignerUnconstrained: sectionPolicy,
	gate.MatcherInvalid:      sectionPolicy,
	gate.MatchersMultiple:    sectionPolicy,
	gate.SignerMissing:       sectionPolicy,
	gate.PolicyTooWide:       sectionPolicy,
	gate.PolicyLoose:         sectionPolicy,
	gate.TrustedRootCustom:   sectionPolicy,
	gate.KeysUnread:          sectionPolicy,
	gate.VerifyFieldUnknown:  sectionPolicy,
	gate.ProofTooLarge:       sectionPolicy,

	gate.VerificationFailed:        sectionStatus,
	gate.VerificationMissing:       sectionStatus,
	gate.VerificationStale:         sectionStatus,
	gate.VerificationOtherRevision: sectionStatus,
	gate.NotReady:                  sectionStatus,
	gate.FetchFailed:               sectionStatus,
	gate.ArtifactOutdated:          sectionStatus,
	gate.StorageFailed:             sectionStatus,
	gate.ArtifactMissing:           sectionStatus,
	gate.ContentConfig:             sectionStatus,
	gate.MessageUnknown:            sectionStatus,
	gate.CanaryAccepted:            sectionStatus,
	gate.CanaryDiffers:             sectionStatus,

	gate.DigestMismatch: sectionDigest,

	gate.Unsigned:               sectionSignature,
	gate.SignedByOthers:         sectionSignature,
	gate.SignatureInvalid:       sectionSignature,
	gate.NotASignature:          sectionSignature,
	gate.ClaimsMismatch:         sectionSignature,
	gate.SignerShared:           sectionSignature,
	gate.ControllerDisagrees:    sectionStatus,
	gate.WillRefuse:             sectionStatus,
	gate.SignatureSkipped:       sectionSignature,
	gate.RegistryDenied:         sectionSignature,
	gate.RegistryUnreachable:    sectionSignature,
	gate.TrustedRootUnavailable: sectionSignature,
	gate.TrustedRootDiffers:     sectionSignature,

	// The self-test is of the gate (its verifier, its proof), not of a link.
	gate.SelfTest:     sectionNone,
	gate.BadInput:     sectionNone,
	gate.AccessDenied: sectionNone,
	gate.APIMissing:   sectionNone,
	gate.Unreachable:  sectionNone,
	gate.NoAnswer:     sectionNone,
	gate.Cancelled:    sectionNone,
	gate.Internal:     sectionNone,
}

// sectionOf returns sectionNone for what is not a code.
func sectionOf(code gate.Code) section {
	return sections[code]
}

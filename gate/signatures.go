package gate

import (
	"time"

	"flux-verify-gate/gate/signer"
)

// Layout is where a signature was found.
type Layout string

// LayoutBundle is a Sigstore bundle among the referrers of the digest (OCI 1.1
// API, or its fallback tag sha256-<hex>). LayoutTag is cosign's older layout,
// one layer per signature under the tag sha256-<hex>.sig.
const (
	LayoutBundle Layout = "bundle"
	LayoutTag    Layout = "tag"
)

// Kind says what was signed.
type Kind string

// KindSignature is a cosign signature of the artifact. KindAttestation is any
// other signed statement about it, such as an SBOM or a provenance.
const (
	KindSignature   Kind = "signature"
	KindAttestation Kind = "attestation"
)

// Step names the step of the verification at which a candidate was refused. The
// steps are run in this order.
type Step string

// The steps of a verification. StepFetch: the bytes could not be had, or exceed
// a limit, or have another digest. StepParse: they are no signature that can be
// read. StepBinding: it is about another digest. StepCertificate: the chain
// does not end in the trusted root. StepSCT: no certificate-transparency log
// vouches for the certificate. StepLog: no transparency log entry. StepTime: no
// trusted time within the certificate's life. StepSignature: the signature
// itself is wrong. StepIdentity: another issuer or subject.
const (
	StepFetch       Step = "fetch"
	StepParse       Step = "parse"
	StepBinding     Step = "binding"
	StepCertificate Step = "certificate"
	StepSCT         Step = "sct"
	StepLog         Step = "log"
	StepTime        Step = "time"
	StepSignature   Step = "signature"
	StepIdentity    Step = "identity"
)

// Signature is one candidate that was found in the registry for the digest, and
// what its verification came to. A candidate counts only if Verified is true;
// everything else in it is then what the signed bytes and the certificate say.
type Signature struct {
	Layout Layout `json:"layout"`
	Kind   Kind   `json:"kind,omitempty"`
	// PredicateType is the predicate type of the signed statement; empty for
	// the tag layout, whose payload is cosign's simple signing.
	PredicateType string `json:"predicateType,omitempty"`
	// Identity is empty for a signature by a key.
	Identity signer.Identity `json:"identity,omitzero"`
	// Subjects are all names in the certificate; Identity.Subject is the one
	// that counts.
	Subjects []string `json:"subjects,omitempty"`
	// Claims are the certificate's claims.
	Claims signer.Claims `json:"claims,omitzero"`
	// Key is the SHA-256 of the public key (DER, hex) that verified a signature
	// made with a key; empty for keyless.
	Key string `json:"key,omitempty"`
	// Verified says that every step passed against the trusted root (or the
	// required keys) and that the signed content is about exactly this digest.
	Verified bool `json:"verified"`
	// Step and Why say where and why a candidate was refused; empty if
	// verified. Why is text from outside.
	Step Step   `json:"step,omitempty"`
	Why  string `json:"why,omitempty"`
	// Hint is one sentence on a likely cause that the bytes show, for example a
	// bundle of GitHub's private Sigstore; empty where there is none.
	Hint string `json:"hint,omitempty"`
	// Digest is the digest of the manifest (bundle) or layer (tag) that the
	// candidate was read from.
	Digest string `json:"digest,omitempty"`
	// MediaType is the candidate's own media type, with its version.
	MediaType string `json:"mediaType,omitempty"`
	// EntryKinds are the kinds and versions of the transparency log entries,
	// for example "hashedrekord/0.0.1".
	EntryKinds []string `json:"entryKinds,omitempty"`
	// LoggedAt is the trusted time of the signature; zero if there is none.
	LoggedAt time.Time `json:"loggedAt,omitzero"`
	// StatementSubjects is how many subjects the signed statement has.
	StatementSubjects int `json:"statementSubjects,omitempty"`
}

// Signatures is what the registry showed of one artifact.
type Signatures struct {
	// Reference is what was looked at: registry/repository@sha256:….
	Reference string
	// Digest is the digest of it; a Report never uses the signatures of another
	// digest than the one being served.
	Digest string
	// ManifestRead says that the artifact's own manifest was read with the same
	// credentials, which is what makes "no signature" an observation.
	ManifestRead bool
	// MediaType is the media type of that manifest.
	MediaType string
	// Complete says that every place where a signature may be was looked at,
	// without an error.
	Complete bool
	// Found are the candidates, in a stable order.
	Found []Signature
	// Failures are what could not be looked at, including the trusted root.
	Failures []Failure
	// PublicGood says that every certificate authority of the trusted root in
	// use belongs to the public-good Sigstore.
	PublicGood bool
	// RootSource says where the trusted root came from: "tuf" or a path.
	RootSource string
	// Credentials says which credentials were used, without any secret.
	Credentials string
	// SelfTest is the self-test of the verifier on the bytes just verified; nil
	// where nothing verified, so that there was nothing to test it on.
	SelfTest *VerifierTest
	// Hints are observations beside the candidates that explain a miss, for
	// example that the index holding this child manifest is signed.
	Hints []string
}

// VerifierTest is the outcome of verifying the very same bytes again under a
// changed digest and under a changed identity: each must be refused at the
// named step.
type VerifierTest struct {
	DigestRefusedAt   Step
	IdentityRefusedAt Step
	// Detail says what happened where that is not the expected step.
	Detail string
}

// IsOf says whether these are the signatures of what a source serves; nil is of
// nothing.
func (s *Signatures) IsOf(source *Source) bool {
	return s != nil && source != nil && s.Digest != "" && s.Digest == source.Digest()
}

package gate

import "flux-verify-gate/gate/signer"

// DigestAny is the word that says that any digest may be serving.
const DigestAny = "any"

// SignatureMode says whether the registry is asked for the signature.
type SignatureMode string

// SignatureVerify checks the signature in the registry independently.
// SignatureSkip does not, and has to be written out.
const (
	SignatureVerify SignatureMode = "verify"
	SignatureSkip   SignatureMode = "skip"
)

// Keys are required public keys, for signatures that are made with a key.
type Keys struct {
	// Secret is the name of the Secret that spec.verify.secretRef must name.
	Secret string
	// PEM are the public keys, PKIX in PEM, any of which may have signed.
	PEM []string
}

// Requirements are what a run asks for, before they have been found sound.
type Requirements struct {
	// Required signers: each must be accepted by the live policy, and one of
	// them must have signed (all of them with RequireAll).
	Required []signer.Signer
	// Allowed signers may be accepted by the live policy and need not be.
	Allowed []signer.Signer
	// Keys are required instead of signers.
	Keys       *Keys
	RequireAll bool
	// Attestations are the predicate types that count as a signature.
	Attestations []string
	// Digest is sha256:<64 lower-case hex digits>, or DigestAny.
	Digest string
	// URL is the oci:// address that the source must point at; empty for any.
	URL       string
	Signature SignatureMode
	// LooseFails makes policy-loose a fail instead of a note.
	LooseFails bool
	// CustomRoot says that the gate's own trusted root is a file. Whether that
	// file is the public-good root is a matter of evidence.
	CustomRoot bool
}

// Policy is a set of requirements that is sound: it requires somebody, and
// nothing in it contradicts. NewPolicy is the only way to make one.
type Policy struct {
	want  Requirements
	sound bool
}

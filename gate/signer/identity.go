package signer

// Identity is one pair of strings as a Sigstore certificate carries them: the
// OIDC issuer and the subject (its first URI, else e-mail, name). Comparison is
// case-sensitive.
type Identity struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// Entry is one identity matcher of a live policy: two Go RE2 patterns, each
// searched in (not anchored to) the issuer and the subject, both of which must
// match. That is how source-controller reads matchOIDCIdentity
// (source-controller, internal/controller/ocirepository_controller.go, v1.9).
type Entry struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

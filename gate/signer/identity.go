package signer

import "fmt"

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

// Accepts reports whether the entry matches the identity: both patterns searched
// in their value, as the controller does. It fails if a pattern does not compile.
func (e Entry) Accepts(id Identity) (bool, error) {
	test, err := e.matcher()
	return err == nil && test(id), err
}

// matcher returns Accepts by package regexp alone.
func (e Entry) matcher() (func(Identity) bool, error) {
	issuer, err := e.issuer()[0].matcher()
	if err != nil {
		return nil, fmt.Errorf("issuer %q is not a Go RE2 pattern: %w", e.Issuer, err)
	}
	subject, err := e.subject()[0].matcher()
	if err != nil {
		return nil, fmt.Errorf("subject %q is not a Go RE2 pattern: %w", e.Subject, err)
	}
	return func(id Identity) bool { return issuer(id.Issuer) && subject(id.Subject) }, nil
}

func (e Entry) issuer() language  { return language{{e.Issuer, searched}} }
func (e Entry) subject() language { return language{{e.Subject, searched}} }

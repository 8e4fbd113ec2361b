package signer

import (
	"fmt"
	"unicode/utf8"
)

// Signer is one required or allowed signer. Exactly one of Issuer and
// IssuerPattern is set, and exactly one of Subject and SubjectPattern; patterns
// are Go RE2 and must match the whole value. Parse is the way to make one from
// text.
type Signer struct {
	Issuer         string `json:"issuer,omitempty"`
	IssuerPattern  string `json:"issuerPattern,omitempty"`
	Subject        string `json:"subject,omitempty"`
	SubjectPattern string `json:"subjectPattern,omitempty"`
	// Claims are required beside the identity; they narrow which signature
	// counts, never which identity the live policy must accept.
	Claims Claims `json:"claims,omitzero"`
	// Shorthand is the one-line form of the shorthand that the signer was
	// expanded from, for the report; empty for a signer written out.
	Shorthand string `json:"shorthand,omitempty"`
}

// Claims are certificate extensions of Fulcio, compared exactly; an empty field
// is not compared (github.com/sigstore/fulcio, docs/oid-info.md).
type Claims struct {
	SourceRepository   string `json:"sourceRepository,omitempty"`   // 1.3.6.1.4.1.57264.1.12
	SourceRepositoryID string `json:"sourceRepositoryID,omitempty"` // 1.3.6.1.4.1.57264.1.15
	SourceRef          string `json:"sourceRef,omitempty"`          // 1.3.6.1.4.1.57264.1.14
	RunnerEnvironment  string `json:"runnerEnvironment,omitempty"`  // 1.3.6.1.4.1.57264.1.11
	BuildTrigger       string `json:"buildTrigger,omitempty"`       // 1.3.6.1.4.1.57264.1.20
	BuildSignerURI     string `json:"buildSignerURI,omitempty"`     // 1.3.6.1.4.1.57264.1.9
}

// Matches reports whether the identity is one of the signer's: exact values are
// equal, patterns match the whole value. A signer whose pattern does not compile
// matches nothing; Parse makes no such signer. Claims are not looked at.
func (s Signer) Matches(id Identity) bool {
	m, err := s.matcher()
	return err == nil && m(id)
}

// String returns the signer in one line, as a person would say it.
func (s Signer) String() string {
	if s.Shorthand != "" {
		return s.Shorthand
	}
	name := func(exact, pattern string) string {
		if pattern != "" {
			return "/" + pattern + "/"
		}
		return exact
	}
	return name(s.Subject, s.SubjectPattern) + " from " + name(s.Issuer, s.IssuerPattern)
}

// issuer and subject return the signer's languages.
func (s Signer) issuer() language  { return exactOrWhole(s.Issuer, s.IssuerPattern) }
func (s Signer) subject() language { return exactOrWhole(s.Subject, s.SubjectPattern) }

func exactOrWhole(value, text string) language {
	if text != "" {
		return language{{text, whole}}
	}
	return language{{value, exact}}
}

// valid reports what keeps the signer from being one.
func (s Signer) valid() error {
	for _, f := range []struct{ name, value, text string }{
		{"issuer", s.Issuer, s.IssuerPattern}, {"subject", s.Subject, s.SubjectPattern},
	} {
		if (f.value == "") == (f.text == "") {
			return fmt.Errorf("%w: expected exactly one of %s and %s-pattern", ErrBadSigner, f.name, f.name)
		}
		if !utf8.ValidString(f.value) {
			return fmt.Errorf("%w: %s %q is not UTF-8", ErrBadSigner, f.name, f.value)
		}
		if _, err := (pattern{f.text, whole}).parse(); err != nil {
			return fmt.Errorf("%w: %s-pattern %q is not a Go RE2 pattern: %w", ErrBadSigner, f.name, f.text, err)
		}
	}
	return nil
}

// matcher returns Matches by package regexp alone.
func (s Signer) matcher() (func(Identity) bool, error) {
	if err := s.valid(); err != nil {
		return nil, err
	}
	issuer, err := s.issuer()[0].matcher()
	if err != nil {
		return nil, err
	}
	subject, err := s.subject()[0].matcher()
	if err != nil {
		return nil, err
	}
	return func(id Identity) bool { return issuer(id.Issuer) && subject(id.Subject) }, nil
}

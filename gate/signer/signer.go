package signer

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

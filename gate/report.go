package gate

import (
	"slices"
	"time"

	"flux-verify-gate/gate/signer"
)

// SchemaVersion is the version of the JSON report (docs/report.schema.json). It
// changes when a field is removed or changes its meaning.
const SchemaVersion = 1

// Report is everything that a run has to say. Decide makes it; package report
// renders it. Its texts may hold words from outside, as they came.
type Report struct {
	SchemaVersion int       `json:"schemaVersion"`
	Gate          Build     `json:"gate"`
	JudgedAt      time.Time `json:"judgedAt"`
	Verdict       Verdict   `json:"verdict"`
	// Reason is the code that explains the verdict, or "verified".
	Reason Code `json:"reason"`
	Mode   Mode `json:"mode"`
	// Live is false for a recording, which can promote nothing.
	Live     bool          `json:"live"`
	Cluster  Cluster       `json:"cluster"`
	Expected Expected      `json:"expected"`
	Source   SourceSummary `json:"source"`
	// Canary is nil where none was asked for.
	Canary   *CanarySummary `json:"canary,omitempty"`
	Findings []Finding      `json:"findings"`
	Signers  []SignerResult `json:"signers"`
	Policy   PolicySummary  `json:"policy"`
	Owners   []Owner        `json:"owners"`
	Timings  Timings        `json:"timings"`
}

// Build says which gate judged.
type Build struct {
	Version string `json:"version"`
	// Forms is the version of the table of issuable identities.
	Forms string `json:"forms"`
}

// Mode is what a verdict does to the exit status.
type Mode string

// Enforce: rejected and undecided fail the step. Warn: they do not once the
// source has been read (Report.Forgiven), and the outputs still tell the truth.
const (
	Enforce Mode = "enforce"
	Warn    Mode = "warn"
)

// Forgiven says that a verdict other than verified does not fail the step: in
// mode warn, after a completed read. Bad input is the author's to repair in any
// mode.
func (r Report) Forgiven() bool {
	badInput := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Code == BadInput })
	return r.Mode == Warn && r.Timings.Reads > 0 && !badInput
}

// Cluster names where the object was read, so that a staging kubeconfig is seen.
type Cluster struct {
	Server  string `json:"server,omitempty"`
	Context string `json:"context,omitempty"`
	// File is the recording that was judged instead of a live cluster.
	File string `json:"file,omitempty"`
}

// Expected is what the run was told to find.
type Expected struct {
	Digest string `json:"digest"`
	URL    string `json:"url,omitempty"`
}

// SourceSummary identifies the object and what it serves.
type SourceSummary struct {
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	APIVersion      string `json:"apiVersion,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Generation      int64  `json:"generation,omitempty"`
	// Revision is status.artifact.revision, what is serving now.
	Revision string `json:"revision,omitempty"`
	// Digest is the digest in Revision; empty where that has none.
	Digest string `json:"digest,omitempty"`
	URL    string `json:"url,omitempty"`
	// Reference is registry/repository@digest; empty without a digest.
	Reference string `json:"reference,omitempty"`
}

// SignerResult is one signature that was found, as the report tells it.
type SignerResult struct {
	Issuer        string        `json:"issuer,omitempty"`
	Subject       string        `json:"subject,omitempty"`
	Key           string        `json:"key,omitempty"`
	Claims        signer.Claims `json:"claims,omitzero"`
	Layout        Layout        `json:"layout"`
	Kind          Kind          `json:"kind,omitempty"`
	PredicateType string        `json:"predicateType,omitempty"`
	Verified      bool          `json:"verified"`
	// Counts says that it is by a required signer and of a kind that counts.
	Counts bool `json:"counts"`
	// Why says why it does not count, and what differs; empty if it counts.
	Why string `json:"why,omitempty"`
}

// PolicySummary sets what was asked for beside what is live.
type PolicySummary struct {
	Required []signer.Signer `json:"required"`
	Allowed  []signer.Signer `json:"allowed"`
	// Keys is the required Secret of public keys; empty for identities.
	Keys string     `json:"keys,omitempty"`
	Live LivePolicy `json:"live"`
	// Witnesses are the identities that the proof found, each with the code of
	// its finding.
	Witnesses []Witness `json:"witnesses"`
	// Suggested is the one entry that accepts the required and allowed signers
	// and nobody else; nil where there is none or it was not asked.
	Suggested *signer.Entry `json:"suggested,omitempty"`
	// PrivateRoot says that the suggested entry is about a private Sigstore: the
	// policy must then name the Secret with its trusted root.
	PrivateRoot bool `json:"privateRoot,omitempty"`
}

// LivePolicy is spec.verify as it was read.
type LivePolicy struct {
	Present     bool           `json:"present"`
	Provider    string         `json:"provider,omitempty"`
	Secret      string         `json:"secret,omitempty"`
	TrustedRoot string         `json:"trustedRoot,omitempty"`
	Identities  []signer.Entry `json:"identities,omitempty"`
}

// Witness is one identity that proves a finding about the policy.
type Witness struct {
	Code Code `json:"code"`
	signer.Identity
}

// Timings say how the run spent its time.
type Timings struct {
	StartedAt time.Time `json:"startedAt,omitzero"`
	Waited    Seconds   `json:"waitedSeconds"`
	Reads     int       `json:"reads"`
}

// Seconds is a duration that is written in seconds.
type Seconds float64

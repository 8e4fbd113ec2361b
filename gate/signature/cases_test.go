package signature

import (
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signature/internal/testsigstore"
	"flux-verify-gate/gate/signer"
)

// provenancePredicate is the predicate type of the attestations.
const provenancePredicate = "https://slsa.dev/provenance/v1"

// contentCase is one content of a repository and one question about it. Every
// table of this package that puts something into a repository gives its entries
// here, so that a new entry of one of them is compared with cosign too
// (differential_test.go).
type contentCase struct {
	name string
	// sigstore is the instance whose root is trusted.
	sigstore *testsigstore.Sigstore
	// fill puts the candidates into the repository, and says which digest is
	// asked about.
	fill func(t *testing.T, r *repository) string
	// required is who must have signed; with keys it is whoever holds one of
	// them.
	required signer.Signer
	keys     []string
	// attestation is the predicate type that counts beside cosign's own; empty
	// for none.
	attestation string
}

// requirements are what the gate is asked for.
func (c contentCase) requirements() gate.Requirements {
	want := gate.Requirements{Digest: gate.DigestAny, Signature: gate.SignatureVerify}
	if c.attestation != "" {
		want.Attestations = []string{c.attestation}
	}
	if len(c.keys) > 0 {
		want.Keys = &gate.Keys{Secret: "cosign-pub", PEM: c.keys}
	} else {
		want.Required = []signer.Signer{c.required}
	}
	return want
}

// contentCases are all of them, by a name that stands once.
func contentCases(t *testing.T) []contentCase {
	t.Helper()
	s := sharedSigstore(t)
	alone := func(make func(*testing.T, string) evidence) func(*testing.T, *repository) string {
		return func(t *testing.T, r *repository) string {
			t.Helper()
			r.attach(make(t, r.digest), r.digest)
			return r.digest
		}
	}
	var all []contentCase
	// An attestation is asked for as a signature, which it is not, and as itself.
	add := func(c contentCase, attestation bool) {
		if c.sigstore == nil {
			c.sigstore = s
		}
		if c.required == (signer.Signer{}) {
			c.required = requiredSigner
		}
		all = append(all, c)
		if attestation {
			c.name, c.attestation = c.name+", asked for", provenancePredicate
			all = append(all, c)
		}
	}
	for _, c := range goodCases(t, s) {
		add(contentCase{name: "good: " + c.name, fill: alone(c.make), required: c.by}, c.kind == gate.KindAttestation)
	}
	for _, c := range badCases(t) {
		own := s
		if c.root != nil {
			own = c.root(t)
		}
		add(contentCase{name: "bad: " + c.name, sigstore: own, fill: alone(func(t *testing.T, digest string) evidence {
			t.Helper()
			return c.make(t, own, digest)
		})}, false)
	}
	for _, c := range keyCases(t, s) {
		add(contentCase{name: "key: " + c.name, fill: alone(c.make), keys: c.keys}, c.code == gate.NotASignature)
	}
	for _, c := range mixedCases(t, s) {
		add(contentCase{name: "mixed: " + c.name, fill: c.fill}, false)
	}
	add(contentCase{name: "mixed: every bad one beside two good ones", fill: func(t *testing.T, r *repository) string {
		t.Helper()
		fillBadBesideGood(t, s, r)
		return r.digest
	}}, false)
	for _, c := range hostiles() {
		if c.before != nil || c.prepare == nil || c.many {
			continue // the registry misbehaves, or it is about the limits
		}
		add(contentCase{name: "mixed: " + c.name, fill: func(t *testing.T, r *repository) string {
			t.Helper()
			c.fill(t, s, r)
			return r.digest
		}}, false)
	}
	return all
}

// TestContentCases holds that a name is enough to say which case is meant.
func TestContentCases(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, c := range contentCases(t) {
		if seen[c.name] {
			t.Errorf("expected the name %q once, found it twice", c.name)
		}
		seen[c.name] = true
	}
	if len(seen) < 150 {
		t.Errorf("expected at least 150 cases, found %d", len(seen))
	}
}

package gate

import (
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/pkg/apis/meta"

	"flux-verify-gate/gate/signer"
)

const actionsIssuer = "https://token.actions.githubusercontent.com"

func signatureBy(layout Layout, subject string) Signature {
	return Signature{Layout: layout, Kind: KindSignature, Verified: true, Identity: signer.Identity{Issuer: actionsIssuer, Subject: subject}}
}

func attestationBy(subject string) Signature {
	s := signatureBy(LayoutBundle, subject)
	s.Kind, s.PredicateType = KindAttestation, "https://slsa.dev/provenance/v1"
	return s
}

func signedWithKey(layout Layout) Signature {
	return Signature{Layout: layout, Kind: KindSignature, Verified: true, Key: "abc"}
}

func refusedAt(layout Layout, step Step) Signature {
	s := signatureBy(layout, "main")
	s.Verified, s.Step = false, step
	return s
}

func keylessPolicy(subjects ...string) *sourcev1.OCIRepositoryVerification {
	verify := &sourcev1.OCIRepositoryVerification{Provider: "cosign"}
	for _, s := range subjects {
		verify.MatchOIDCIdentity = append(verify.MatchOIDCIdentity, sourcev1.OIDCIdentityMatch{Issuer: "^" + actionsIssuer + "$", Subject: s})
	}
	return verify
}

func keyPolicy() *sourcev1.OCIRepositoryVerification {
	return &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "k"}}
}

// TestEmulate mirrors what was seen on source-controller v1.9.3, and for v1.7
// read in its source. An answer is "accepts", the class of the refusal, or
// "unsure".
func TestEmulate(t *testing.T) {
	t.Parallel()
	rekor2 := signatureBy(LayoutBundle, "main")
	rekor2.EntryKinds = []string{"dsse/0.0.2"}
	wrongRekor2 := signatureBy(LayoutBundle, "other")
	wrongRekor2.EntryKinds = []string{"dsse/0.0.2"}
	twoNames := signatureBy(LayoutTag, "other")
	twoNames.Subjects = []string{"other", "main"}
	tests := []struct {
		name    string
		verify  *sourcev1.OCIRepositoryVerification
		found   []Signature
		old, v9 string
	}{
		{"nothing there", keylessPolicy("^main$"), nil, "no-signature", "no-signature"},
		{"a bundle by the identity", keylessPolicy("^main$"), []Signature{signatureBy(LayoutBundle, "main")}, "no-signature", "accepts"},
		{"a tag signature by the identity", keylessPolicy("^main$"), []Signature{signatureBy(LayoutTag, "main")}, "accepts", "accepts"},
		{"patterns are searched", keylessPolicy("ai"), []Signature{signatureBy(LayoutBundle, "main")}, "no-signature", "accepts"},
		{"another identity", keylessPolicy("^main$"), []Signature{signatureBy(LayoutBundle, "other")}, "no-signature", "wrong-signer"},
		{"any bundle suffices", keylessPolicy("^main$"), []Signature{signatureBy(LayoutBundle, "other"), signatureBy(LayoutBundle, "main")}, "no-signature", "accepts"},
		{"an attestation counts too", keylessPolicy("^main$"), []Signature{attestationBy("main")}, "no-signature", "accepts"},
		{"a foreign bundle hides the tag signature", keylessPolicy("^main$"), []Signature{signatureBy(LayoutTag, "main"), attestationBy("other")}, "accepts", "wrong-signer"},
		{"a refused bundle hides it too", keylessPolicy("^main$"), []Signature{signatureBy(LayoutTag, "main"), refusedAt(LayoutBundle, StepLog)}, "accepts", "wrong-signer"},
		{"two entries and a bundle", keylessPolicy("^main$", "^other$"), []Signature{signatureBy(LayoutBundle, "main")}, "no-signature", "multiple-identities"},
		{"two entries and a tag signature", keylessPolicy("^other$", "^main$"), []Signature{signatureBy(LayoutTag, "main")}, "accepts", "accepts"},
		{"no entry and a bundle", keylessPolicy(), []Signature{signatureBy(LayoutBundle, "main")}, "no-signature", "no-identity"},
		{"no entry and a tag signature", keylessPolicy(), []Signature{signatureBy(LayoutTag, "anybody")}, "accepts", "accepts"},
		{"an empty subject and a bundle", keylessPolicy(""), []Signature{signatureBy(LayoutBundle, "main")}, "no-signature", "no-identity"},
		{"an empty subject and a tag signature", keylessPolicy(""), []Signature{signatureBy(LayoutTag, "main")}, "accepts", "accepts"},
		{"a second name in the certificate", keylessPolicy("^main$"), []Signature{twoNames}, "accepts", "accepts"},
		{"a bad pattern", keylessPolicy("(?!x)"), []Signature{signatureBy(LayoutTag, "main")}, "bad-pattern", "bad-pattern"},
		{"a key", keyPolicy(), []Signature{signedWithKey(LayoutBundle)}, "no-signature", "accepts"},
		{"a key in the tag layout", keyPolicy(), []Signature{signedWithKey(LayoutTag)}, "accepts", "accepts"},
		{"a certificate where a key is wanted", keyPolicy(), []Signature{signatureBy(LayoutBundle, "main")}, "no-signature", "no-matching-key"},
		{"a key where a certificate is wanted", keylessPolicy("^main$"), []Signature{signedWithKey(LayoutBundle)}, "no-signature", "wrong-signer"},
		{"a key's tag signature behind another bundle", keyPolicy(), []Signature{signedWithKey(LayoutTag), attestationBy("other")}, "accepts", "no-matching-key"},
		{"an unreadable bundle", keylessPolicy("^main$"), []Signature{refusedAt(LayoutBundle, StepParse)}, "no-signature", "unsure"},
		{"a good Rekor v2 bundle", keylessPolicy("^main$"), []Signature{rekor2}, "no-signature", "accepts"},
		{"a foreign Rekor v2 bundle", keylessPolicy("^main$"), []Signature{wrongRekor2}, "no-signature", "unsure"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				v    series
				want string
			}{{supported[0], tt.old}, {supported[2], tt.v9}} {
				if got := answer(c.v.emulate(tt.verify, tt.found)); got != c.want {
					t.Errorf("source-controller %s: got %s, want %s", c.v.name, got, c.want)
				}
			}
		})
	}
}

func answer(o opinion) string {
	switch {
	case o.accepts:
		return "accepts"
	case o.unsure:
		return "unsure"
	}
	return string(o.class)
}

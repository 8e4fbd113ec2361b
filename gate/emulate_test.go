package gate

import (
	"strings"
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

// loggedAs gives a signature other log entries.
func loggedAs(s Signature, kinds ...string) Signature {
	s.EntryKinds = kinds
	return s
}

// typed gives a candidate the media type that was read in it.
func typed(s Signature, mediaType string) Signature {
	s.MediaType = mediaType
	return s
}

// named gives a certificate further names; the first is the one that counts.
func namedAlso(s Signature, subjects ...string) Signature {
	s.Subjects = append([]string{s.Identity.Subject}, subjects...)
	return s
}

// from gives a signature another issuer.
func from(s Signature, issuer string) Signature {
	s.Identity.Issuer = issuer
	return s
}

const (
	bundleV03 = "application/vnd.dev.sigstore.bundle.v0.3+json"
	bundleV02 = "application/vnd.dev.sigstore.bundle+json;version=0.2"
)

// TestEmulate mirrors what was seen on source-controller v1.9.3, and for the
// others read in their source. An answer is "accepts", the class of the refusal,
// or "unsure"; want is that of 1.7, 1.8, 1.9 and 1.10, where one stands for the
// ones behind it too.
func TestEmulate(t *testing.T) {
	t.Parallel()
	bundle, tag, foreign := signatureBy(LayoutBundle, "main"), signatureBy(LayoutTag, "main"), signatureBy(LayoutBundle, "other")
	v1, v2 := loggedAs(bundle, "dsse/0.0.1"), loggedAs(bundle, "hashedrekord/0.0.2")
	entry := func(issuer, subject string) *sourcev1.OCIRepositoryVerification {
		return &sourcev1.OCIRepositoryVerification{Provider: "cosign", MatchOIDCIdentity: []sourcev1.OIDCIdentityMatch{{Issuer: issuer, Subject: subject}}}
	}
	main := keylessPolicy("^main$")
	tests := []struct {
		name   string
		verify *sourcev1.OCIRepositoryVerification
		found  []Signature
		want   string
	}{
		{"nothing there", main, nil, "no-signature"},
		{"a bundle by the identity", main, []Signature{bundle}, "no-signature accepts"},
		{"a tag signature by the identity", main, []Signature{tag}, "accepts"},
		{"patterns are searched", keylessPolicy("ai"), []Signature{bundle, tag}, "accepts"},
		{"another subject", keylessPolicy("^other$"), []Signature{bundle}, "no-signature wrong-signer"},
		{"another subject in the tag layout", keylessPolicy("^other$"), []Signature{tag}, "wrong-signer"},
		{"another issuer", main, []Signature{from(bundle, "https://evil.example"), from(tag, "https://evil.example")}, "wrong-signer"},
		{"one of several bundles", main, []Signature{foreign, bundle}, "no-signature accepts"},
		{"one of several tag signatures", main, []Signature{signatureBy(LayoutTag, "other"), tag}, "accepts"},
		{"a bundle hides the tag signature", main, []Signature{tag, foreign}, "accepts wrong-signer"},
		{"an attestation hides the tag signature", main, []Signature{tag, attestationBy("other")}, "accepts wrong-signer"},
		{"an invalid bundle hides the tag signature", main, []Signature{tag, refusedAt(LayoutBundle, StepCertificate)}, "accepts wrong-signer"},
		{"an attestation by the identity", main, []Signature{attestationBy("main")}, "no-signature accepts"},
		{"an invalid bundle", main, []Signature{refusedAt(LayoutBundle, StepSignature)}, "no-signature wrong-signer"},
		{"an invalid tag signature", main, []Signature{refusedAt(LayoutTag, StepSignature)}, "wrong-signer"},

		{"two entries and a bundle", keylessPolicy("^main$", "^other$"), []Signature{bundle}, "no-signature multiple-identities"},
		{"two entries and a tag signature by the second", keylessPolicy("^other$", "^main$"), []Signature{tag}, "accepts"},
		{"two entries, and both layouts", keylessPolicy("^main$", "^other$"), []Signature{tag, bundle}, "accepts multiple-identities"},
		{"two entries of which one does not compile, and a bundle", keylessPolicy("(?!x)", "^main$"), []Signature{bundle}, "no-signature multiple-identities"},
		{"no entry and a bundle", keylessPolicy(), []Signature{bundle}, "no-signature no-identity"},
		{"no entry and an invalid bundle", keylessPolicy(), []Signature{refusedAt(LayoutBundle, StepLog)}, "no-signature no-identity"},
		{"no entry and a tag signature", keylessPolicy(), []Signature{signatureBy(LayoutTag, "anybody")}, "accepts"},
		{"no entry and a tag signature by a key", keylessPolicy(), []Signature{signedWithKey(LayoutTag)}, "wrong-signer"},
		{"an empty subject and a bundle", entry(".", ""), []Signature{bundle}, "no-signature no-identity"},
		{"an empty issuer and a bundle", entry("", "."), []Signature{bundle}, "no-signature no-identity"},
		{"an empty subject and a tag signature", entry(".", ""), []Signature{tag}, "accepts"},
		{"an empty issuer and a tag signature", entry("", "."), []Signature{tag}, "accepts"},
		{"an empty entry and a tag signature", entry("", ""), []Signature{tag}, "accepts"},

		{"a bad subject pattern", entry(".", "(?!x)"), []Signature{tag}, "bad-pattern"},
		{"a bad issuer pattern", entry("(?!x)", "."), []Signature{tag}, "bad-pattern"},
		{"a bad pattern and a bundle that nobody need verify", entry(".", "(?!x)"), []Signature{refusedAt(LayoutBundle, StepLog)}, "no-signature bad-pattern"},
		{"a bad issuer pattern and a bundle", entry("(?!x)", "."), []Signature{bundle}, "no-signature bad-pattern"},
		{"a bad pattern beside an empty one, and a bundle", entry("", "(?!x)"), []Signature{bundle}, "no-signature bad-pattern"},
		{"a bad pattern behind the entry that matches", keylessPolicy("^main$", "(?!x)"), []Signature{tag}, "accepts"},
		{"a bad pattern before the entry that matches", keylessPolicy("(?!x)", "^main$"), []Signature{tag}, "bad-pattern"},
		{"a bad pattern that only another signature comes to", keylessPolicy("^main$", "(?!x)"), []Signature{signatureBy(LayoutTag, "other"), tag}, "accepts"},
		{"a bad pattern and no signature that verifies", entry(".", "(?!x)"), []Signature{refusedAt(LayoutTag, StepLog)}, "unsure"},

		{"a second name in a tag signature", main, []Signature{namedAlso(signatureBy(LayoutTag, "other"), "main")}, "accepts"},
		{"a second name in a bundle", main, []Signature{namedAlso(foreign, "main")}, "no-signature wrong-signer"},
		{"a first name that counts, beside a second", main, []Signature{namedAlso(tag, "other"), namedAlso(bundle, "other")}, "accepts"},

		{"a key", keyPolicy(), []Signature{signedWithKey(LayoutBundle)}, "no-matching-key accepts"},
		{"a key in the tag layout", keyPolicy(), []Signature{signedWithKey(LayoutTag)}, "accepts"},
		{"a key and identities, which are ignored", func() *sourcev1.OCIRepositoryVerification {
			verify := keylessPolicy("^a$", "^b$")
			verify.SecretRef = keyPolicy().SecretRef
			return verify
		}(), []Signature{signedWithKey(LayoutTag)}, "accepts"},
		{"no signature where a key is wanted", keyPolicy(), nil, "no-matching-key"},
		{"a certificate where a key is wanted", keyPolicy(), []Signature{bundle, tag}, "no-matching-key"},
		{"a signature by another key", keyPolicy(), []Signature{refusedAt(LayoutTag, StepSignature)}, "no-matching-key"},
		{"a bundle by another key", keyPolicy(), []Signature{refusedAt(LayoutBundle, StepSignature)}, "no-matching-key"},
		{"a key's signature beside one that cannot be read", keyPolicy(), []Signature{refusedAt(LayoutTag, StepParse), signedWithKey(LayoutTag)}, "accepts"},
		{"a tag signature that cannot be read, where a key is wanted", keyPolicy(), []Signature{refusedAt(LayoutTag, StepParse)}, "unsure"},
		{"a tag signature that cannot be had, where a key is wanted", keyPolicy(), []Signature{refusedAt(LayoutTag, StepFetch)}, "unsure"},
		{"a key where a certificate is wanted", main, []Signature{signedWithKey(LayoutBundle)}, "no-signature wrong-signer"},
		{"a key's tag signature behind another bundle", keyPolicy(), []Signature{signedWithKey(LayoutTag), attestationBy("other")}, "accepts no-matching-key"},

		{"a bundle that cannot be read", main, []Signature{refusedAt(LayoutBundle, StepParse)}, "no-signature unsure"},
		{"a bundle that cannot be had", main, []Signature{refusedAt(LayoutBundle, StepFetch)}, "no-signature unsure"},
		{"a bundle that is read and refused as another kind of statement", main, []Signature{typed(refusedAt(LayoutBundle, StepParse), bundleV03)}, "no-signature unsure"},
		{"such a one before a tag signature, which it hides", main, []Signature{tag, typed(refusedAt(LayoutBundle, StepParse), bundleV03)}, "accepts unsure"},
		{"a bundle that cannot be read before a tag signature", main, []Signature{tag, refusedAt(LayoutBundle, StepParse)}, "accepts unsure"},
		{"a bundle that cannot be read beside a good one", main, []Signature{refusedAt(LayoutBundle, StepParse), bundle}, "no-signature accepts"},
		{"a bundle that cannot be read beside a foreign one", main, []Signature{refusedAt(LayoutBundle, StepParse), foreign}, "no-signature unsure"},
		{"a bundle that cannot be read, and a policy that refuses every bundle", keylessPolicy("^main$", "^x$"), []Signature{refusedAt(LayoutBundle, StepParse)}, "no-signature unsure"},
		{"a bundle that cannot be read and a tag signature, which no key made", keyPolicy(), []Signature{tag, refusedAt(LayoutBundle, StepParse)}, "no-matching-key unsure"},
		{"a bad pattern, whatever can be read", entry(".", "(?!x)"), []Signature{tag, refusedAt(LayoutBundle, StepParse)}, "bad-pattern"},
		{"a bundle of another kind of statement, where a key is wanted", keyPolicy(), []Signature{typed(refusedAt(LayoutBundle, StepParse), bundleV03)}, "no-matching-key unsure"},
		{"a bad issuer pattern beside an empty subject, and a bundle", entry("(?!x)", ""), []Signature{bundle}, "no-signature bad-pattern"},
		{"a tag signature that cannot be had", main, []Signature{refusedAt(LayoutTag, StepFetch)}, "unsure"},
		{"a bundle of version 0.2", main, []Signature{typed(refusedAt(LayoutBundle, StepParse), bundleV02)}, "no-signature"},
		{"a bundle of version 0.1", main, []Signature{typed(refusedAt(LayoutBundle, StepParse), "application/vnd.dev.sigstore.bundle+json;version=0.1")}, "no-signature"},
		{"a bundle of version 0.2 beside a tag signature", main, []Signature{tag, typed(refusedAt(LayoutBundle, StepParse), bundleV02)}, "accepts"},
		{"a tag signature that the gate reads more strictly", main, []Signature{refusedAt(LayoutTag, StepParse)}, "unsure"},
		{"a tag signature without a log entry, which the controller looks up", main, []Signature{refusedAt(LayoutTag, StepLog)}, "unsure"},
		{"a tag signature whose log entry does not hold", main, []Signature{loggedAs(refusedAt(LayoutTag, StepLog), "hashedrekord/0.0.1")}, "wrong-signer"},
		{"a bundle without a log entry", main, []Signature{refusedAt(LayoutBundle, StepLog)}, "no-signature wrong-signer"},
		{"a tag signature refused at another step", main, []Signature{refusedAt(LayoutTag, StepTime)}, "wrong-signer"},

		{"a good bundle of Rekor v2", main, []Signature{v2}, "no-signature accepts"},
		{"a foreign bundle of Rekor v2", main, []Signature{loggedAs(foreign, "hashedrekord/0.0.2")}, "no-signature wrong-signer"},
		{"a bundle with the other kind of Rekor v2", main, []Signature{loggedAs(refusedAt(LayoutBundle, StepParse), "dsse/0.0.2")}, "no-signature unsure no-signature"},
		{"a bundle with the other kind of Rekor v2 before a tag signature", main, []Signature{tag, loggedAs(refusedAt(LayoutBundle, StepParse), "dsse/0.0.2")}, "accepts unsure accepts"},
		{"a bundle with the other kind of Rekor v2 that is refused for something else", main, []Signature{tag, typed(loggedAs(refusedAt(LayoutBundle, StepParse), "dsse/0.0.2"), bundleV03)}, "accepts unsure"},
		{"a bundle with the other kind of Rekor v2 that cannot be had", main, []Signature{tag, loggedAs(refusedAt(LayoutBundle, StepFetch), "dsse/0.0.2")}, "accepts unsure"},
		{"a bundle of Rekor v2 that is refused", main, []Signature{typed(loggedAs(refusedAt(LayoutBundle, StepLog), "hashedrekord/0.0.2"), bundleV03)}, "no-signature unsure wrong-signer"},
		{"a good bundle beside one of Rekor v2", main, []Signature{v1, loggedAs(foreign, "hashedrekord/0.0.2")}, "no-signature unsure unsure accepts"},
		{"good bundles of both", main, []Signature{v1, v2}, "no-signature accepts"},
		{"a good bundle of Rekor v2 beside another's", main, []Signature{v2, loggedAs(foreign, "dsse/0.0.1")}, "no-signature accepts"},
		{"a good bundle beside one with entries of both", main, []Signature{v1, loggedAs(foreign, "dsse/0.0.1", "hashedrekord/0.0.2")}, "no-signature accepts"},
		{"a good bundle beside one without entries", main, []Signature{v1, foreign}, "no-signature accepts"},
		{"a key's bundle beside one of Rekor v2", keyPolicy(), []Signature{signedWithKey(LayoutBundle), loggedAs(foreign, "hashedrekord/0.0.2")}, "no-matching-key accepts"},
		{"a tag signature by both, where a Rekor v2 entry does not matter", main, []Signature{tag, loggedAs(signatureBy(LayoutTag, "other"), "hashedrekord/0.0.2")}, "accepts"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := strings.Fields(tt.want)
			for n, v := range supported {
				got := v.emulate(tt.verify, tt.found)
				if expected := want[min(n, len(want)-1)]; answer(got) != expected {
					t.Errorf("source-controller %s: got %s, want %s", v.name, answer(got), expected)
				}
				switch {
				case got.accepts && got.unsure, got.accepts != (got.by != nil):
					t.Errorf("source-controller %s: got a contradiction: %+v", v.name, got)
				case got.why == "":
					t.Errorf("source-controller %s: got no word about why", v.name)
				case got.accepts && got.looked != got.by.Layout:
					t.Errorf("source-controller %s: got the layout %s, and a signature in %s", v.name, got.looked, got.by.Layout)
				case len(tt.found) == 0 && got.looked != "":
					t.Errorf("source-controller %s: got the layout %s where there is nothing", v.name, got.looked)
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

// TestWhy tells refusals apart that are of one class.
func TestWhy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		verify *sourcev1.OCIRepositoryVerification
		found  []Signature
		why    string
	}{
		{keylessPolicy("^main$"), nil, "finds no signature"},
		{keylessPolicy("^main$"), []Signature{signatureBy(LayoutTag, "other")}, "finds none by an identity of the policy"},
		{keylessPolicy("^main$"), []Signature{refusedAt(LayoutTag, StepTime)}, "finds none that verifies"},
		{keylessPolicy("^main$"), []Signature{signedWithKey(LayoutTag)}, "finds none that verifies"},
		{keyPolicy(), nil, "finds no signature"},
		{keyPolicy(), []Signature{signatureBy(LayoutTag, "main")}, "finds none by a key"},
	} {
		if got := supported[2].emulate(tt.verify, tt.found); got.why != tt.why {
			t.Errorf("got %q, want %q", got.why, tt.why)
		}
	}
}

// TestCouldBe leaves out the versions that cannot have written an object.
func TestCouldBe(t *testing.T) {
	t.Parallel()
	root := keylessPolicy("^main$")
	root.TrustedRootSecretRef = &meta.LocalObjectReference{Name: "root"}
	for _, tt := range []struct {
		verify      *sourcev1.OCIRepositoryVerification
		fingerprint string
		want        string
	}{
		{nil, "", "1.7 to 1.10"},
		{keylessPolicy("^main$"), "", "1.7 to 1.10"},
		{root, "", "1.9, 1.10"},
		{nil, "sha256:x", "1.10"},
		{root, "sha256:x", "1.10"},
	} {
		s := &Source{Fingerprint: tt.fingerprint}
		s.Object.Spec.Verify = tt.verify
		if got := names(couldBe(s)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// TestOverTime looks at the moments before the newest signatures were there.
func TestOverTime(t *testing.T) {
	t.Parallel()
	main := keylessPolicy("^main$")
	bundle, tag, foreign := signatureBy(LayoutBundle, "main"), signatureBy(LayoutTag, "main"), signatureBy(LayoutBundle, "other")
	v7, v9 := supported[0], supported[2]
	for _, tt := range []struct {
		name        string
		v           series
		verify      *sourcev1.OCIRepositoryVerification
		found       []Signature
		could, sure bool
		refused     Class // could have refused in this class; empty for none of three
		replaced    bool
	}{
		{"nothing", v9, main, nil, false, false, ClassNoSignature, false},
		{"a good bundle", v9, main, []Signature{bundle}, true, true, ClassNoSignature, false},
		{"a good bundle, for one that sees none", v7, main, []Signature{bundle}, false, false, ClassNoSignature, false},
		{"a tag signature, and later a bundle that hides it", v9, main, []Signature{tag, foreign}, true, true, ClassWrongSigner, false},
		{"a foreign bundle, and later a good one", v9, main, []Signature{foreign, bundle}, true, true, ClassWrongSigner, false},
		{"something that cannot be read", v9, main, []Signature{refusedAt(LayoutBundle, StepParse)}, true, false, ClassNoSignature, false},
		{"a key", v9, keyPolicy(), []Signature{signedWithKey(LayoutBundle)}, true, true, ClassNoMatchingKey, false},
		{"another key", v9, keyPolicy(), []Signature{refusedAt(LayoutBundle, StepSignature)}, false, false, ClassNoMatchingKey, true},
		{"another key's bundle, for one that sees none", v7, keyPolicy(), []Signature{refusedAt(LayoutBundle, StepSignature)}, false, false, ClassNoMatchingKey, false},
		{"another key's tag signature", v7, keyPolicy(), []Signature{refusedAt(LayoutTag, StepSignature)}, false, false, ClassNoMatchingKey, true},
		{"a key's signature of something else", v9, keyPolicy(), []Signature{refusedAt(LayoutBundle, StepBinding)}, false, false, ClassNoMatchingKey, false},
		{"a signature over something else, and no key wanted", v9, main, []Signature{refusedAt(LayoutBundle, StepSignature)}, false, false, ClassWrongSigner, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if could, sure := tt.v.couldHaveAccepted(tt.verify, tt.found); could != tt.could || sure != tt.sure {
				t.Errorf("accepted: got %v, %v, want %v, %v", could, sure, tt.could, tt.sure)
			}
			for _, class := range []Class{ClassNoSignature, ClassWrongSigner, ClassNoMatchingKey} {
				if got := tt.v.couldHaveRefused(tt.verify, tt.found, class); got != (class == tt.refused) {
					t.Errorf("refused as %s: got %v", class, got)
				}
			}
			if got := tt.v.replacedKey(tt.verify, tt.found); got != tt.replaced {
				t.Errorf("replaced: got %v, want %v", got, tt.replaced)
			}
		})
	}
}

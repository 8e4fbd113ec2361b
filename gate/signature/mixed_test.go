package signature

import (
	"strings"
	"testing"
	"time"

	"flux-verify-gate/gate/signature/internal/testsigstore"
)

// mixedCase is a repository with several candidates, or with one in another
// place than under the digest that is asked about.
type mixedCase struct {
	name string
	// fill puts them in and says which digest is asked about.
	fill func(t *testing.T, r *repository) string
	// found is how many candidates there are, verified how many of them hold.
	found, verified int
	// signed says that a required signer's signature is among them.
	signed bool
	// hint is a part of the one hint, or of a candidate's; empty for none.
	hint string
}

func mixedCases(t *testing.T, s *testsigstore.Sigstore) []mixedCase {
	t.Helper()
	other := foreign(t)
	private := foreign(t)
	if err := private.Rename("GitHub, Inc."); err != nil {
		t.Fatal(err)
	}
	elsewhere := testsigstore.GitHub("acme/elsewhere", "cd.yaml", "refs/heads/main")
	bundleBy := func(t *testing.T, w testsigstore.Signing, predicate, digest string) evidence {
		t.Helper()
		w.At, w.Payload = at, testsigstore.Statement(predicate, digest)
		return bundleEvidence(marshal(t, makeBundle(t, s, w)))
	}
	privateBundle := func(t *testing.T, digest string) evidence {
		t.Helper()
		return bundleEvidence(marshal(t, makeBundle(t, private, testsigstore.Signing{
			Identity: requiredIdentity(), At: at, Log: testsigstore.LogNone, Stamp: true, Payload: testsigstore.Statement(cosignPredicate, digest),
		})))
	}
	index := func(r *repository) string {
		digest := r.manifest(indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []any{r.descriptor(r.digest)}})
		r.tags["index"] = digest
		return digest
	}
	both := func(make ...func(t *testing.T, digest string) evidence) func(*testing.T, *repository) string {
		return func(t *testing.T, r *repository) string {
			t.Helper()
			for _, one := range make {
				r.attach(one(t, r.digest), r.digest)
			}
			return r.digest
		}
	}
	bundle := func(t *testing.T, d string) evidence { t.Helper(); return goodBundle(t, s, d) }
	layer := func(t *testing.T, d string) evidence { t.Helper(); return goodLayer(t, s, d) }
	by := func(w testsigstore.Signing, predicate string) func(*testing.T, string) evidence {
		return func(t *testing.T, d string) evidence { t.Helper(); return bundleBy(t, w, predicate, d) }
	}
	raw := func(text string) func(*testing.T, string) evidence {
		return func(*testing.T, string) evidence { return bundleEvidence([]byte(text)) }
	}
	return []mixedCase{
		{"nothing", func(_ *testing.T, r *repository) string { return r.digest }, 0, 0, false, ""},
		{"a bundle and a .sig signature", both(bundle, layer), 2, 2, true, ""},
		{"a good bundle beside one by another", both(by(testsigstore.Signing{Identity: elsewhere}, cosignPredicate), bundle), 2, 2, true, ""},
		{"a good bundle beside the signer's provenance", both(by(testsigstore.Signing{Identity: requiredIdentity()}, provenancePredicate), bundle), 2, 2, true, ""},
		{"a good bundle beside something else", both(raw("not a bundle"), bundle), 2, 1, true, ""},
		{"a good bundle beside another's of Rekor v2", both(by(testsigstore.Signing{Identity: elsewhere, Log: testsigstore.LogV2}, cosignPredicate), bundle), 2, 2, true, ""},
		{"a good bundle of Rekor v2 beside another's", both(bundleOf(s, elsewhere), by(testsigstore.Signing{Identity: requiredIdentity(), Log: testsigstore.LogV2}, cosignPredicate)), 2, 2, true, ""},
		{"a good .sig signature behind a bundle by another", both(layer, by(testsigstore.Signing{Identity: elsewhere}, cosignPredicate)), 2, 2, true, ""},
		{"a good .sig signature behind another's provenance", both(layer, by(testsigstore.Signing{Identity: elsewhere}, provenancePredicate)), 2, 2, true, ""},
		{"a good .sig signature behind the signer's provenance", both(layer, by(testsigstore.Signing{Identity: requiredIdentity()}, provenancePredicate)), 2, 2, true, ""},
		{"a good .sig signature behind a bundle of GitHub's private Sigstore", both(layer, privateBundle), 2, 1, true, "private"},
		{"a good .sig signature beside something else", both(layer, raw("not a bundle")), 2, 1, true, ""},
		{"a good .sig signature beside a bundle of version 0.2", both(layer, func(t *testing.T, d string) evidence {
			t.Helper()
			b := makeBundle(t, s, testsigstore.Signing{Identity: elsewhere, At: at, Payload: testsigstore.Statement(cosignPredicate, d)})
			b.MediaType = "application/vnd.dev.sigstore.bundle+json;version=0.2"
			return bundleEvidence(marshal(t, b))
		}), 2, 1, true, ""},
		{"a good .sig signature behind a bundle about something else", both(layer, func(t *testing.T, _ string) evidence {
			t.Helper()
			return goodBundle(t, s, otherDigest)
		}), 2, 1, true, ""},
		{"another's .sig signature and a good bundle", both(func(t *testing.T, d string) evidence {
			t.Helper()
			return goodLayer(t, other, d)
		}, bundle), 2, 1, true, ""},
		{"thirty .sig signatures of which one is good", func(t *testing.T, r *repository) string {
			t.Helper()
			fillThirty(t, s, other, r)
			return r.digest
		}, 30, 1, true, ""},
		{"a bundle by another only", both(by(testsigstore.Signing{Identity: elsewhere}, cosignPredicate)), 1, 1, false, ""},
		{"a .sig signature by another only", both(func(t *testing.T, d string) evidence {
			t.Helper()
			return makeLayer(t, s, testsigstore.Signing{Identity: elsewhere, At: at, Log: testsigstore.LogV1Promise, Payload: testsigstore.Payload("a", d)})
		}), 1, 1, false, ""},
		{"a .sig signature with the signer's name second", both(func(t *testing.T, d string) evidence {
			t.Helper()
			id := elsewhere
			id.SecondSubject = requiredSigner.Subject
			return makeLayer(t, s, testsigstore.Signing{Identity: id, At: at, Log: testsigstore.LogV1Promise, Payload: testsigstore.Payload("a", d)})
		}), 1, 1, false, ""},
		{"a bundle of GitHub's private Sigstore", both(privateBundle), 1, 0, false, "private"},
		{"a child of a signed index", func(t *testing.T, r *repository) string {
			t.Helper()
			whole := index(r)
			r.attach(goodLayer(t, s, whole), whole)
			return r.digest
		}, 0, 0, false, "sha256:"},
		{"a child of an index signed by a bundle", func(t *testing.T, r *repository) string {
			t.Helper()
			whole := index(r)
			r.attach(goodBundle(t, s, whole), whole)
			return r.digest
		}, 0, 0, false, "sha256:"},
		{"an index of a signed child", func(t *testing.T, r *repository) string {
			t.Helper()
			r.attach(goodBundle(t, s, r.digest), r.digest)
			return index(r)
		}, 0, 0, false, "sha256:"},
		{"a signed index", func(t *testing.T, r *repository) string {
			t.Helper()
			whole := index(r)
			r.attach(goodBundle(t, s, whole), whole)
			return whole
		}, 1, 1, true, ""},
		{"a signature in the experimental form", func(t *testing.T, r *repository) string {
			t.Helper()
			r.refer(r.digest, r.blob(simpleSigning, testsigstore.Payload("x", r.digest)))
			return r.digest
		}, 0, 0, false, "experimental"},
	}
}

// bundleOf is a bundle by an identity, logged in Rekor v1.
func bundleOf(s *testsigstore.Sigstore, id testsigstore.Identity) func(*testing.T, string) evidence {
	return func(t *testing.T, digest string) evidence {
		t.Helper()
		return bundleEvidence(marshal(t, makeBundle(t, s, testsigstore.Signing{Identity: id, At: at, Payload: testsigstore.Statement(cosignPredicate, digest)})))
	}
}

// fillThirty puts thirty layers under the .sig tag, of which the eighteenth is
// good.
func fillThirty(t *testing.T, s, other *testsigstore.Sigstore, r *repository) {
	t.Helper()
	for n := range 30 {
		e := goodLayer(t, other, r.digest)
		if n == 17 {
			e = goodLayer(t, s, r.digest)
		}
		r.attach(e, r.digest)
	}
}

// TestMixed takes from several candidates the one that counts, and none for
// what it is not about.
func TestMixed(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	for _, c := range mixedCases(t, s) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			digest := c.fill(t, r)
			server := r.serve(true)
			target := server.target(r)
			target.Digest = digest
			got := checker(t, s).Check(deadline(t, time.Minute), target)
			verified := 0
			hints := got.Hints
			for _, f := range got.Found {
				if f.Verified {
					verified++
				}
				if f.Hint != "" {
					hints = append(hints, f.Hint)
				}
			}
			if !got.Complete || len(got.Found) != c.found || verified != c.verified || want().SignedBy(got.Found) != c.signed {
				t.Errorf("expected %d candidates, %d of them good, signed %v, found:\n%s", c.found, c.verified, c.signed, tellAll(got))
			}
			if (c.hint == "") != (len(hints) == 0) || len(hints) > 1 || c.hint != "" && !strings.Contains(hints[0], c.hint) {
				t.Errorf("expected a hint that says %q, found %q", c.hint, hints)
			}
		})
	}
}

package signer

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
)

const (
	acmeIssuer  = `^https://token\.actions\.githubusercontent\.com$`
	acmeSubject = `^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$`
	acmeMain    = "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main"
)

func acme() Signer { return Signer{Issuer: gitHubIssuer, Subject: acmeMain} }

// TestProve: policies as people write them, with what is wrong with each.
func TestProve(t *testing.T) {
	t.Parallel()
	const at = "https://github.com/acme/platform/.github/workflows/cd.yaml@"
	gitHub := func(subject string) *Identity { return &Identity{gitHubIssuer, subject} }
	type answer struct {
		missing        []Identity
		tooWide, loose *Identity
		vacuous        int
	}
	for _, test := range []struct {
		name              string
		live              []Entry
		required, allowed []Signer
		everything        bool
		want              answer
	}{
		{name: "exact", live: []Entry{{acmeIssuer, acmeSubject}}, required: []Signer{acme()}},
		{
			name: "exact, under a private Sigstore", live: []Entry{{acmeIssuer, acmeSubject}}, required: []Signer{acme()},
			everything: true,
		},
		{
			name: "no entry accepts nobody", required: []Signer{acme()},
			want: answer{missing: []Identity{{gitHubIssuer, acmeMain}}},
		},
		{
			name:     "no end",
			live:     []Entry{{acmeIssuer, acmeSubject[:len(acmeSubject)-1]}},
			required: []Signer{acme()},
			want:     answer{tooWide: gitHub(acmeMain + "a"), loose: gitHub(acmeMain + "/")},
		},
		{
			name:     "no beginning, but a scheme: no ref has a colon",
			live:     []Entry{{acmeIssuer, acmeSubject[1:]}},
			required: []Signer{acme()},
			want:     answer{loose: gitHub("@" + acmeMain)},
		},
		{
			name:     "no beginning and no scheme: reached from a branch of another repository",
			live:     []Entry{{acmeIssuer, `github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$`}},
			required: []Signer{acme()},
			want: answer{
				tooWide: gitHub("https://github.com/b/a/dynamic/github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main"),
				loose:   gitHub("github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main"),
			},
		},
		{
			name:     "an unescaped dot in the host",
			live:     []Entry{{acmeIssuer, `^https://github.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$`}},
			required: []Signer{acme()},
			want:     answer{loose: gitHub("https://github/com/acme/platform/.github/workflows/cd.yaml@refs/heads/main")},
		},
		{
			name:     "an issuer without ends beside a GitHub subject",
			live:     []Entry{{`https://token.actions.githubusercontent.com`, acmeSubject}},
			required: []Signer{acme()},
			want:     answer{loose: &Identity{"https://token/actions.githubusercontent.com", acmeMain}},
		},
		{
			name:     "the enterprise's issuer beside the plain one",
			live:     []Entry{{`^https://token\.actions\.githubusercontent\.com(/acme)?$`, acmeSubject}},
			required: []Signer{acme()},
			want:     answer{loose: &Identity{gitHubIssuer + "/acme", acmeMain}},
		},
		{
			name:     "the enterprise's issuer instead of the plain one",
			live:     []Entry{{`^https://token\.actions\.githubusercontent\.com/acme$`, acmeSubject}},
			required: []Signer{acme()},
			want: answer{
				missing: []Identity{{gitHubIssuer, acmeMain}},
				tooWide: &Identity{gitHubIssuer + "/acme", acmeMain},
			},
		},
		{
			name:     "the enterprise's issuer, required",
			live:     []Entry{{`^https://token\.actions\.githubusercontent\.com/acme$`, acmeSubject}},
			required: []Signer{{Issuer: gitHubIssuer + "/acme", Subject: acmeMain}},
		},
		{
			name:     "badly grouped alternatives",
			live:     []Entry{{acmeIssuer, `^` + at + `refs/heads/main|refs/tags/v1$`}},
			required: []Signer{acme()},
			want: answer{
				tooWide: gitHub("https://github.com/b/a/dynamic/@refs/tags/v1"),
				loose:   gitHub("refs/tags/v1"),
			},
		},
		{
			name:     "issuer and subject of an entry belong together",
			live:     []Entry{{acmeIssuer, `^a@acme\.com$`}, {`^https://accounts\.google\.com$`, acmeSubject}},
			required: []Signer{acme(), {Issuer: "https://accounts.google.com", Subject: "a@acme.com"}},
			want: answer{
				missing: []Identity{{gitHubIssuer, acmeMain}, {"https://accounts.google.com", "a@acme.com"}},
				tooWide: gitHub("a@acme.com"),
				loose:   &Identity{"https://accounts.google.com", acmeMain},
			},
		},
		{
			name:     "an e-mail address under any issuer",
			live:     []Entry{{`^https://accounts.google.com$`, `^a@acme\.com$`}},
			required: []Signer{{Issuer: "https://accounts.google.com", Subject: "a@acme.com"}},
			want:     answer{tooWide: &Identity{"https://accountsagoogle.com", "a@acme.com"}},
		},
		{
			name:     "a merge queue allowed beside a wider tail",
			live:     []Entry{{acmeIssuer, `^` + at + `refs/heads/gh-readonly-queue/main/.+$`}},
			required: []Signer{{Issuer: gitHubIssuer, SubjectPattern: at + `refs/heads/gh-readonly-queue/main/pr-[0-9]+-[0-9a-f]{40}`}},
			want: answer{
				tooWide: gitHub(at + "refs/heads/gh-readonly-queue/main/p"),
				loose:   gitHub("https://github/com/acme/platform/.github/workflows/cd.yaml@refs/heads/gh-readonly-queue/main/p"),
			},
		},
		{
			name:     "a required signer that nobody can be",
			live:     []Entry{{acmeIssuer, acmeSubject}},
			required: []Signer{{Issuer: gitHubIssuer, Subject: "https://github.com/acme/platform"}},
			allowed:  []Signer{acme()},
			want:     answer{vacuous: 1},
		},
		{
			name:     "every commit of a reusable workflow",
			live:     []Entry{{`^https://token.actions.githubusercontent.com$`, `^https://github\.com/acme/shared/\.github/workflows/p\.yaml@[0-9a-f]{40}$`}},
			required: []Signer{{Issuer: gitHubIssuer, SubjectPattern: `https://github\.com/acme/shared/\.github/workflows/p\.yaml@[0-9a-f]{40}`}},
			want: answer{loose: &Identity{
				"https://token/actions.githubusercontent.com",
				"https://github.com/acme/shared/.github/workflows/p.yaml@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := Prove(context.Background(), Question{
				Live: test.live, Required: test.required, Allowed: test.allowed, Everything: test.everything,
			})
			if len(a.Invalid) > 0 || len(a.Undecided) > 0 {
				t.Fatalf("invalid %+v, undecided %+v", a.Invalid, a.Undecided)
			}
			var missing []Identity
			for _, m := range a.Missing {
				missing = append(missing, m.Witness)
			}
			if !slices.Equal(missing, test.want.missing) {
				t.Errorf("missing:\n got %q\nwant %q", missing, test.want.missing)
			}
			if len(a.Vacuous) != test.want.vacuous {
				t.Errorf("vacuous: %v", a.Vacuous)
			}
			for _, w := range []struct {
				what      string
				got, want *Identity
			}{{"too wide", a.TooWide, test.want.tooWide}, {"loose", a.Loose, test.want.loose}} {
				if w.got == nil || w.want == nil {
					if w.got != w.want {
						t.Errorf("%s:\n got %q\nwant %q", w.what, w.got, w.want)
					}
				} else if *w.got != *w.want {
					t.Errorf("%s:\n got %q\nwant %q", w.what, *w.got, *w.want)
				}
			}
		})
	}
}

// TestFamiliar: beside the shortest identity stands one that people know.
func TestFamiliar(t *testing.T) {
	t.Parallel()
	a := Prove(context.Background(), Question{
		Live:     []Entry{{acmeIssuer, `^https://github\.com/acme/platform/.*$`}},
		Required: []Signer{acme()},
	})
	want := Identity{gitHubIssuer, "https://github.com/acme/platform/.github/workflows/a.yml@refs/tags/a"}
	if a.Familiar == nil || *a.Familiar != want {
		t.Errorf("got %q, want %q", a.Familiar, want)
	}
}

// TestInvalid: every pattern that does not compile is named.
func TestInvalid(t *testing.T) {
	t.Parallel()
	a := Prove(context.Background(), Question{
		Live:     []Entry{{"(", "ok"}, {"ok", "a{1001}"}, {"ok", "(?=x)"}, {"\xff", "ok"}},
		Required: []Signer{acme()},
	})
	var got []string
	for _, p := range a.Invalid {
		got = append(got, p.Field+" "+p.Pattern)
	}
	if want := []string{"issuer (", "subject a{1001}", "subject (?=x)", "issuer \xff"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBadSigner: a signer made by hand that is none leaves its question undecided.
func TestBadSigner(t *testing.T) {
	t.Parallel()
	for _, s := range []Signer{
		{}, {Issuer: "a"}, {Issuer: "a", IssuerPattern: "a", Subject: "b"}, {Issuer: "a", SubjectPattern: "("},
		{Issuer: "a\xff", Subject: "b"},
	} {
		if a := Prove(context.Background(), Question{Required: []Signer{s}}); len(a.Undecided) == 0 {
			t.Errorf("%+v: expected it to be undecided, found %+v", s, a)
		}
	}
}

// accepted returns what the entries accept, as a signer of the same language would.
func asSigner(e Entry) Signer {
	return Signer{IssuerPattern: `(?s:.*)(?:` + e.Issuer + `)(?s:.*)`, SubjectPattern: `(?s:.*)(?:` + e.Subject + `)(?s:.*)`}
}

// inside reports whether all that the required signer is, the entries accept.
func inside(t *testing.T, s Signer, live ...Entry) bool {
	t.Helper()
	a := Prove(context.Background(), Question{Live: live, Required: []Signer{s}, Everything: true})
	for _, u := range a.Undecided {
		if u.Question == askMissing {
			t.Fatalf("undecided: %+v", u)
		}
	}
	return len(a.Missing) == 0
}

// TestOrder: containment is an order, and a union contains its parts.
func TestOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(20261130, 99))
	chains := 0
	for range 250 / slower {
		x, y, z := randomEntry(r), randomEntry(r), randomEntry(r)
		if !inside(t, asSigner(x), x) {
			t.Errorf("A ⊆ A fails for %+v", x)
		}
		if !inside(t, asSigner(x), x, y) || !inside(t, asSigner(x), y, x) {
			t.Errorf("A ⊆ A∪B fails for %+v and %+v", x, y)
		}
		if inside(t, asSigner(x), y) && inside(t, asSigner(y), z) {
			chains++
			if !inside(t, asSigner(x), z) {
				t.Errorf("A ⊆ B ⊆ C, but not A ⊆ C: %+v, %+v, %+v", x, y, z)
			}
		}
	}
	if slower == 1 && chains < 5 {
		t.Errorf("only %d chains: the test shows nothing", chains)
	}
}

// TestMoreEntriesMoreWitnesses: another live entry never takes away a witness that
// the policy is too wide, and never adds one that something is missing.
func TestMoreEntriesMoreWitnesses(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(20261130, 98))
	for range 200 / slower {
		q := randomQuestion(r)
		before := Prove(context.Background(), q)
		q.Live = append(q.Live, randomEntry(r))
		after := Prove(context.Background(), q)
		if before.TooWide != nil && (after.TooWide == nil || runes(*after.TooWide) > runes(*before.TooWide)) {
			t.Errorf("%+v\nbefore %q, after %q", q, before.TooWide, after.TooWide)
		}
		if len(after.Missing) > len(before.Missing) {
			t.Errorf("%+v\nmissing before: %v, after: %v", q, before.Missing, after.Missing)
		}
	}
}

package signer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestSuggest(t *testing.T) {
	t.Parallel()
	const at = "https://github.com/acme/platform/.github/workflows/"
	queue := Signer{
		Issuer:         gitHubIssuer,
		SubjectPattern: regexp.QuoteMeta(at) + `ci\.yaml@refs/heads/gh-readonly-queue/main/pr-[0-9]+-[0-9a-f]{40}`,
	}
	gitLab := Signer{Issuer: "https://gitlab.com", Subject: "https://gitlab.com/acme/app//.gitlab-ci.yml@refs/heads/main"}
	pattern := func(text string) Signer { return Signer{Issuer: gitHubIssuer, SubjectPattern: text} }
	for _, test := range []struct {
		name              string
		required, allowed []Signer
		want              Entry
	}{
		{"one exact signer", []Signer{acme()}, nil, Entry{acmeIssuer, acmeSubject}},
		{"the same signer twice", []Signer{acme()}, []Signer{acme()}, Entry{acmeIssuer, acmeSubject}},
		{"a common beginning is written once", []Signer{acme()}, []Signer{queue}, Entry{
			acmeIssuer,
			`^https://github\.com/acme/platform/\.github/workflows/(?:cd\.yaml@refs/heads/main|` +
				`ci\.yaml@refs/heads/gh-readonly-queue/main/pr-[0-9]+-[0-9a-f]{40})$`,
		}},
		{"anchors are not doubled", []Signer{pattern(acmeSubject)}, nil, Entry{acmeIssuer, acmeSubject}},
		{"an escaped dollar is no anchor", []Signer{pattern(`^https://github\.com/a/b/\.github/workflows/c\.yml@refs/heads/\$`)}, nil, Entry{
			acmeIssuer, `^https://github\.com/a/b/\.github/workflows/c\.yml@refs/heads/\$$`,
		}},
		{"alternatives are grouped", []Signer{pattern(at + `a\.yml@x|` + at + `b\.yml@x`)}, nil, Entry{
			acmeIssuer, `^(?:` + at + `a\.yml@x|` + at + `b\.yml@x)$`,
		}},
		{"alternatives inside are left alone", []Signer{pattern(at + `(a|b)[|]?\.yml@x`)}, nil, Entry{
			acmeIssuer, `^` + at + `(a|b)[|]?\.yml@x$`,
		}},
		{"flags end with their pattern", []Signer{pattern(`(?i)` + at + `a\.yml@x`), acme()}, nil, Entry{
			acmeIssuer, `^(?:(?:(?i)` + at + `a\.yml@x)|` + regexp.QuoteMeta(acmeMain) + `)$`,
		}},
		{"two issuers whose subjects nobody can cross", []Signer{acme(), gitLab}, nil, Entry{
			`^https://(?:token\.actions\.githubusercontent\.com|gitlab\.com)$`,
			`^https://(?:github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main|gitlab\.com/acme/app//\.gitlab-ci\.yml@refs/heads/main)$`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := Suggest(context.Background(), test.required, test.allowed, false)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("\n got %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// TestSuggestOpenQuote: the quote of a pattern must not swallow what stands behind.
func TestSuggestOpenQuote(t *testing.T) {
	t.Parallel()
	got, err := Suggest(context.Background(), []Signer{acme(), {Issuer: gitHubIssuer, SubjectPattern: `\Q` + acmeMain + `2`}}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]bool{acmeMain: true, acmeMain + "2": true, acmeMain + "22": false} {
		if ok, err := got.Accepts(Identity{gitHubIssuer, subject}); ok != want || err != nil {
			t.Errorf("%s: got %t, %v", subject, ok, err)
		}
	}
}

func TestSuggestConflict(t *testing.T) {
	t.Parallel()
	const google = "https://accounts.google.com"
	mail := Signer{Issuer: google, Subject: "a@acme.com"}
	for _, test := range []struct {
		name    string
		signers []Signer
		private bool
		want    Identity
	}{
		// Any issuer may stand beside an e-mail address, says the table of forms.
		{"an address and a workflow", []Signer{acme(), mail}, false, Identity{gitHubIssuer, "a@acme.com"}},
		{"two addresses of two issuers", []Signer{mail, {Issuer: "https://b", Subject: "b@acme.com"}}, false, Identity{google, "b@acme.com"}},
		{"two issuers under a private Sigstore", []Signer{acme(), {Issuer: "https://gitlab.com", Subject: "x"}}, true, Identity{gitHubIssuer, "x"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			entry, err := Suggest(context.Background(), test.signers, nil, test.private)
			var conflict *ConflictError
			if !errors.As(err, &conflict) {
				t.Fatalf("expected a conflict, found %+v, %v", entry, err)
			}
			if conflict.Issuer == conflict.Subject || conflict.Issuer.Issuer != conflict.Witness.Issuer ||
				conflict.Subject.Subject != conflict.Witness.Subject {
				t.Errorf("the conflict does not name its signers: %+v", conflict)
			}
			if runes(conflict.Witness) > runes(test.want) {
				t.Errorf("got %q, want %q or a shorter one", conflict.Witness, test.want)
			}
			if text := err.Error(); !strings.Contains(text, conflict.Witness.Subject) {
				t.Errorf("the error does not name the identity: %s", text)
			}
		})
	}
	if _, err := Suggest(context.Background(), nil, nil, false); !errors.Is(err, ErrBadSigner) {
		t.Errorf("expected an error without signers, found %v", err)
	}
}

// TestSuggestIsExact: for random signers the entry accepts what they are and nothing
// else, by the word of package regexp over short texts.
func TestSuggestIsExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(20261130, 97))
	suggested, conflicts := 0, 0
	for range 120 {
		var signers []Signer
		for range 1 + r.IntN(3) {
			signers = append(signers, randomSigner(r))
		}
		entry, err := Suggest(context.Background(), signers, nil, true)
		if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
			conflicts++
			continue
		} else if err != nil {
			t.Fatalf("%+v: %v", signers, err)
		}
		suggested++
		accepts := pairTest(t, entry.Issuer, entry.Subject, false)
		o := newOracle(t, Question{Required: signers}, nil)
		for _, id := range shortPairs {
			matches := o.known(id)
			if accepts(id) != matches {
				t.Fatalf("%+v\n%+v\n%q: the entry says %t, the signers %t", signers, entry, id, accepts(id), matches)
			}
		}
	}
	if suggested < 15 || conflicts < 8 {
		t.Errorf("%d suggested, %d conflicts: the test shows little", suggested, conflicts)
	}
}

// TestSplits: an alternative is at the top only outside of groups, classes, escapes.
func TestSplits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`a|b`: true, `(a|b)`: false, `(a)|(b)`: true, `[|]`: false, `[]|]`: false, `[^]|]`: false, `[[:alpha:]|]|x`: true,
		`\|`: false, `\\|`: true, `[\]|]`: false, `(?:a|b)c`: false, ``: false, `|`: true, `[a[:^digit:]|]`: false, `[^^|]`: false,
	} {
		if got := splits(text); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}

func ExampleSuggest() {
	signers, err := Parse([]byte(`
- github: {repository: acme/platform, workflow: cd.yaml, ref: refs/heads/main}
- github: {repository: acme/platform, workflow: ci.yaml, merge-queue-of: main}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	entry, err := Suggest(context.Background(), signers, nil, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(entry.Issuer)
	fmt.Println(entry.Subject)
	// Output:
	// ^https://token\.actions\.githubusercontent\.com$
	// ^https://github\.com/acme/platform/\.github/workflows/(?:cd\.yaml@refs/heads/main|ci\.yaml@refs/heads/gh-readonly-queue/main/pr-[0-9]+-[0-9a-f]{40})$
}

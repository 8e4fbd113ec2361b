package signer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// The oracle decides by trying every pair of short texts with package regexp. It
// knows nothing of automata: it finds what the proof must find, and nothing less.

// oracleRunes are what the short texts consist of: letters of both cases, a line
// break for ^ and $ under (?m), a space for \b, and a rune outside of ASCII.
var oracleRunes = []rune("ab\n Aé")

// texts returns all texts of the first n runes up to a length, the shortest first.
func texts(n, length int) []string {
	all := []string{""}
	for from := 0; length > 0; length-- {
		end := len(all)
		for _, t := range all[from:end] {
			for _, r := range oracleRunes[:n] {
				all = append(all, t+string(r))
			}
		}
		from = end
	}
	return all
}

// shortPairs are all identities that the oracle tries.
var shortPairs = func() []Identity {
	var pairs []Identity
	for _, issuer := range texts(2, 2) {
		for _, subject := range texts(4, 4) {
			pairs = append(pairs, Identity{issuer, subject})
		}
	}
	return pairs
}()

func runes(id Identity) int {
	return utf8.RuneCountInString(id.Issuer) + utf8.RuneCountInString(id.Subject)
}

// oracle is what the oracle knows of a question.
type oracle struct {
	live              []func(Identity) bool
	required, allowed []func(Identity) bool
	forms             []func(Identity) bool
	table             []Form
}

func (o *oracle) any(tests []func(Identity) bool, id Identity) bool {
	for _, t := range tests {
		if t(id) {
			return true
		}
	}
	return false
}

// pairTest compiles a pair of patterns in the plainest way.
func pairTest(t testing.TB, issuer, subject string, wholeValue bool) func(Identity) bool {
	t.Helper()
	if wholeValue {
		issuer, subject = `\A(?:`+issuer+`)\z`, `\A(?:`+subject+`)\z`
	}
	i, s := remembered(t, issuer), remembered(t, subject)
	return func(id Identity) bool { return i(id.Issuer) && s(id.Subject) }
}

// remembered matches each text only once.
func remembered(t testing.TB, pattern string) func(string) bool {
	t.Helper()
	re, err := regexp.Compile(pattern)
	if err != nil {
		t.Skip(err)
	}
	seen := map[string]bool{}
	return func(text string) bool {
		match, ok := seen[text]
		if !ok {
			match = re.MatchString(text)
			seen[text] = match
		}
		return match
	}
}

func newOracle(t testing.TB, q Question, forms []Form) *oracle {
	t.Helper()
	o := &oracle{table: forms}
	for _, e := range q.Live {
		o.live = append(o.live, pairTest(t, e.Issuer, e.Subject, false))
	}
	signer := func(s Signer) func(Identity) bool {
		if s.IssuerPattern == "" {
			s.IssuerPattern = regexp.QuoteMeta(s.Issuer)
		}
		if s.SubjectPattern == "" {
			s.SubjectPattern = regexp.QuoteMeta(s.Subject)
		}
		return pairTest(t, s.IssuerPattern, s.SubjectPattern, true)
	}
	for _, s := range q.Required {
		o.required = append(o.required, signer(s))
	}
	for _, s := range q.Allowed {
		o.allowed = append(o.allowed, signer(s))
	}
	for _, f := range forms {
		o.forms = append(o.forms, pairTest(t, f.Issuer, f.Subject, true))
	}
	return o
}

func (o *oracle) known(id Identity) bool { return o.any(o.required, id) || o.any(o.allowed, id) }

// tooWide is the rule of checks.md, spelled out for one identity.
func (o *oracle) tooWide(id Identity) bool {
	if !o.any(o.live, id) || o.known(id) {
		return false
	}
	for i, f := range o.forms {
		first := Identity{o.table[i].SecondNameOf, id.Subject}
		excused := first.Issuer != "" && o.any(o.live, first) && o.known(first)
		if f(id) && !excused {
			return true
		}
	}
	return false
}

func (o *oracle) loose(id Identity) bool {
	return o.any(o.live, id) && !o.known(id) && !o.tooWide(id)
}

// check compares an answer with the oracle: a witness must be one, and none of the
// short texts may be a shorter one.
func (o *oracle) check(t testing.TB, q Question, a Answer) {
	t.Helper()
	for _, u := range a.Undecided {
		if errors.Is(u.Err, ErrTooLarge) {
			t.Skip(u.Err)
		}
		t.Fatalf("%+v\nundecided: %+v", q, u)
	}
	compare := func(what string, is func(Identity) bool, got *Identity) {
		t.Helper()
		if got != nil && !is(*got) {
			t.Errorf("%+v\n%s: %q is none", q, what, *got)
		}
		for _, id := range shortPairs {
			if is(id) && (got == nil || runes(*got) > runes(id)) {
				t.Errorf("%+v\n%s: got %q, but %q is shorter", q, what, got, id)
				return
			}
		}
	}
	missing := map[Signer]*Identity{}
	for _, m := range a.Missing {
		missing[m.Signer] = &m.Witness
	}
	vacuous := map[Signer]bool{}
	for _, s := range a.Vacuous {
		vacuous[s] = true
	}
	for i, s := range q.Required {
		compare("missing", func(id Identity) bool {
			return o.required[i](id) && o.any(o.forms, id) && !o.any(o.live, id)
		}, missing[s])
		for _, id := range shortPairs {
			if vacuous[s] && o.required[i](id) && o.any(o.forms, id) {
				t.Errorf("%+v\nvacuous: %s, but it has %q", q, s, id)
				break
			}
		}
	}
	compare("too wide", o.tooWide, a.TooWide)
	if !q.Everything {
		compare("loose", o.loose, a.Loose)
	}
}

// randomPattern writes a small pattern.
func randomPattern(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(4) == 0 {
		return pick(r, "a", "b", "A", ".", "[ab]", "[^a]", `\w`, `\s`, `\b`, `\B`, "^", "$", `\A`, `\z`, "é", " ", "", `\n`,
			"(?i:a)", "(?m:^)", "(?m:$)", "(?s:.)", `\pL`, `[^\n]`)
	}
	sub := func() string { return randomPattern(r, depth-1) }
	switch r.IntN(6) {
	case 0:
		return "(?:" + sub() + ")" + pick(r, "*", "+", "?", "{2}", "{1,2}", "*?", "{0}", "{2,}")
	case 1:
		return "(?:" + sub() + "|" + sub() + ")"
	case 2:
		return pick(r, "(?i)", "(?m)", "(?s)", "(?U)", "(?-s)") + sub()
	case 3:
		return "^" + sub() + "$"
	}
	return sub() + sub()
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

func randomEntry(r *rand.Rand) Entry {
	return Entry{pick(r, "", "a", "^a$", "b", "[ab]", "a.", randomPattern(r, 1)), randomPattern(r, 3)}
}

func randomSigner(r *rand.Rand) Signer {
	s := Signer{Issuer: pick(r, "a", "b", "ab"), SubjectPattern: randomPattern(r, 3)}
	if r.IntN(3) == 0 {
		s.Issuer, s.IssuerPattern = "", pick(r, "a|b", "a.*", ".+", "[ab]")
	}
	if s.SubjectPattern == "" || r.IntN(4) == 0 {
		s.SubjectPattern, s.Subject = "", pick(r, "a", "ab", "aba", "a\nb")
	}
	return s
}

func randomQuestion(r *rand.Rand) Question {
	q := Question{Everything: true}
	for range 1 + r.IntN(2) {
		q.Live = append(q.Live, randomEntry(r))
	}
	for range 1 + r.IntN(2) {
		q.Required = append(q.Required, randomSigner(r))
	}
	for range r.IntN(2) {
		q.Allowed = append(q.Allowed, randomSigner(r))
	}
	return q
}

// smallForms is a table of forms over the oracle's texts, second names included.
func smallForms(r *rand.Rand) []Form {
	subject := pick(r, "a.*", "[ab]+", "a|b", "(?s:.*)a")
	return []Form{
		{Name: "plain", Issuer: "a", Subject: subject},
		{Name: "second", Issuer: "a[ab]", Subject: subject, SecondNameOf: "a"},
		{Name: "other", Issuer: pick(r, "b", "[^a]*"), Subject: pick(r, "b+", "[^b]*", ".?")},
	}
}

// TestProveAgainstOracle asks thousands of random small questions, half of them
// over all pairs of texts and half over a small table of forms.
func TestProveAgainstOracle(t *testing.T) {
	t.Parallel()
	questions := 2000
	if testing.Short() {
		questions = 400
	}
	const workers = 8
	for w := range workers {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(20261130, uint64(w)))
			for range questions / workers / slower {
				q, forms := randomQuestion(r), formsFor(true)
				if r.IntN(2) == 0 {
					q.Everything, forms = false, smallForms(r)
				}
				newOracle(t, q, forms).check(t, q, prove(context.Background(), q, forms))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// FuzzProve lets the fuzzer write the patterns.
func FuzzProve(f *testing.F) {
	f.Add("a", "^a|b$", "a", "[ab]", "ab")
	f.Add("", "", "a|b", "a*", "")
	f.Add("(?i)a", `\ba\b`, ".*", `(?m)^a$`, "b")
	f.Add("^a$", "(?:a|b)*a(?:a|b){3}", "a", "(?:a|b)*", "(?s).*")
	f.Fuzz(func(t *testing.T, issuer, subject, requiredIssuer, requiredSubject, allowedSubject string) {
		if len(issuer)+len(subject)+len(requiredIssuer)+len(requiredSubject)+len(allowedSubject) > 200 {
			t.Skip("long patterns are slow for the oracle")
		}
		q := Question{
			Everything: true,
			Live:       []Entry{{issuer, subject}},
			Required:   []Signer{{IssuerPattern: requiredIssuer, SubjectPattern: requiredSubject}},
			Limit:      Limit{States: 4 * 5000, Steps: 4 * 500_000},
		}
		if allowedSubject != "" {
			q.Allowed = []Signer{{IssuerPattern: requiredIssuer, SubjectPattern: allowedSubject}}
		}
		for _, s := range append(q.Required, q.Allowed...) {
			if s.valid() != nil || strings.Contains(s.IssuerPattern+s.SubjectPattern, `\Q`) {
				t.Skip("not a signer, or the oracle cannot wrap it")
			}
		}
		a := Prove(context.Background(), q)
		if len(a.Invalid) > 0 {
			_, err1 := regexp.Compile(issuer)
			if _, err2 := regexp.Compile(subject); err1 == nil && err2 == nil {
				t.Fatalf("invalid: %+v", a.Invalid)
			}
			t.Skip("a live pattern does not compile")
		}
		newOracle(t, q, formsFor(true)).check(t, q, a)
	})
}

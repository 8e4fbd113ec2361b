package signer

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"
)

// policy is one line of testdata/policies.jsonl: a public signer policy with its
// names replaced, and what its author meant.
type policy struct {
	ID              string     `json:"id"`
	Issuer          string     `json:"issuer"`  // as a Flux entry, searched
	Subject         string     `json:"subject"` // likewise
	Required        []Identity `json:"required"`
	RequiredIssuer  string     `json:"required-issuer"`
	RequiredPattern string     `json:"required-pattern"` // the family meant
	AcceptsRequired bool       `json:"accepts-required"`
	Class           string     `json:"class"`
	Witness         *Identity  `json:"witness"` // somebody else who is accepted
}

func policies(t testing.TB) []policy {
	t.Helper()
	file, err := os.Open("testdata/policies.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []policy
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p policy
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// question asks whether the policy accepts what was required, and nothing but the
// family meant.
func (p policy) question() Question {
	q := Question{
		Live:    []Entry{{p.Issuer, p.Subject}},
		Allowed: []Signer{{IssuerPattern: p.RequiredIssuer, SubjectPattern: p.RequiredPattern}},
	}
	for _, id := range p.Required {
		q.Required = append(q.Required, Signer{Issuer: id.Issuer, Subject: id.Subject})
	}
	return q
}

// Why an answer differs from the file.
const (
	// The file looked for a widening only where the policy accepts the required.
	otherIdentity = "accepts an identity of somebody else, although not the required one"
	// The name v is a tag too, and another one than those of v.+.
	bareV = "the tag v is no tag of v.+"
	// A dot stands in a part of the subject that its owner chooses.
	chosenPart = "an unescaped dot where any character can stand: another tag, or another file"
	// A star behind a slash repeats the slash, and none is one of the choices.
	starSlash = "refs/tags/* accepts a ref named refs/tags"
	// checks.md: any issuer string can be issued with an e-mail subject.
	anyIssuer = "an unescaped dot in the issuer of an e-mail address"
	// An address may have a quoted part before the @.
	quotedAddress = `an address such as "@"@acmelabs.com`
	// The issuer's name was replaced by one that Fulcio does not trust.
	unknownIssuer = "an unescaped dot, under an issuer that is none of Fulcio's: a private Sigstore may issue anything"
)

// differences lists every policy for which the file and the proof differ, with who
// is right. In each case it is the proof.
var differences = map[string]string{
	"R013": bareV, "R015": bareV, "R055": bareV, "R127": bareV, "R233": bareV, "R255": bareV, "R283": bareV,
	"R031": chosenPart, "R179": chosenPart,
	"R039": otherIdentity, "R077": otherIdentity, "R121": otherIdentity, "R275": otherIdentity,
	"R409": otherIdentity, "R413": otherIdentity,
	"R107": unknownIssuer,
	"R199": quotedAddress,
	"R287": starSlash,
	"R303": anyIssuer,
}

// privateIssuers are the policies whose issuer is none of Fulcio's, by a replaced
// name or truly. Nothing issuable matches what they require, so they are asked as
// under a private Sigstore.
var privateIssuers = []string{"R107", "R109", "R177", "R227", "R301"}

// TestPolicies: every witness of the file is found too wide, and every policy that
// refuses a required identity is found so.
func TestPolicies(t *testing.T) {
	t.Parallel()
	all := policies(t)
	if len(all) != 214 {
		t.Errorf("expected 214 policies, found %d", len(all))
	}
	seen := map[string]bool{}
	for _, p := range all {
		q := p.question()
		a := Prove(context.Background(), q)
		if vacuous := len(a.Vacuous) > 0; vacuous != slices.Contains(privateIssuers, p.ID) {
			t.Errorf("%s: vacuous: %v", p.ID, a.Vacuous)
		} else if vacuous {
			q.Everything = true
			a = Prove(context.Background(), q)
		}
		if len(a.Undecided) > 0 || len(a.Invalid) > 0 {
			t.Errorf("%s: undecided: %+v, invalid: %+v", p.ID, a.Undecided, a.Invalid)
			continue
		}
		if missing := len(a.Missing) > 0; missing == p.AcceptsRequired {
			t.Errorf("%s: missing: got %t; the file says that it accepts the required: %t", p.ID, missing, p.AcceptsRequired)
		}
		if p.Witness != nil && a.TooWide == nil {
			t.Errorf("%s: not found too wide, but it accepts %v", p.ID, *p.Witness)
		}
		if p.Witness == nil && a.TooWide != nil {
			seen[p.ID] = true
			if differences[p.ID] == "" {
				t.Errorf("%s (%s): found too wide by %q, which the file does not know", p.ID, p.Class, *a.TooWide)
			}
		}
	}
	for id := range differences {
		if !seen[id] {
			t.Errorf("%s is listed as a difference, and is none", id)
		}
	}
}

// BenchmarkPolicies reports how long one policy takes and how many states it visits.
func BenchmarkPolicies(b *testing.B) {
	var questions []Question
	for _, p := range policies(b) {
		questions = append(questions, p.question())
	}
	var times []time.Duration
	var states []int
	for b.Loop() {
		for _, q := range questions {
			start := time.Now()
			a := Prove(context.Background(), q)
			times = append(times, time.Since(start))
			states = append(states, a.States)
		}
	}
	slices.Sort(times)
	slices.Sort(states)
	at := func(share float64) int { return int(share * float64(len(times)-1)) }
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(times[at(0.5)]), "median-ms")
	b.ReportMetric(ms(times[at(0.99)]), "p99-ms")
	b.ReportMetric(ms(times[at(1)]), "max-ms")
	b.ReportMetric(float64(states[at(0.5)]), "median-states")
	b.ReportMetric(float64(states[at(0.99)]), "p99-states")
	b.ReportMetric(float64(states[at(1)]), "max-states")
}

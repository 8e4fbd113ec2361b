package signer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// hostile are patterns that somebody might write to make the proof give up, or the
// gate run out of memory.
func hostile() map[string]string {
	var classes, alternatives, singles strings.Builder
	for i := range 400 {
		fmt.Fprintf(&classes, `[\p{L}\x{%x}-\x{%x}]?`, 0x3000+i*7, 0x9000+i*13)
	}
	for i := range 1000 {
		fmt.Fprintf(&alternatives, "https://github\\.com/acme/repo%d/\\.github/workflows/cd%d\\.yaml@refs/heads/main|", i, i)
	}
	for i := range 20_000 {
		fmt.Fprintf(&singles, "%c", rune(0x4E00+i))
	}
	return map[string]string{
		"star of stars":            `^(a|a)*$`,
		"nested stars":             `^((a*)*)*b$`,
		"a far look back":          `.*a.{200}b.*`,
		"a far look back, twice":   `.*a.{200}b.*c.{200}d.*`,
		"a far look back, at ends": `^(.*a.{500})|(.*b.{499})$`,
		"counted":                  `^((a{1,10}){1,10}){1,10}$`,
		"counted words":            `^(\w{1,30}[-._]?){1,30}$`,
		"many optionals":           `^(a?){1000}$`,
		"many optional letters":    strings.Repeat("a?", 25_000),
		"many stars":               "^" + strings.Repeat(".*a", 3000) + "$",
		"huge classes":             "^" + classes.String() + "$",
		"all of Unicode":           "^[" + singles.String() + "]+$",
		"different letters":        singles.String(),
		"a long text":              "^" + strings.Repeat("https://github.com/acme/", 4000) + "$",
		"a long text, unanchored":  strings.Repeat("abcdefghij", 10_000),
		"a thousand alternatives":  "^(" + strings.TrimSuffix(alternatives.String(), "|") + ")$",
		"folded":                   `(?i)` + strings.Repeat("kſ", 2000),
		"words":                    strings.Repeat(`\b.\B.`, 2000),
		"overlapping":              `^(.*a|.*b|.*c|.*d|.*e|.*f|.*g|.*h).{12}x.*$`,
		"every subset":             `^(.{0,99}a)?(.{0,99}b)?(.{0,99}c)?(.{0,99}d)?.*$`,
	}
}

// hostileQuestions asks about the pattern on both sides.
func hostileQuestions(text string) map[string]Question {
	const issuer = `^https://token\.actions\.githubusercontent\.com$`
	signer := Signer{Issuer: gitHubIssuer, Subject: "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main"}
	return map[string]Question{
		"live subject": {Live: []Entry{{issuer, text}}, Required: []Signer{signer}},
		"live issuer":  {Live: []Entry{{text, text}}, Required: []Signer{signer}},
		"required": {
			Live:     []Entry{{issuer, `^.*$`}},
			Required: []Signer{{Issuer: gitHubIssuer, SubjectPattern: text}},
		},
		"both": {
			Live: []Entry{{text, text}}, Required: []Signer{{IssuerPattern: text, SubjectPattern: text}},
			Everything: true,
		},
		"nearly both": {
			Live: []Entry{{issuer, `.*` + text}},
			Required: []Signer{
				{Issuer: gitHubIssuer, SubjectPattern: ".*a.{150}"},
				{Issuer: gitHubIssuer, SubjectPattern: text},
			},
			Everything: true,
		},
	}
}

// TestHostilePatterns: whatever the pattern, the proof ends within its bound, and
// what it could not decide it says, with the pattern. The bound is a fortieth of
// the default; BenchmarkHostile takes the whole.
func TestHostilePatterns(t *testing.T) {
	t.Parallel()
	if slower > 1 {
		t.Skip("asked without the race detector")
	}
	for name, text := range hostile() {
		for side, q := range hostileQuestions(text) {
			t.Run(name+"/"+side, func(t *testing.T) {
				if len(text) > 20_000 && side != "both" {
					t.Skip("long patterns are asked one way only; BenchmarkHostile asks all")
				}
				q.Limit = Limit{States: defaultStates / 40, Steps: defaultSteps / 40, Bytes: defaultBytes / 4}
				a := Prove(context.Background(), q)
				// The example is a fifth share, and each share may be overstepped by what
				// one rune leads to.
				if bound := q.Limit.States * 5 / 4 * 2; a.States > bound {
					t.Errorf("visited %d states, expected at most %d", a.States, bound)
				}
				if len(a.Invalid) > 0 {
					t.Fatalf("invalid: %v", a.Invalid[0].Err)
				}
				for _, u := range a.Undecided {
					if !errors.Is(u.Err, ErrTooLarge) {
						t.Errorf("%s: undecided for another reason: %v", u.Question, u.Err)
					}
					if u.Pattern == "" {
						t.Errorf("%s: no pattern is named", u.Question)
					}
				}
			})
		}
	}
}

// TestDecidedAllTheSame: patterns that look hostile and are not.
func TestDecidedAllTheSame(t *testing.T) {
	t.Parallel()
	all := hostile()
	for _, name := range []string{
		"star of stars", "nested stars", "a far look back", "a far look back, twice", "a thousand alternatives", "all of Unicode",
	} {
		for side, q := range hostileQuestions(all[name]) {
			if side != "live subject" && side != "required" {
				continue
			}
			t.Run(name+"/"+side, func(t *testing.T) {
				t.Parallel()
				if a := Prove(context.Background(), q); len(a.Undecided) > 0 {
					t.Errorf("undecided: %+v", a.Undecided)
				}
			})
		}
	}
}

// TestLimit: a smaller bound is kept too, and nothing is claimed beyond it.
func TestLimit(t *testing.T) {
	t.Parallel()
	q := hostileQuestions(`^https://github\.com/acme/.*a.{30}b.*$`)["live subject"]
	for name, limit := range map[string]Limit{
		"states": {States: 40}, "steps": {Steps: 200}, "bytes": {Bytes: 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q.Limit = limit
			a := Prove(context.Background(), q)
			if len(a.Undecided) == 0 || a.TooWide != nil || a.Loose != nil {
				t.Errorf("expected nothing but undecided questions, found %+v", a)
			}
			for _, u := range a.Undecided {
				if !errors.Is(u.Err, ErrTooLarge) {
					t.Errorf("%s: %v", u.Question, u.Err)
				}
			}
		})
	}
}

// TestCancelled: a proof that is stopped has decided nothing.
func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("the run was cancelled")
	cancel(stopped)
	a := Prove(ctx, hostileQuestions("a")["live subject"])
	if len(a.Undecided) != questions {
		t.Fatalf("expected %d undecided questions, found %+v", questions, a)
	}
	for _, u := range a.Undecided {
		if !errors.Is(u.Err, stopped) {
			t.Errorf("%s: expected the cause, found %v", u.Question, u.Err)
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, text := range hostile() {
		for side, q := range hostileQuestions(text) {
			b.Run(strings.ReplaceAll(name+"/"+side, " ", "-"), func(b *testing.B) {
				states := 0
				for b.Loop() {
					states = Prove(context.Background(), q).States
				}
				b.ReportMetric(float64(states), "states")
			})
		}
	}
}

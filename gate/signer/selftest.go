package signer

import (
	"context"
	"fmt"
)

// SelfTest asks the proof questions whose answers are known: a policy that is
// right, and policies that are wrong in one way each. It fails if the proof does
// not tell them apart, naming the policy: then no answer of it may be relied on.
func SelfTest(ctx context.Context) error { return selfTest(ctx, Prove) }

func selfTest(ctx context.Context, ask func(context.Context, Question) Answer) error {
	const (
		issuer  = "https://token.actions.githubusercontent.com"
		subject = "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main"

		issuerPattern  = `^https://token\.actions\.githubusercontent\.com$`
		subjectPattern = `^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$`
	)
	for _, test := range []struct {
		name    string
		live    Entry
		missing bool
		tooWide bool
		loose   bool
	}{
		{name: "an exact policy", live: Entry{issuerPattern, subjectPattern}},
		{
			name:    "a policy without an end",
			live:    Entry{issuerPattern, `^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main`},
			tooWide: true, loose: true,
		},
		{
			name:    "a policy for another branch",
			live:    Entry{issuerPattern, `^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/master$`},
			missing: true, tooWide: true,
		},
		{
			name:    "a policy that accepts nobody",
			live:    Entry{`^nobody$`, `^nobody$`},
			missing: true, loose: true,
		},
		{
			name:  "a policy with unescaped dots",
			live:  Entry{issuerPattern, `^https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main$`},
			loose: true,
		},
	} {
		a := ask(ctx, Question{
			Live:     []Entry{test.live},
			Required: []Signer{{Issuer: issuer, Subject: subject}},
		})
		switch {
		case len(a.Undecided) > 0:
			return fmt.Errorf("self-test of the policy proof: %s was not decided: %w", test.name, a.Undecided[0].Err)
		case len(a.Invalid) > 0:
			return fmt.Errorf("self-test of the policy proof: %s does not compile: %w", test.name, a.Invalid[0].Err)
		case len(a.Vacuous) > 0:
			return fmt.Errorf("self-test of the policy proof: %s: nothing matches the required signer", test.name)
		}
		for _, answer := range []struct {
			what      string
			got, want bool
		}{
			{"refuse a required identity", len(a.Missing) > 0, test.missing},
			{"accept somebody else", a.TooWide != nil, test.tooWide},
			{"accept what nobody can have", a.Loose != nil, test.loose},
		} {
			if answer.got != answer.want {
				return fmt.Errorf("self-test of the policy proof: does %s %s? expected %t, found %t",
					test.name, answer.what, answer.want, answer.got)
			}
		}
	}
	return nil
}

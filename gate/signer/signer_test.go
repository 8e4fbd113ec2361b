package signer

import "testing"

func TestSignerMatches(t *testing.T) {
	t.Parallel()
	const issuer = "https://accounts.google.com"
	for _, test := range []struct {
		name   string
		signer Signer
		id     Identity
		want   bool
	}{
		{"exact", Signer{Issuer: issuer, Subject: "a@acme.com"}, Identity{issuer, "a@acme.com"}, true},
		{"another case", Signer{Issuer: issuer, Subject: "a@acme.com"}, Identity{issuer, "A@acme.com"}, false},
		{"an exact value is no pattern", Signer{Issuer: issuer, Subject: ".@acme.com"}, Identity{issuer, "a@acme.com"}, false},
		{"a pattern", Signer{Issuer: issuer, SubjectPattern: `.+@acme\.com`}, Identity{issuer, "ab@acme.com"}, true},
		{"a pattern with more behind", Signer{Issuer: issuer, SubjectPattern: `.+@acme\.com`}, Identity{issuer, "a@acme.community"}, false},
		{"a pattern with more before", Signer{Issuer: issuer, SubjectPattern: `a@acme\.com`}, Identity{issuer, "aa@acme.com"}, false},
		{"the shorter alternative first", Signer{Issuer: issuer, SubjectPattern: `a|ab`}, Identity{issuer, "ab"}, true},
		{"a lazy repeat", Signer{Issuer: issuer, SubjectPattern: `a+?`}, Identity{issuer, "aaa"}, true},
		{"an open quote", Signer{Issuer: issuer, SubjectPattern: `\Qa.b`}, Identity{issuer, "a.b"}, true},
		{"an open quote with more behind", Signer{Issuer: issuer, SubjectPattern: `\Qa.b`}, Identity{issuer, "a.bc"}, false},
		{"a line break behind", Signer{Issuer: issuer, SubjectPattern: `(?m)a$`}, Identity{issuer, "a\n"}, false},
		{"another issuer", Signer{Issuer: issuer, Subject: "a"}, Identity{issuer + "/", "a"}, false},
		{"no signer", Signer{Issuer: issuer}, Identity{issuer, ""}, false},
		{"no pattern", Signer{Issuer: issuer, SubjectPattern: "("}, Identity{issuer, "("}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.signer.Matches(test.id); got != test.want {
				t.Errorf("%s, %q: got %t, want %t", test.signer, test.id, got, test.want)
			}
		})
	}
}

func TestEntryAccepts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		entry Entry
		id    Identity
		want  bool
		fails bool
	}{
		{Entry{"", ""}, Identity{"x", "y"}, true, false},
		{Entry{"b", "^c"}, Identity{"abc", "cd"}, true, false},
		{Entry{"b", "^c"}, Identity{"abc", "dc"}, false, false},
		{Entry{"^b", "c"}, Identity{"abc", "c"}, false, false},
		{Entry{"(", "c"}, Identity{"(", "c"}, false, true},
		{Entry{"a", "(?=c)"}, Identity{"a", "c"}, false, true},
	} {
		got, err := test.entry.Accepts(test.id)
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%+v, %+v: got %t, %v", test.entry, test.id, got, err)
		}
	}
}

func TestSignerString(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Signer{
		"a@acme.com from https://accounts.google.com": {Issuer: "https://accounts.google.com", Subject: "a@acme.com"},
		"/.+@acme/ from /https:.*/":                   {IssuerPattern: "https:.*", SubjectPattern: ".+@acme"},
		"github: {repository: a/b, workflow: c.yml, ref: any-tag}": {
			Issuer: gitHubIssuer, SubjectPattern: "x", Shorthand: "github: {repository: a/b, workflow: c.yml, ref: any-tag}",
		},
	} {
		if got := s.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAcceptsEverything(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, ".*": true, ".+": true, "^.*$": true, "(?s)^.*$": true, "a|[^a]": true, "a*": true, ".": true, `\b|\B`: true,
		"^": true, "(?i)[a-z]|[^a-z]": true, "https://|^.*$": true,
		"..": false, "a": false, "^a*$": false, "[^a]": false, `\w`: false, "^https://.*$": false, `\b`: false, "a^": false,
	} {
		if got, err := AcceptsEverything(text); got != want || err != nil {
			t.Errorf("%q: got %t, %v; want %t", text, got, err, want)
		}
	}
	if _, err := AcceptsEverything("("); err == nil {
		t.Error("expected an error for a pattern that does not compile")
	}
}

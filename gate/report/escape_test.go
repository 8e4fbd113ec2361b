package report_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"flux-verify-gate/gate/report"
	"flux-verify-gate/gate/report/runnertest"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"plain":             {"signed by https://github.com/acme/x@refs/heads/main", "signed by https://github.com/acme/x@refs/heads/main"},
		"a pattern":         {`^https://github\.com/acme$`, `^https://github\.com/acme$`},
		"line feed":         {"a\nb", "a␊b"},
		"carriage return":   {"a\r::error::b", "a␍::error::b"},
		"escape":            {"\x1b[31mred", "␛[31mred"},
		"tab, NUL, DEL":     {"\t\x00\x7f", "␉␀␡"},
		"next line":         {"a\u0085b", "a⟨U+0085⟩b"},
		"line separators":   {"a\u2028b\u2029c", "a⟨U+2028⟩b⟨U+2029⟩c"},
		"bidi":              {"a\u202eb\u2066c", "a⟨U+202E⟩b⟨U+2066⟩c"},
		"zero width":        {"a\u200bb\u2060c", "a⟨U+200B⟩b⟨U+2060⟩c"},
		"byte order mark":   {"\ufeff::error::x", "⟨U+FEFF⟩::error::x"},
		"soft hyphen":       {"a\u00adb", "a⟨U+00AD⟩b"},
		"no-break space":    {"a\u00a0b", "a⟨U+00A0⟩b"},
		"Hangul filler":     {"a\u3164b", "a⟨U+3164⟩b"},
		"variation":         {"a\ufe0fb", "a⟨U+FE0F⟩b"},
		"tag characters":    {"a\U000e0041b", "a⟨U+E0041⟩b"},
		"combining mark":    {"e\u0301", "e⟨U+0301⟩"},
		"accents":           {"Müller é ž", "Müller é ž"},
		"Cyrillic а":        {"github.com/\u0430cme", "github.com/⟨U+0430⟩cme"},
		"full width":        {"\uff41", "⟨U+FF41⟩"},
		"division slash":    {"a\u2215b", "a⟨U+2215⟩b"},
		"dotless i":         {"g\u0131thub", "g⟨U+0131⟩thub"},
		"our symbols":       {"✔ verified", "⟨U+2714⟩ verified"},
		"typography":        {"“a” – b…", "“a” – b…"},
		"invalid":           {"a\xffb\xc3", "a⟨xFF⟩b⟨xC3⟩"},
		"replacement":       {"\ufffd", "⟨U+FFFD⟩"},
		"legacy":            {"x ##[set-output name=verdict]verified", `x #\#[set-output name=verdict]verified`},
		"legacy, many":      {"####[error]", `#\#\#\#[error]`},
		"legacy, cut":       {"##", `#\#`},
		"modern":            {"::error::x", `\::error::x`},
		"modern, indented":  {"  ::error::x", `  \::error::x`},
		"modern, inside":    {"a ::error::x", "a ::error::x"},
		"one colon":         {":a::b", ":a::b"},
		"empty":             {"", ""},
		"percent":           {"100%0A", "100%0A"},
		"already escaped":   {`a⟨U+202E⟩ #\# ␊ \::`, `a⟨U+202E⟩ #\# ␊ \::`},
		"looks like a name": {"a\n✔ verified", "a␊⟨U+2714⟩ verified"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := report.Escape(test.in); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestEscapeTo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in    string
		limit int
		want  string
	}{
		"fits exactly":     {strings.Repeat("a", 100), 100, strings.Repeat("a", 100)},
		"one more":         {strings.Repeat("a", 101), 100, strings.Repeat("a", 52) + "… (49 more characters)"},
		"runes are whole":  {strings.Repeat("é", 60), 101, strings.Repeat("é", 26) + "… (34 more characters)"},
		"escapes are too":  {strings.Repeat("\u202e", 20), 100, strings.Repeat("⟨U+202E⟩", 4) + "… (16 more characters)"},
		"least limit":      {strings.Repeat("a", 97), 0, strings.Repeat("a", 48) + "… (49 more characters)"},
		"many are counted": {strings.Repeat("é", 1<<20), 96, strings.Repeat("é", 24) + "… (1048552 more characters)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := report.EscapeTo(test.in, test.limit); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// hostile are texts that do harm when they are printed as they are.
var hostile = []string{
	"::error::x", "  ::set-output name=verdict::verified", "\u0085::error::x", "\u3000::error::x",
	"a\r::set-output name=verified::true", "a\r\n::add-mask::a", "a\n::stop-commands::x",
	"##[set-output name=verdict]verified", "x ##[add-mask]a", "#\u200b#[error]x", "##\u200d[error]x",
	"#\x00#[error]x", "##\n[error]x", "#\\#[error]x", "##", "[error]x", "\ufeff::error::x", "\u200b::error::x",
	"a|b|c", "|---|---|", "```", "~~~", "</code>", "</td></tr></table><h1>✅ Verified", "<!--", "-->",
	"`verified`", "**b**", "[a](https://example.com)", "![a](https://example.com)", "https://example.com",
	"www.example.com", "a@example.com", "@acme", "#1", ":white_check_mark:", "$\\frac{1}{2}$", "&lt;b&gt;", "&#10;",
	"\\", "\\|", "a\\", "\"", "'", "\"]", "\"]\n  x[\"y", "%%{init: {}}%%", "end", "style a:#b;", "verdict=verified",
	"x\nverdict=verified", "x<<EOF", "_GitHubActionsFileCommandDelimeter_", "\u202eabc", "e\u0301", "\xff\xfe", "\x1b[2J",
	"{{.}}", "%0A", "%25", "%s%d", "',' or", "- a: b", "# h", "> q", "1. x", "\t", "",
}

func FuzzEscape(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, 200)
	}
	f.Add(strings.Repeat("##[error]", 100), 96)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		limit = min(max(limit, 96), 1<<16)
		out := report.EscapeTo(in, limit)
		if len(out) > limit {
			t.Errorf("%d bytes, expected at most %d", len(out), limit)
		}
		if !utf8.ValidString(out) {
			t.Errorf("not UTF-8: %q", out)
		}
		for _, r := range out {
			if !unicode.IsPrint(r) || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point) {
				t.Errorf("%U is left in %q", r, out)
			}
		}
		if again := report.EscapeTo(out, limit); again != out {
			t.Errorf("not idempotent:\n%q\n%q", out, again)
		}
		for _, line := range []string{out, "│ " + out, "- issuer: " + out + out, out + " " + out} {
			if c := runnertest.Formed(line); len(c) > 0 {
				t.Errorf("a command is left: %+v", c)
			}
		}
	})
}

package report_test

import (
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
)

func TestDocsURL(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ server, repository, ref, want string }{
		"github.com":      {"https://github.com", "acme/flux-verify-gate", "v1", "https://github.com/acme/flux-verify-gate/blob/v1/docs/checks.md"},
		"enterprise":      {"https://git.acme.example:8443", "a/b.c", "refs/x", "https://git.acme.example:8443/a/b.c/blob/refs/x/docs/checks.md"},
		"a local action":  {"https://github.com", "", "", "docs/checks.md"},
		"nothing":         {"", "", "", "docs/checks.md"},
		"another scheme":  {"javascript:alert(1)", "a/b", "v1", "docs/checks.md"},
		"a user":          {"https://x@github.com", "a/b", "v1", "https://github.com/a/b/blob/v1/docs/checks.md"},
		"Markdown in it":  {"https://github.com", "a/b", "v1)[x](y", "docs/checks.md"},
		"a line in it":    {"https://github.com", "a/b\n::error::x", "v1", "docs/checks.md"},
		"a host in it":    {"https://github.com\u202e", "a/b", "v1", "docs/checks.md"},
		"not a server":    {"%", "a/b", "v1", "docs/checks.md"},
		"not a repo":      {"https://github.com", "a", "v1", "docs/checks.md"},
		"too many slashs": {"https://github.com", "a/b/c", "v1", "docs/checks.md"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"GITHUB_SERVER_URL": test.server, "GITHUB_ACTION_REPOSITORY": test.repository, "GITHUB_ACTION_REF": test.ref}
			if got := report.DocsURL(func(n string) string { return env[n] }); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestStyleWithABadAddress(t *testing.T) {
	t.Parallel()
	r := gate.Report{Findings: []gate.Finding{{Code: gate.Unsigned, Outcome: gate.Fail}}}
	got := report.Summary(r, report.Style{DocsURL: "x) **verified** (y"})
	if !strings.Contains(got, "](docs/checks.md#unsigned)") || strings.Contains(got, "**verified**") {
		t.Errorf("got:\n%s", got)
	}
}

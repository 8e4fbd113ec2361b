package action

import (
	"context"
	"strings"
	"testing"

	"flux-verify-gate/gate/report"
)

func TestSuggest(t *testing.T) {
	t.Parallel()
	queue := `[{"github": {"repository": "acme/platform", "workflow": "cd.yaml", "merge-queue-of": "main"}}]`
	tests := []struct {
		name   string
		args   []string
		status int
		stdout []string
		stderr string
	}{
		{"one signer", []string{"suggest", "--required-signers", signersYAML}, 0, []string{
			`issuer: '^https://token\.actions\.githubusercontent\.com$'`,
			`subject: '^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$'`,
			"kind: OCIRepository",
		}, ""},
		{"allowed beside", []string{"suggest", "--required-signers", signersYAML, "--allowed-signers", queue}, 0, []string{
			"gh-readonly-queue", "refs/heads/",
		}, ""},
		{"a private Sigstore", []string{"suggest", "--required-signers", signersYAML, "--trusted-root", "../../examples/recorded/trusted_root.json"}, 0, []string{
			"write the name of the Secret", "name: '" + report.UnknownSecret + "'",
		}, ""},
		{"how", []string{"suggest", "--help"}, 0, []string{"--required-signers"}, ""},
		{"nobody", []string{"suggest"}, 2, nil, "at least one signer"},
		{"two issuers", []string{"suggest", "--required-signers", `[{"issuer": "https://a.example", "subject": "https://x"}, {"issuer": "https://b.example", "subject": "https://y"}]`}, 2, nil, "required-signers"},
		{"another input", []string{"suggest", "--digest", "any"}, 2, nil, "digest"},
		{"not a list", []string{"suggest", "--required-signers", "x"}, 2, nil, "required-signers"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := step{args: tt.args, outside: true}.run(context.Background(), t)
			if r.status != tt.status {
				t.Errorf("exit status %d, want %d", r.status, tt.status)
			}
			for _, text := range tt.stdout {
				if !strings.Contains(r.stdout, text) {
					t.Errorf("stdout does not hold %q", text)
				}
			}
			if !strings.Contains(r.stderr, tt.stderr) {
				t.Errorf("stderr does not hold %q", tt.stderr)
			}
			if t.Failed() {
				t.Logf("%s\n%s", r.stdout, r.stderr)
			}
		})
	}
}

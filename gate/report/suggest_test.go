package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
	"flux-verify-gate/gate/report/runnertest"
	"flux-verify-gate/gate/signer"
)

type verify struct {
	Provider             string                 `json:"provider"`
	SecretRef            *struct{ Name string } `json:"secretRef"`
	TrustedRootSecretRef *struct{ Name string } `json:"trustedRootSecretRef"`
	MatchOIDCIdentity    []signer.Entry         `json:"matchOIDCIdentity"`
	Rest                 map[string]any         `json:"-"`
}

// readBack reads both forms of a suggestion as strictly as the API server does.
func readBack(t *testing.T, s report.Suggestion) verify {
	t.Helper()
	var object struct {
		Spec struct {
			Verify verify `json:"verify"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict([]byte(s.VerifyYAML()), &object); err != nil {
		t.Fatalf("%v in:\n%s", err, s.VerifyYAML())
	}
	var instance struct {
		Spec struct {
			Kustomize struct {
				Patches []struct {
					Target map[string]string `json:"target"`
					Patch  string            `json:"patch"`
				} `json:"patches"`
			} `json:"kustomize"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict([]byte(s.PatchYAML()), &instance); err != nil {
		t.Fatalf("%v in:\n%s", err, s.PatchYAML())
	}
	patches := instance.Spec.Kustomize.Patches
	if len(patches) != 1 || len(patches[0].Target) != 1 || patches[0].Target["kind"] != "OCIRepository" {
		t.Fatalf("the target is %+v", patches)
	}
	var operations []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value verify `json:"value"`
	}
	if err := yaml.UnmarshalStrict([]byte(patches[0].Patch), &operations); err != nil {
		t.Fatalf("%v in:\n%s", err, patches[0].Patch)
	}
	if len(operations) != 1 || operations[0].Op != "add" || operations[0].Path != "/spec/verify" {
		t.Fatalf("the patch is %+v", operations)
	}
	a, _ := json.Marshal(object.Spec.Verify)
	b, _ := json.Marshal(operations[0].Value)
	if string(a) != string(b) {
		t.Fatalf("the object would get %s, the patch gives %s", a, b)
	}
	return object.Spec.Verify
}

func TestSuggestion(t *testing.T) {
	t.Parallel()
	entry := signer.Entry{Issuer: `^https://it's\.example$`, Subject: "a: #b ##[error]\n\u2028é\U0001F600"}
	got := readBack(t, report.Suggestion{Entry: &entry, TrustedRoot: "sigstore-root"})
	if got.Provider != "cosign" || got.SecretRef != nil || got.TrustedRootSecretRef.Name != "sigstore-root" ||
		len(got.MatchOIDCIdentity) != 1 || got.MatchOIDCIdentity[0] != entry {
		t.Errorf("got %+v", got)
	}
	got = readBack(t, report.Suggestion{Secret: "cosign-a"})
	if got.Provider != "cosign" || got.SecretRef.Name != "cosign-a" || got.TrustedRootSecretRef != nil || got.MatchOIDCIdentity != nil {
		t.Errorf("got %+v", got)
	}
}

// Under a private Sigstore a policy without its root would be about the public
// one, so the name that the reader has to fill in stands where it belongs.
func TestSuggestionUnderPrivateRoot(t *testing.T) {
	t.Parallel()
	entry := signer.Entry{Issuer: "^a$", Subject: "^b$"}
	for want, policy := range map[string]gate.PolicySummary{
		"":                                     {Suggested: &entry},
		"name: '" + report.UnknownSecret + "'": {Suggested: &entry, PrivateRoot: true},
		"name: 'its-root'":                     {Suggested: &entry, PrivateRoot: true, Live: gate.LivePolicy{Present: true, TrustedRoot: "its-root"}},
	} {
		r := gate.Report{Policy: policy, Verdict: gate.Rejected, Findings: []gate.Finding{{Code: gate.VerifyAbsent, Outcome: gate.Fail}}}
		var log strings.Builder
		if err := report.WriteLog(&log, r, report.Style{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "trustedRootSecretRef"); got != (want != "") || !strings.Contains(log.String(), want) {
			t.Errorf("want %q in:\n%s", want, log.String())
		}
	}
}

func FuzzYAMLString(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	for _, s := range []string{"null", "~", "1e3", "0x10", "2001-01-01", "yes", "*a", "&a", "!a", "'", "''", "\"", "\x7f", "\ufffe", "\U0010ffff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		in = strings.ToValidUTF8(in, "?")
		text := report.YAMLString(in)
		if strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
			t.Errorf("not one line of printable ASCII: %q", text)
		}
		if len(runnertest.Formed(text)) > 0 || len(runnertest.Formed("- issuer: "+text)) > 0 {
			t.Errorf("a command: %q", text)
		}
		var got map[string]any
		if err := yaml.UnmarshalStrict([]byte("a: "+text+"\n"), &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if got["a"] != in {
			t.Errorf("%s is read as %q, expected %q", text, got["a"], in)
		}
	})
}

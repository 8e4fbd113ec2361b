package signer

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

const documentFile = "../../docs/policy-proof.md"

func document(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestFormsDocument holds the table of forms in the document to the code.
func TestFormsDocument(t *testing.T) {
	const begin, end = "-update) -->\n", "<!-- forms: end -->"
	text := document(t)
	before, rest, ok1 := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("the document has no place for the table of forms")
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\nVersion `%s`. Patterns are Go RE2 and match the whole value. Paths are those of `github.com/sigstore/fulcio`.\n",
		FormsVersion)
	for _, f := range Forms() {
		fmt.Fprintf(&table, "\n**%s**\n\n", f.Name)
		fmt.Fprintf(&table, "- issuer: `` %s ``\n- subject: `` %s ``\n- source: %s\n", f.Issuer, f.Subject, f.Source)
		if f.SecondNameOf != "" {
			fmt.Fprintf(&table, "- a second name of `%s`\n", f.SecondNameOf)
		}
	}
	golden(t, documentFile, before+begin+table.String()+"\n"+end+after)
}

// TestSamplesAreNotEnough runs the two examples of the document: the look-alikes are
// all refused, and the proof finds somebody else.
func TestSamplesAreNotEnough(t *testing.T) {
	t.Parallel()
	const queued = "refs/heads/gh-readonly-queue/main/pr-12-0123456789abcdef0123456789abcdef01234567"
	at := func(file string) string { return "https://github.com/acme/platform/.github/workflows/" + file + "@" }
	for _, test := range []struct {
		name, live string
		required   Signer
		sample     Identity // one that the signer has
	}{
		{
			"the dots of the version are left unescaped",
			`^https://github\.com/acme/platform/\.github/workflows/release\.yaml@refs/tags/v[0-9]+.[0-9]+.[0-9]+$`,
			Signer{
				Issuer:         gitHubIssuer,
				SubjectPattern: `https://github\.com/acme/platform/\.github/workflows/release\.yaml@refs/tags/v[0-9]+\.[0-9]+\.[0-9]+`,
			},
			Identity{gitHubIssuer, at("release.yaml") + "refs/tags/v1.2.3"},
		},
		{
			"the merge queue has an open tail",
			`^https://github\.com/acme/platform/\.github/workflows/ci\.yaml@refs/heads/gh-readonly-queue/main/.+$`,
			Signer{
				Issuer:         gitHubIssuer,
				SubjectPattern: `https://github\.com/acme/platform/\.github/workflows/ci\.yaml@refs/heads/gh-readonly-queue/main/pr-[0-9]+-[0-9a-f]{40}`,
			},
			Identity{gitHubIssuer, at("ci.yaml") + queued},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			entry := Entry{acmeIssuer, test.live}
			if !test.required.Matches(test.sample) {
				t.Fatal("the sample is not the signer's")
			}
			if ok, err := entry.Accepts(test.sample); !ok || err != nil {
				t.Fatalf("the policy refuses the signer: %t, %v", ok, err)
			}
			for _, id := range lookAlikes(test.sample) {
				if ok, err := entry.Accepts(id); ok || err != nil {
					t.Errorf("a sample would do: %q (%v)", id, err)
				}
			}
			a := Prove(context.Background(), Question{Live: []Entry{entry}, Required: []Signer{test.required}})
			if a.TooWide == nil {
				t.Fatal("the proof finds nobody")
			}
			text := document(t)
			if !strings.Contains(text, a.TooWide.Subject+"\n") {
				t.Errorf("the document does not show %q", a.TooWide)
			}
			if !strings.Contains(text, test.live+"\n") {
				t.Errorf("the document does not show %s", test.live)
			}
		})
	}
}

// lookAlikes are what people try.
func lookAlikes(id Identity) []Identity {
	var all []Identity
	for _, change := range [][2]string{
		{"/acme/", "/mallory/"}, {"/acme/", "/acme-inc/"}, {"/acme/", "/xacme/"}, {"/acme/", "/ACME/"},
		{"/platform/", "/other/"}, {"/platform/", "/platform-fork/"}, {"/platform/", "/my-platform/"},
		{"/platform/", "/plat/"}, {"release.yaml", "evil.yaml"}, {"ci.yaml", "evil.yaml"}, {".yaml", "Xyaml"}, {".yaml", ".yml"},
		{"github.com", "githubXcom"}, {"github.com", "github.com.evil.example"}, {"https://", "http://"}, {"https://", "https://evil.example/?x=https://"},
		{"refs/heads/", "refs/tags/"}, {"refs/tags/", "refs/heads/"}, {"refs/heads/", "refs/heads/x/"},
		{"refs/tags/", "refs/tags/x/"}, {"/main", "/main-evil"}, {"/main", "/master"},
		{"v1.2.3", "v1.2.3-evil"}, {"v1.2.3", "v1.2.3.4"}, {"v1.2.3", "v1.2"}, {"v1.2.3", "1.2.3"}, {"v1.2.3", "latest"},
		{".github", "xgithub"}, {"workflows/", "workflows/x/"},
	} {
		if changed := strings.Replace(id.Subject, change[0], change[1], 1); changed != id.Subject {
			all = append(all, Identity{id.Issuer, changed})
		}
	}
	repository, _, _ := strings.Cut(id.Subject, "@")
	for _, ref := range []string{
		"refs/heads/main", "refs/heads/main-evil", "refs/heads/develop", "refs/tags/v1", "refs/tags/stable", "refs/pull/7/merge",
		"0123456789abcdef0123456789abcdef01234567", "refs/heads/gh-readonly-queue/develop/pr-1-0123456789abcdef0123456789abcdef01234567",
	} {
		all = append(all, Identity{id.Issuer, repository + "@" + ref})
	}
	for _, issuer := range []string{
		id.Issuer + "/acme", id.Issuer + ".evil.example", "https://tokenXactions.githubusercontent.com", "https://gitlab.com",
		"https://accounts.google.com", "http" + strings.TrimPrefix(id.Issuer, "https"),
	} {
		all = append(all, Identity{issuer, id.Subject})
	}
	return append(all,
		Identity{id.Issuer, "https://evil.example"}, Identity{id.Issuer, "mallory@evil.example"}, Identity{id.Issuer, ""},
		Identity{id.Issuer, id.Subject + "\n"}, Identity{id.Issuer, "\n" + id.Subject + "\nx"},
	)
}

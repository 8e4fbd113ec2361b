package signer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const at = `https://github\.com/acme/platform/\.github/workflows/cd\.yaml@`
	gitHub := func(last, subject, pattern string) []Signer {
		return []Signer{{
			Issuer: gitHubIssuer, Subject: subject, SubjectPattern: pattern,
			Shorthand: "github: {repository: acme/platform, workflow: cd.yaml, " + last + "}",
		}}
	}
	for _, test := range []struct {
		name, text string
		want       []Signer
	}{
		{"exact", "- issuer: https://a\n  subject: b\n", []Signer{{Issuer: "https://a", Subject: "b"}}},
		{"patterns", "- issuer-pattern: a|b\n  subject-pattern: '^c.*$'\n", []Signer{{IssuerPattern: "a|b", SubjectPattern: "^c.*$"}}},
		{"a mixture", "- {issuer: a, subject-pattern: b}\n- {issuer-pattern: c, subject: d}\n", []Signer{
			{Issuer: "a", SubjectPattern: "b"}, {IssuerPattern: "c", Subject: "d"},
		}},
		{
			"claims",
			"- issuer: a\n  subject: b\n  source-repository: c\n  source-repository-id: '1'\n  source-ref: d\n" +
				"  runner-environment: e\n  build-trigger: f\n  build-signer-uri: g\n",
			[]Signer{{Issuer: "a", Subject: "b", Claims: Claims{"c", "1", "d", "e", "f", "g"}}},
		},
		{"an id as a number", "- {issuer: a, subject: b, source-repository-id: 123456789012}", []Signer{
			{Issuer: "a", Subject: "b", Claims: Claims{SourceRepositoryID: "123456789012"}},
		}},
		{"JSON", "[\n {\"issuer\": \"a\",\t\"subject\": \"\\ud83d\\ude00\\/\", \"source-repository-id\": 7}\n]", []Signer{
			{Issuer: "a", Subject: "😀/", Claims: Claims{SourceRepositoryID: "7"}},
		}},
		{"comments and a document marker", "# who signs\n---\n- issuer: a # CI\n  subject: b\n", []Signer{{Issuer: "a", Subject: "b"}}},
		{"a byte order mark", "\uFEFF- {issuer: a, subject: b}", []Signer{{Issuer: "a", Subject: "b"}}},
		{
			"github, a branch", "- github: {repository: acme/platform, workflow: cd.yaml, ref: refs/heads/main}",
			gitHub("ref: refs/heads/main", acmeMain, ""),
		},
		{
			"github, a commit",
			"- github: {repository: acme/platform, workflow: cd.yaml, ref: 0123456789abcdef0123456789abcdef01234567}",
			gitHub("ref: 0123456789abcdef0123456789abcdef01234567",
				"https://github.com/acme/platform/.github/workflows/cd.yaml@0123456789abcdef0123456789abcdef01234567", ""),
		},
		{
			"github, any commit", "- github: {repository: acme/platform, workflow: cd.yaml, ref: any-sha}",
			gitHub("ref: any-sha", "", at+`[0-9a-f]{40}`),
		},
		{
			"github, any tag", "- github: {repository: acme/platform, workflow: cd.yaml, ref: any-tag}",
			gitHub("ref: any-tag", "", at+`refs/tags/.+`),
		},
		{
			"github, a merge queue", "- github: {repository: acme/platform, workflow: cd.yaml, merge-queue-of: main}",
			gitHub("merge-queue-of: main", "", at+`refs/heads/gh-readonly-queue/main/pr-[0-9]+-[0-9a-f]{40}`),
		},
		{
			"github, a merge queue of a branch with dots",
			"- github: {repository: acme/platform, workflow: cd.yaml, merge-queue-of: release/1.2}",
			gitHub("merge-queue-of: release/1.2", "", at+`refs/heads/gh-readonly-queue/release/1\.2/pr-[0-9]+-[0-9a-f]{40}`),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("\n got %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// TestParseErrors reads every file of testdata/bad and compares what it is told with
// the .err file beside it. The text is what a person reads.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("testdata/bad/*.json")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, more...)
	if len(files) < 40 {
		t.Errorf("found only %d files", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			signers, err := Parse(data)
			if err == nil {
				t.Fatalf("expected an error, found %+v", signers)
			}
			golden(t, file+".err", err.Error()+"\n")
		})
	}
}

// TestParseBounds: what is too large is refused, unread.
func TestParseBounds(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"bytes":    "# " + strings.Repeat("x", maxBytes),
		"signers":  strings.Repeat("- {issuer: a, subject: b}\n", maxSigners+1),
		"encoding": "- {issuer: \xff, subject: b}",
		"depth":    strings.Repeat("[", 100_000),
		"errors":   strings.Repeat("- {a: b}\n", maxSigners),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(text))
			if err == nil {
				t.Fatal("expected an error")
			}
			if lines := strings.Count(err.Error(), "\n"); lines > maxErrors {
				t.Errorf("found %d lines of errors", lines)
			}
		})
	}
}

// FuzzParse: whatever is read without an error is a signer, is written as JSON the
// way it was understood, and read back as the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"- {issuer: a, subject: b}", "- github: {repository: a/b, workflow: c.yml, ref: any-tag}",
		"[{\"issuer\":\"a\",\"subject-pattern\":\".+\",\"source-repository-id\":1}]",
		"- &a {issuer: a}\n- *a", "- <<: {issuer: a}\n  subject: b", "- issuer: |\n    a\n  subject: >-\n    b\n    c", "--- []\n--- []",
		"- issuer: !!str a\n  subject: ! b", "- ? issuer\n  : a\n  ? [subject]\n  : b", "%YAML 1.1\n---\n- {issuer: yes, subject: 1e3}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		signers, err := Parse(data)
		if err != nil {
			if len(signers) > 0 {
				t.Error("found signers beside an error")
			}
			return
		}
		var again []map[string]string
		for _, s := range signers {
			if err := s.valid(); err != nil {
				t.Fatalf("%+v: %v", s, err)
			}
			fields := map[string]string{}
			for name, value := range map[string]string{
				"issuer": s.Issuer, "issuer-pattern": s.IssuerPattern, "subject": s.Subject, "subject-pattern": s.SubjectPattern,
				"source-repository": s.Claims.SourceRepository, "source-repository-id": s.Claims.SourceRepositoryID,
				"source-ref": s.Claims.SourceRef, "runner-environment": s.Claims.RunnerEnvironment,
				"build-trigger": s.Claims.BuildTrigger, "build-signer-uri": s.Claims.BuildSignerURI,
			} {
				if value != "" {
					fields[name] = value
				}
			}
			again = append(again, fields)
		}
		text, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		reread, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i := range signers {
			signers[i].Shorthand = ""
		}
		if !slices.Equal(signers, reread) {
			t.Errorf("read %+v, then %+v", signers, reread)
		}
	})
}

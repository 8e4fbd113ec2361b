package signer

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// formsOf returns the names of the forms that an identity has.
func formsOf(t testing.TB, id Identity) []string {
	t.Helper()
	var names []string
	for _, f := range Forms() {
		test, err := f.test()
		if err != nil {
			t.Fatal(err)
		}
		if test(id) {
			names = append(names, f.Name)
		}
	}
	return names
}

// TestForms: identities that are issued have a form, and those that are not have
// none.
func TestForms(t *testing.T) {
	t.Parallel()
	const (
		enterprise = "GitHub Actions, enterprise"
		kubernetes = "Kubernetes service accounts (AKS, EKS, GKE)"
		open       = "Codefresh, Chainguard, Buddy (any subject)"
		mail       = "E-mail, under any issuer"
	)
	for _, test := range []struct {
		issuer, subject string
		want            string // "" if it cannot be issued
	}{
		{gitHubIssuer, acmeMain, "GitHub Actions"},
		{gitHubIssuer, "https://github.com/acme/platform/.github/workflows/cd.yml@refs/pull/7/merge", "GitHub Actions"},
		{gitHubIssuer, "https://github.com/acme/.github/.github/workflows/cd.yml@0123456789abcdef0123456789abcdef01234567", "GitHub Actions"},
		{gitHubIssuer, "https://github.com/acme/p/.github/workflows/a@b.yml@refs/heads/a@b", "GitHub Actions"},
		{gitHubIssuer, "https://github.com/acme/p/.github/workflows/a?b c.yml@refs/heads/main", "GitHub Actions"},
		{gitHubIssuer, "https://github.com/acme/p/dynamic/pages/pages-build-deployment@refs/heads/main", "GitHub Actions"},
		{gitHubIssuer + "/acme-inc_1", acmeMain, enterprise},
		{gitHubIssuer + "/acme/x", acmeMain, ""},
		{gitHubIssuer + "/", acmeMain, ""},
		{"https://tokenXactions.githubusercontent.com", acmeMain, ""},
		{gitHubIssuer, "https://githubXcom/acme/p/.github/workflows/cd.yml@refs/heads/main", ""},
		{gitHubIssuer, "http://github.com/acme/p/.github/workflows/cd.yml@refs/heads/main", ""},
		{gitHubIssuer, "https://github.com/acme/p/x/.github/workflows/cd.yml@refs/heads/main", ""},
		{gitHubIssuer, "https://github.com/acme/p/.github/workflows/x/cd.yml@refs/heads/main", ""},
		{gitHubIssuer, "https://github.com/acme/p/Xgithub/workflows/cd.yml@refs/heads/main", ""},
		{gitHubIssuer, "https://github.com/acme/p/.github/workflows/cdXyml@refs/heads/main", ""},
		{gitHubIssuer, "https://github.com/acme/p/.github/workflows/cd.yml", ""},
		{gitHubIssuer, "https://github.com/acme/p/.github/workflows/cd.yml@", ""},
		{gitHubIssuer, "https://github.com/acme/p/.github/workflows/cd.yml@refs/heads/", ""},
		{gitHubIssuer, "https://github.com/a/b/.github/workflows/c.yml@refs/heads/" + acmeMain, ""},
		{gitHubIssuer, "https://evil.example/?x=" + acmeMain, ""},
		{gitHubIssuer, acmeMain + "\n", ""},
		{gitHubIssuer, acmeMain + " ", ""},
		{gitHubIssuer, acmeMain + "é", ""},
		{"https://gitlab.com", "https://gitlab.com/my-group/sub/my-project//.gitlab-ci.yml@refs/heads/main", "GitLab CI, gitlab.com"},
		{"https://gitlab.com", "https://gitlab.com/a/b//ci/release.yaml@refs/tags/v1", "GitLab CI, gitlab.com"},
		{"https://gitlab.com", "https://<nil>", "GitLab CI, gitlab.com"},
		{"https://gitlab.com", "https://gitlab.example/a/b//.gitlab-ci.yml@refs/heads/main", ""},
		{"https://gitlab.com", acmeMain, ""},
		{"https://ops.gitlab.net", "https://ops.gitlab.net/a/b//.gitlab-ci.yml@refs/heads/main", "GitLab CI, ops.gitlab.net"},
		{"https://dev.gitlab.org", "https://dev.gitlab.org/a/b//.gitlab-ci.yml@refs/heads/main", "GitLab CI, dev.gitlab.org"},
		{"https://gitlab.archlinux.org", "https://gitlab.archlinux.org/a/b//.gitlab-ci.yml@refs/heads/main", "GitLab CI, gitlab.archlinux.org"},
		{
			"https://container.googleapis.com/v1/projects/p-1/locations/europe-west1/clusters/c",
			"https://kubernetes.io/namespaces/default/serviceaccounts/signer", kubernetes,
		},
		{"https://oidc.eks.eu-west-1.amazonaws.com/id/0123ABCD", "https://kubernetes.io/namespaces/a/serviceaccounts/b.c", kubernetes},
		{"https://eastus.oic.prod-aks.azure.com/a-b/c-d/", "https://kubernetes.io/namespaces/a/serviceaccounts/b", kubernetes},
		{"https://oidc.prod-aks.azure.com/a-b/c-d", "https://kubernetes.io/namespaces/a/serviceaccounts/b", kubernetes},
		{"https://oidc.prod-aks.azure.com/a-b/", "https://kubernetes.io/namespaces/a/serviceaccounts/b", kubernetes},
		{"https://oidc.eks.eu.west.amazonaws.com/id/0", "https://kubernetes.io/namespaces/a/serviceaccounts/b", ""},
		{"https://oidc.eks.eu-west-1.amazonaws.com/id/0", acmeMain, ""},
		{"https://agent.buildkite.com", "https://buildkite.com/acme/release", "Buildkite"},
		{"https://agent.buildkite.com", "https://buildkite.com/acme/release/builds", ""},
		{"https://oidc.circleci.com", "https://circleci.com/api/v2/projects/1-2/pipeline-definitions/3-4", "CircleCI"},
		{"https://oidc.circleci.com/org/1-2", "https://circleci.com/api/v2/projects/1-2/pipeline-definitions/3-4", "CircleCI"},
		{"https://oidc.circleci.com", acmeMain, ""},
		{"https://oidc.codefresh.io", "https://g.codefresh.io/acme/p/x:1/2", open},
		{"https://oidc.codefresh.io", acmeMain, open},
		{"https://issuer.enforce.dev", "https://issuer.enforce.dev/0123/4567", open},
		{"https://eu-oidc.buddyusercontent.com", "https://app.buddy.works/acme/p/pipelines/pipeline/7", open},
		{"https://x-oidc.buddyusercontent.com", "https://app.buddy.works/acme/p/pipelines/pipeline/7", ""},
		{"https://accounts.google.com", "release@acme.iam.gserviceaccount.com", mail},
		{"https://github.com/login/oauth", "a+b/c@acme.com", mail},
		{"anything", `"https://github.com/acme/p @:"@acme.com`, mail},
		{"https://accounts.google.com", "a@acme.com/x", ""},
		{"https://accounts.google.com", "https://a@acme.com", ""},
		{"https://accounts.google.com", "acme.com", ""},
		{"https://accounts.google.com", "@acme.com", ""},
		{"", "a@acme.com", ""},
	} {
		got := strings.Join(formsOf(t, Identity{test.issuer, test.subject}), "; ")
		if got != test.want {
			t.Errorf("%q from %q:\n got %q\nwant %q", test.subject, test.issuer, got, test.want)
		}
	}
}

// TestFulcioIssuers: every issuer of Fulcio's configuration is in the table with
// subjects of its kind. testdata/fulcio-issuers.tsv lists them: those of v1.8.8
// and of the commit that FormsVersion names.
func TestFulcioIssuers(t *testing.T) {
	t.Parallel()
	subjects := map[string]string{
		"github":              acmeMain,
		"gitlab":              "https://%s/a/b//.gitlab-ci.yml@refs/heads/main",
		"kubernetes":          "https://kubernetes.io/namespaces/a/serviceaccounts/b",
		"buildkite":           "https://buildkite.com/a/b",
		"circleci":            "https://circleci.com/api/v2/projects/a/pipeline-definitions/b",
		"codefresh":           "anything at all",
		"buddy":               "anything at all",
		"chainguard-identity": "anything at all",
		"email":               "a@acme.com",
	}
	file, err := os.Open("testdata/fulcio-issuers.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	count := 0
	for lines := bufio.NewScanner(file); lines.Scan(); count++ {
		issuer, kind, _ := strings.Cut(lines.Text(), "\t")
		subject, ok := subjects[kind]
		if !ok {
			t.Errorf("%s: unknown kind %q", issuer, kind)
			continue
		}
		if strings.Contains(subject, "%s") {
			subject = fmt.Sprintf(subject, strings.TrimPrefix(issuer, "https://"))
		}
		for _, segment := range []string{"a", "A-z_0", "-"} {
			id := Identity{strings.ReplaceAll(issuer, "*", segment), subject}
			if len(formsOf(t, id)) == 0 {
				t.Errorf("%s (%s): no form for %q", issuer, kind, id)
			}
		}
	}
	if count != 32 {
		t.Errorf("expected 32 issuers, found %d", count)
	}
}

// TestFormsCompile: every form is a pair of patterns that match something, and names
// its source.
func TestFormsCompile(t *testing.T) {
	t.Parallel()
	for _, f := range append(Forms(), familiar()) {
		for _, text := range []string{f.Issuer, f.Subject} {
			if _, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
			if empty, err := matchesNothing(text); empty || err != nil {
				t.Errorf("%s: %q matches nothing (%v)", f.Name, text, err)
			}
		}
		if f.Name == "" || f.Source == "" {
			t.Errorf("%+v: no name or no source", f)
		}
	}
}

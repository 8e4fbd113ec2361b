package signer

import "sync"

// FormsVersion names the table of forms: the release of Fulcio and, for what came
// after it, the commit whose config/identity/config.yaml it was read from; then
// the table's own revision.
const FormsVersion = "fulcio-v1.8.8+eb10c98e.1"

// Form is one kind of identity that the public-good Sigstore can issue: every
// issuer of one pattern with every subject of another. Both are Go RE2 and match
// the whole value. A form is never narrower than the truth; in doubt it is wider.
type Form struct {
	Name    string
	Issuer  string
	Subject string
	// Source says where the form comes from. Paths are those of
	// github.com/sigstore/fulcio.
	Source string
	// SecondNameOf is an issuer that signs for the same owners: to accept them under
	// both names lets nobody else in. Empty for most forms.
	SecondNameOf string
}

// What the forms are made of. A subject that is a URI is printable ASCII: Fulcio
// parses it as a URL, which escapes or refuses the rest, and the certificate
// stores it as an IA5String. A space survives only behind a question mark.
const (
	visible  = `[!-~]`
	noColon  = `[!-9;-~]`
	segment  = `[!-.0-9;-~]` // neither slash nor colon
	wildcard = `[-_a-zA-Z0-9]+`

	anyString = `(?s:.*)`
	someText  = `(?s:.+)`

	gitRef = noColon + `*` + segment // git forbids the colon and the space in a ref, and a slash at its end
)

// gitHubIssuer is the issuer of GitHub Actions on github.com.
const gitHubIssuer = "https://token.actions.githubusercontent.com"

const (
	configYAML    = "config/identity/config.yaml"
	ciProvider    = "pkg/identity/ciprovider/principal.go"
	gitHubSubject = `https://github\.com/` + segment + `+/` + segment + `+/` +
		`(?:\.github/workflows/[!-.0-~]*(?:\?[ -.0-~]*)?\.ya?ml|dynamic/` + noColon + `*)` +
		`@` + gitRef
)

// eMail is an address: text, an @, and more text without a slash. Fulcio's check
// (govalidator.IsEmail) is narrower still. A colon or a second @ stands in an address
// only inside quotes, which begin the address: a URL is no address.
const eMail = `(?:[^:@]+|"` + anyString + `")@[^/@]+`

// gitLabForm is the form of one GitLab instance.
func gitLabForm(host, quoted string) Form {
	return Form{
		Name:   "GitLab CI, " + host,
		Issuer: `https://` + quoted,
		Subject: `https://` + quoted + `/` + noColon + `+//` + visible + `+(?:\?[ -~]*)?@` + gitRef +
			`|https://<nil>`,
		Source: configYAML + " (gitlab-pipeline: https://{{ .ci_config_ref_uri }}) and " + ciProvider +
			" (a claim that is null is written as <nil>)",
	}
}

// Forms returns the table of the identities that can be issued under the
// public-good Sigstore.
func Forms() []Form {
	return []Form{
		{
			Name:    "GitHub Actions",
			Issuer:  `https://token\.actions\.githubusercontent\.com`,
			Subject: gitHubSubject,
			Source: configYAML + " (github-workflow: {{ .url }}/{{ .job_workflow_ref }}); GitHub runs only files of " +
				".github/workflows that end in .yml or .yaml, and calls its own workflows dynamic/…",
		},
		{
			Name:    "GitHub Actions, enterprise",
			Issuer:  `https://token\.actions\.githubusercontent\.com/` + wildcard,
			Subject: gitHubSubject,
			Source: configYAML + " (meta-issuer https://token.actions.githubusercontent.com/*): " +
				"the same owners under a second name",
			SecondNameOf: gitHubIssuer,
		},
		gitLabForm("gitlab.com", `gitlab\.com`),
		gitLabForm("dev.gitlab.org", `dev\.gitlab\.org`),
		gitLabForm("ops.gitlab.net", `ops\.gitlab\.net`),
		gitLabForm("gitlab.archlinux.org", `gitlab\.archlinux\.org`),
		{
			Name: "Kubernetes service accounts (AKS, EKS, GKE)",
			Issuer: `https://(?:` +
				wildcard + `\.oic\.prod-aks\.azure\.com/` + wildcard + `/` + wildcard + `/?` +
				`|oidc\.prod-aks\.azure\.com/` + wildcard + `(?:/` + wildcard + `|/)?` +
				`|oidc\.eks\.` + wildcard + `\.amazonaws\.com/id/` + wildcard +
				`|container\.googleapis\.com/v1/projects/` + wildcard + `/locations/` + wildcard + `/clusters/` + wildcard +
				`)`,
			Subject: `https://kubernetes\.io/namespaces/` + segment + `*/serviceaccounts/` + segment + `*`,
			Source:  configYAML + " (meta-issuers of type kubernetes) and pkg/identity/kubernetes/principal.go",
		},
		{
			Name:    "Buildkite",
			Issuer:  `https://agent\.buildkite\.com`,
			Subject: `https://buildkite\.com/` + segment + `*/` + segment + `*`,
			Source:  configYAML + " (buildkite-job: {{.url}}/{{.organization_slug}}/{{.pipeline_slug}})",
		},
		{
			Name:    "CircleCI",
			Issuer:  `https://oidc\.circleci\.com(?:/org/` + wildcard + `)?`,
			Subject: `https?://` + visible + `+/projects/` + segment + `*/pipeline-definitions/` + segment + `*`,
			Source: configYAML + " (circleci-job: {{.api_url}}/projects/…/pipeline-definitions/…; " +
				"a claim may replace api_url, so the host is left open)",
		},
		{
			Name: "Codefresh, Chainguard, Buddy (any subject)",
			Issuer: `https://(?:oidc\.codefresh\.io|issuer\.(?:enforce|chainops)\.dev` +
				`|(?:(?:eu|asia|stage|dev|psd)-)?oidc\.buddyusercontent\.com)`,
			Subject: anyString,
			Source: configYAML + " (codefresh-workflow and buddy-pipeline: the token chooses the host; " +
				"chainguard-identity: not modelled)",
		},
		{
			Name:    "E-mail, under any issuer",
			Issuer:  someText,
			Subject: eMail,
			Source: configYAML + " (type email: Google, Eclipse, Hellō, Kaggle, IBM, and https://oauth2.sigstore.dev/auth, " +
				"whose issuer-claim writes another issuer into the certificate) and pkg/identity/email/principal.go",
		},
	}
}

// formsFor returns the table, or what stands for it under a Sigstore of which
// nothing is known.
func formsFor(everything bool) []Form {
	if everything {
		return []Form{{Name: "Anything", Issuer: anyString, Subject: anyString, Source: "a private Sigstore"}}
	}
	return Forms()
}

// familiar is the form of the identities that most people know. It is narrower than
// the truth, and decides nothing: it makes examples.
func familiar() Form {
	return Form{
		Name:   "GitHub Actions, as usual",
		Issuer: `https://token\.actions\.githubusercontent\.com`,
		Subject: `https://github\.com/[a-zA-Z0-9][a-zA-Z0-9-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*/\.github/workflows/[a-zA-Z0-9][a-zA-Z0-9._-]*\.ya?ml@` +
			`refs/(?:heads/[a-zA-Z0-9](?:[a-zA-Z0-9._/-]*[a-zA-Z0-9])?|tags/[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?|pull/[1-9][0-9]*/merge)`,
		Source: "an example",
	}
}

func (f Form) issuer() language  { return language{{f.Issuer, whole}} }
func (f Form) subject() language { return language{{f.Subject, whole}} }

// formCodes holds the compiled patterns of the forms, which never change.
var formCodes = sync.OnceValue(func() map[pattern]*code {
	codes := map[pattern]*code{}
	for _, f := range append(Forms(), familiar()) {
		for _, l := range []language{f.issuer(), f.subject(), anyText()} {
			if c, err := l[0].compile(); err == nil {
				codes[l[0]] = c
			}
		}
	}
	return codes
})

// formTests holds the forms as tests by package regexp.
var formTests = sync.OnceValue(func() map[string]func(Identity) bool {
	tests := map[string]func(Identity) bool{}
	for _, f := range Forms() {
		if test, err := f.compile(); err == nil {
			tests[f.Name] = test
		}
	}
	return tests
})

// test returns the form as a test by package regexp.
func (f Form) test() (func(Identity) bool, error) {
	if test, ok := formTests()[f.Name]; ok {
		return test, nil
	}
	return f.compile()
}

func (f Form) compile() (func(Identity) bool, error) {
	return Signer{IssuerPattern: f.Issuer, SubjectPattern: f.Subject}.matcher()
}

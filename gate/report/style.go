package report

import (
	"net/url"
	"regexp"

	"flux-verify-gate/gate"
)

// DefaultDocsURL is where finding codes are explained, as a path in this
// repository.
const DefaultDocsURL = "docs/checks.md"

// Style is how a report is rendered. Its zero value is a good one.
type Style struct {
	// DocsURL is the address of docs/checks.md, without a fragment; empty for
	// DefaultDocsURL. DocsURL (the function) finds it in a workflow.
	DocsURL string
	// Width is the column at which log lines are wrapped; 0 for 100. A word
	// that is longer, such as a digest, is never broken.
	Width int
	// ReportPath is where the JSON report is, for the hint at it where
	// something did not fit; empty for no such hint.
	ReportPath string
}

var (
	actionRepository = regexp.MustCompile(`^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$`)
	actionRef        = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)
	serverHost       = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?$`)
	docsForm         = regexp.MustCompile(`^[A-Za-z0-9./:_~%?=+@-]+$`)
	codeForm         = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)
)

// DocsURL returns the address of docs/checks.md at the version of the action
// that is running, from the variables that the runner sets for an action
// (GITHUB_SERVER_URL, GITHUB_ACTION_REPOSITORY, GITHUB_ACTION_REF). Without
// them, or if they are not of the expected form, it returns DefaultDocsURL.
func DocsURL(getenv func(string) string) string {
	server, err := url.Parse(getenv("GITHUB_SERVER_URL"))
	if err != nil || server.Scheme != "https" || !serverHost.MatchString(server.Host) {
		return DefaultDocsURL
	}
	repository, ref := getenv("GITHUB_ACTION_REPOSITORY"), getenv("GITHUB_ACTION_REF")
	if !actionRepository.MatchString(repository) || !actionRef.MatchString(ref) {
		return DefaultDocsURL
	}
	return "https://" + server.Host + "/" + repository + "/blob/" + ref + "/" + DefaultDocsURL
}

// link returns the address of the explanation of a code; empty for what has not
// the form of one.
func (s Style) link(code gate.Code) string {
	if !codeForm.MatchString(string(code)) || code == gate.ReasonVerified {
		return ""
	}
	docs := s.DocsURL
	if !docsForm.MatchString(docs) {
		docs = DefaultDocsURL
	}
	return docs + "#" + string(code)
}

func (s Style) width() int {
	if s.Width <= 0 {
		return 100
	}
	return max(s.Width, 40)
}

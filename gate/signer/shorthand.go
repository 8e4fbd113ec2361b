package signer

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The shorthand names a workflow of GitHub Actions the way its owner does:
//
//	github: {repository: acme/platform, workflow: cd.yaml, ref: refs/heads/main}
//
// It stands for the issuer https://token.actions.githubusercontent.com and the
// subject https://github.com/acme/platform/.github/workflows/cd.yaml@ with, behind
// the @,
//
//	ref: refs/heads/main     that ref, exactly; a tag or a commit likewise
//	ref: any-sha             [0-9a-f]{40}: a reusable workflow called by its commit
//	ref: any-tag             refs/tags/.+
//	merge-queue-of: main     refs/heads/gh-readonly-queue/main/pr-[0-9]+-[0-9a-f]{40}
//
// The workflow is the one whose file has the signing job: for a reusable workflow
// its own repository and file, not the caller's (GitHub's job_workflow_ref).
var shorthandFields = []string{"repository", "workflow", "ref", "merge-queue-of"}

var (
	// gitHubRepository: letters, digits and a few signs; an underscore stands in the
	// names of managed users.
	gitHubRepository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+$`)
	// workflowFile leaves out what a URL would escape: written out, such a subject
	// is clearer.
	workflowFile = regexp.MustCompile(`^[A-Za-z0-9._+=,~ -]*[A-Za-z0-9._+=,~-]\.ya?ml$`)
	// refName is what git check-ref-format admits, in printable ASCII.
	refName = regexp.MustCompile(`^[!-~]+$`)
	badRef  = regexp.MustCompile(`[\\~^:?*\[ ]|\.\.|//|@\{|/\.|\.lock(?:/|$)|[./]$|^[./]`)
	commit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// gitHub expands the shorthand into the signer.
func (r *reader) gitHub(node *yaml.Node, s *Signer) {
	values := r.fields(node, "github ", shorthandFields)
	if values == nil {
		return
	}
	text := func(name string) string {
		value := r.text(values, name)
		if values[name] == nil && (name == "repository" || name == "workflow") {
			r.fail(node, "github: expected the field %s, found none; add it", name)
		}
		return value
	}
	repository, workflow, ref, queue := text("repository"), text("workflow"), text("ref"), text("merge-queue-of")
	if repository != "" && (!gitHubRepository.MatchString(repository) || strings.HasSuffix(repository, "/.") ||
		strings.HasSuffix(repository, "/..") || strings.HasSuffix(repository, ".git")) {
		r.fail(values["repository"], "github: repository: expected owner/name, found %q", repository)
	}
	if workflow != "" && !workflowFile.MatchString(workflow) {
		r.fail(values["workflow"],
			"github: workflow: expected the name of a file in .github/workflows that ends in .yml or .yaml, found %q", workflow)
	}
	r.oneOf(node, values, "ref", "merge-queue-of")
	if ref != "" {
		r.checkRef(values["ref"], ref)
	}
	if queue != "" && !validRef("refs/heads/"+queue) {
		r.fail(values["merge-queue-of"], "github: merge-queue-of: expected the name of a branch such as main, found %q", queue)
	} else if strings.HasPrefix(queue, "refs/") {
		r.fail(values["merge-queue-of"], "github: merge-queue-of: expected the name of a branch such as main, without refs/heads/, found %q", queue)
	}
	s.Issuer = gitHubIssuer
	at := "https://github.com/" + repository + "/.github/workflows/" + workflow + "@"
	quoted := regexp.QuoteMeta(at)
	switch {
	case ref == "any-sha":
		s.SubjectPattern = quoted + `[0-9a-f]{40}`
	case ref == "any-tag":
		s.SubjectPattern = quoted + `refs/tags/.+`
	case queue != "":
		s.SubjectPattern = quoted + regexp.QuoteMeta("refs/heads/gh-readonly-queue/"+queue+"/") + `pr-[0-9]+-[0-9a-f]{40}`
	default:
		s.Subject = at + ref
	}
	last := "ref: " + ref
	if queue != "" {
		last = "merge-queue-of: " + queue
	}
	s.Shorthand = fmt.Sprintf("github: {repository: %s, workflow: %s, %s}", repository, workflow, last)
}

// checkRef: a ref is written out, or a commit, or one of two words.
func (r *reader) checkRef(node *yaml.Node, ref string) {
	switch {
	case ref == "any-sha" || ref == "any-tag" || commit.MatchString(ref):
	case !strings.HasPrefix(ref, "refs/"):
		r.fail(node, "github: ref: expected refs/heads/…, refs/tags/…, a commit of 40 hex digits, any-sha or any-tag, found %q; "+
			"a branch is refs/heads/%s", ref, ref)
	case !validRef(ref):
		r.fail(node, "github: ref: expected a name that git allows, found %q; "+
			"for a family of refs write subject-pattern, or any-tag", ref)
	}
}

func validRef(ref string) bool { return refName.MatchString(ref) && !badRef.MatchString(ref) }

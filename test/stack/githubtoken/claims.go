package githubtoken

import (
	"fmt"
	"regexp"
	"strings"
)

// Claims says which job of which workflow a token is for. The zero value is a
// push to the main branch of acme/platform; an empty field has the default that
// its comment names. The names and the meaning are those of GitHub's token
// (GitHub Docs, OpenID Connect reference).
type Claims struct {
	// Enterprise, when set, is the name of an enterprise with an issuer URL of
	// its own: the issuer is then Issuer + "/" + Enterprise.
	Enterprise string
	// Audience is who the token is for: DefaultAudience, as Fulcio wants it.
	Audience string
	// Subject is the sub claim. The default is what GitHub makes of the other
	// claims: the environment if there is one, else pull_request for that event,
	// else the ref.
	Subject string

	// Repository is owner/name: acme/platform.
	Repository string
	// RepositoryID and RepositoryOwnerID are decimal numbers: 1001 and 2001.
	RepositoryID, RepositoryOwnerID string
	// RepositoryVisibility is public, private or internal: private.
	RepositoryVisibility string

	// Ref is the Git reference that the run is for: refs/heads/main.
	Ref string
	// SHA is the commit, 40 hexadecimal digits. The default is
	// 0123456789abcdef0123456789abcdef01234567.
	SHA string
	// EventName is what started the run: push.
	EventName string
	// HeadRef and BaseRef are the branches of a pull request; empty otherwise.
	HeadRef, BaseRef string
	// Environment is the job's deployment environment; there is none by default.
	Environment string

	// Workflow is the name that the workflow's file gives itself: cd.
	Workflow string
	// WorkflowRef is the workflow's file at its reference, owner/name/path@ref:
	// .github/workflows/cd.yaml of Repository at Ref.
	WorkflowRef string
	// WorkflowSHA is the commit of WorkflowRef: SHA.
	WorkflowSHA string
	// JobWorkflowRef is the file that the job is defined in. It differs from
	// WorkflowRef, the default, for a job of a reusable workflow. Fulcio makes
	// the certificate's subject of it.
	JobWorkflowRef string
	// JobWorkflowSHA is the commit of JobWorkflowRef: WorkflowSHA.
	JobWorkflowSHA string

	// RunnerEnvironment is github-hosted or self-hosted: github-hosted.
	RunnerEnvironment string
	// RunID, RunNumber and RunAttempt are decimal numbers: 3001, 41 and 1.
	RunID, RunNumber, RunAttempt string
	// Actor is the login of the account that started the run: octocat.
	Actor string
	// ActorID is its number: 4001.
	ActorID string
}

// DefaultAudience is the audience that cosign asks for and Fulcio expects.
const DefaultAudience = "sigstore"

var (
	repositoryForm = regexp.MustCompile(`\A[^/\s]+/[^/\s]+\z`)
	shaForm        = regexp.MustCompile(`\A[0-9a-f]{40}\z`)
	fileForm       = regexp.MustCompile(`\A[^/\s]+/[^/\s]+/[^@\s]+@\S+\z`)
)

// complete returns the claims with the defaults filled in. It is an error if
// they do not have the form that GitHub's have: Fulcio would refuse them, or
// issue a certificate that no workflow could have.
func (c Claims) complete() (Claims, error) {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&c.Audience, DefaultAudience)
	set(&c.Repository, "acme/platform")
	set(&c.RepositoryID, "1001")
	set(&c.RepositoryOwnerID, "2001")
	set(&c.RepositoryVisibility, "private")
	set(&c.Ref, "refs/heads/main")
	set(&c.SHA, "0123456789abcdef0123456789abcdef01234567")
	set(&c.EventName, "push")
	set(&c.Workflow, "cd")
	set(&c.WorkflowRef, c.Repository+"/.github/workflows/cd.yaml@"+c.Ref)
	set(&c.WorkflowSHA, c.SHA)
	set(&c.JobWorkflowRef, c.WorkflowRef)
	set(&c.JobWorkflowSHA, c.WorkflowSHA)
	set(&c.RunnerEnvironment, "github-hosted")
	set(&c.RunID, "3001")
	set(&c.RunNumber, "41")
	set(&c.RunAttempt, "1")
	set(&c.Actor, "octocat")
	set(&c.ActorID, "4001")
	set(&c.Subject, c.subject())

	switch {
	case strings.Contains(c.Enterprise, "/"):
		return c, fmt.Errorf("expected an enterprise without a slash, found %q", c.Enterprise)
	case !repositoryForm.MatchString(c.Repository):
		return c, fmt.Errorf("expected a repository as owner/name, found %q", c.Repository)
	case !strings.HasPrefix(c.Ref, "refs/"):
		return c, fmt.Errorf("expected a ref that begins with refs/, found %q", c.Ref)
	}
	for name, sha := range map[string]string{"commit": c.SHA, "workflow's commit": c.WorkflowSHA, "job's commit": c.JobWorkflowSHA} {
		if !shaForm.MatchString(sha) {
			return c, fmt.Errorf("expected a %s of 40 hexadecimal digits, found %q", name, sha)
		}
	}
	for name, file := range map[string]string{"workflow": c.WorkflowRef, "job": c.JobWorkflowRef} {
		if !fileForm.MatchString(file) {
			return c, fmt.Errorf("expected a %s's reference as owner/name/path@ref, found %q", name, file)
		}
	}
	return c, nil
}

// subject returns GitHub's default sub claim.
func (c Claims) subject() string {
	switch {
	case c.Environment != "":
		return "repo:" + c.Repository + ":environment:" + strings.ReplaceAll(c.Environment, ":", "%3A")
	case c.EventName == "pull_request":
		return "repo:" + c.Repository + ":pull_request"
	default:
		return "repo:" + c.Repository + ":ref:" + c.Ref
	}
}

// payload returns the claims of complete claims under their names in a token,
// without those that the issuer adds.
func (c Claims) payload() map[string]any {
	refType := "branch"
	if strings.HasPrefix(c.Ref, "refs/tags/") {
		refType = "tag"
	}
	owner, _, _ := strings.Cut(c.Repository, "/")
	payload := map[string]any{
		"actor":                 c.Actor,
		"actor_id":              c.ActorID,
		"aud":                   c.Audience,
		"base_ref":              c.BaseRef,
		"event_name":            c.EventName,
		"head_ref":              c.HeadRef,
		"job_workflow_ref":      c.JobWorkflowRef,
		"job_workflow_sha":      c.JobWorkflowSHA,
		"ref":                   c.Ref,
		"ref_protected":         "false",
		"ref_type":              refType,
		"repository":            c.Repository,
		"repository_id":         c.RepositoryID,
		"repository_owner":      owner,
		"repository_owner_id":   c.RepositoryOwnerID,
		"repository_visibility": c.RepositoryVisibility,
		"run_attempt":           c.RunAttempt,
		"run_id":                c.RunID,
		"run_number":            c.RunNumber,
		"runner_environment":    c.RunnerEnvironment,
		"sha":                   c.SHA,
		"sub":                   c.Subject,
		"workflow":              c.Workflow,
		"workflow_ref":          c.WorkflowRef,
		"workflow_sha":          c.WorkflowSHA,
	}
	if c.Environment != "" { // GitHub leaves it out, rather than empty
		payload["environment"] = c.Environment
	}
	return payload
}

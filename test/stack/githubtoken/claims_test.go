package githubtoken

import (
	"strings"
	"testing"
)

func TestPayload(t *testing.T) {
	t.Parallel()
	const otherSHA = "fedcba9876543210fedcba9876543210fedcba98"
	for name, test := range map[string]struct {
		claims Claims
		want   map[string]any // the rest as in the zero claims
	}{
		"push": {want: map[string]any{
			"sub": "repo:acme/platform:ref:refs/heads/main", "ref_type": "branch", "event_name": "push",
			"repository_owner": "acme", "runner_environment": "github-hosted", "environment": nil,
			"workflow_ref": "acme/platform/.github/workflows/cd.yaml@refs/heads/main",
		}},
		"tag of another repository": {
			claims: Claims{Repository: "acme/other", Ref: "refs/tags/v1"},
			want: map[string]any{
				"sub": "repo:acme/other:ref:refs/tags/v1", "ref_type": "tag",
				"job_workflow_ref": "acme/other/.github/workflows/cd.yaml@refs/tags/v1",
			},
		},
		"pull request": {
			claims: Claims{EventName: "pull_request", Ref: "refs/pull/7/merge", HeadRef: "topic", BaseRef: "main"},
			want: map[string]any{
				"sub": "repo:acme/platform:pull_request", "ref_type": "branch", "head_ref": "topic", "base_ref": "main",
				"workflow_ref": "acme/platform/.github/workflows/cd.yaml@refs/pull/7/merge",
			},
		},
		"environment": {
			claims: Claims{Environment: "prod:eu"},
			want:   map[string]any{"sub": "repo:acme/platform:environment:prod%3Aeu", "environment": "prod:eu"},
		},
		"environment of a pull request": {
			claims: Claims{Environment: "preview", EventName: "pull_request", Ref: "refs/pull/7/merge"},
			want:   map[string]any{"sub": "repo:acme/platform:environment:preview"},
		},
		"reusable workflow": {
			claims: Claims{JobWorkflowRef: "acme/shared/.github/workflows/sign.yaml@refs/tags/v2", JobWorkflowSHA: otherSHA},
			want: map[string]any{
				"job_workflow_ref": "acme/shared/.github/workflows/sign.yaml@refs/tags/v2", "job_workflow_sha": otherSHA,
				"workflow_ref": "acme/platform/.github/workflows/cd.yaml@refs/heads/main",
				"workflow_sha": "0123456789abcdef0123456789abcdef01234567",
			},
		},
		"everything else": {
			claims: Claims{
				Audience: "other", Subject: "repo:custom", RepositoryID: "7", RepositoryOwnerID: "8", RepositoryVisibility: "public",
				SHA: otherSHA, Workflow: "release", RunnerEnvironment: "self-hosted", RunID: "9", RunNumber: "10", RunAttempt: "11",
				Actor: "ann", ActorID: "12",
			},
			want: map[string]any{
				"aud": "other", "sub": "repo:custom", "repository_id": "7", "repository_owner_id": "8", "repository_visibility": "public",
				"sha": otherSHA, "workflow_sha": otherSHA, "workflow": "release", "runner_environment": "self-hosted",
				"run_id": "9", "run_number": "10", "run_attempt": "11", "actor": "ann", "actor_id": "12",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			complete, err := test.claims.complete()
			if err != nil {
				t.Fatal(err)
			}
			got := complete.payload()
			for name, want := range test.want {
				if got[name] != want {
					t.Errorf("%s: got %v, want %v", name, got[name], want)
				}
			}
		})
	}
}

func TestClaimsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		claims Claims
		want   string
	}{
		"repository":   {Claims{Repository: "platform"}, `a repository as owner/name, found "platform"`},
		"ref":          {Claims{Ref: "main"}, `a ref that begins with refs/, found "main"`},
		"commit":       {Claims{SHA: "abc"}, `40 hexadecimal digits, found "abc"`},
		"workflow":     {Claims{WorkflowRef: ".github/workflows/cd.yaml"}, `owner/name/path@ref, found ".github/workflows/cd.yaml"`},
		"job":          {Claims{JobWorkflowRef: "acme/platform@refs/heads/main"}, `owner/name/path@ref, found "acme/platform@refs/heads/main"`},
		"enterprise":   {Claims{Enterprise: "a/b"}, `an enterprise without a slash, found "a/b"`},
		"second line":  {Claims{Repository: "acme/platform\n"}, `a repository as owner/name`},
		"job's commit": {Claims{JobWorkflowSHA: "ABC"}, `job's commit of 40 hexadecimal digits, found "ABC"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := test.claims.complete(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

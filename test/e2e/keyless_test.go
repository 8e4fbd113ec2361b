package e2e

import (
	"slices"

	"flux-verify-gate/test/stack/githubtoken"
)

// keyless are scenarios with certificates, nearly all of them issued by a real
// Fulcio for GitHub's tokens.
func keyless() []scenario {
	return slices.Concat(keylessSigners(), keylessPolicies(), keylessSignatures(), keylessTags(), keylessRoots())
}

// briefly is for a gate that has nothing to wait for: what it must see is there
// already.
var briefly = in{"timeout": "5s"}

// patiently is for a gate that sees the controller refuse.
var patiently = in{"timeout": "20s"}

// Signers beside the default one.
const (
	releaseSubject  = "https://github.com/acme/platform/.github/workflows/release.yaml@refs/heads/main"
	reusableSubject = "https://github.com/acme/pipelines/.github/workflows/publish.yaml@refs/heads/main"
)

var (
	release  = byWorkflow("release.yaml")
	stranger = githubtoken.Claims{Repository: "mallory/platform", RepositoryID: "6666"}
	reusable = githubtoken.Claims{JobWorkflowRef: "acme/pipelines/.github/workflows/publish.yaml@refs/heads/main"}
)

// signed deploys an artifact that somebody has signed: pushed, signed, and the
// source applied.
func (s *stage) signed(signers ...githubtoken.Claims) string {
	s.t.Helper()
	a := s.push("v1", "a")
	for _, claims := range signers {
		s.signAs(a, claims)
	}
	s.apply()
	return a
}

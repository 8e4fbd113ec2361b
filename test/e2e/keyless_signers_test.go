package e2e

import (
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/githubtoken"
)

// refusedSigner is the scenario of an artifact that the wrong one has signed,
// under the default policy: the controller refuses it, and the gate says so and
// shows who it was.
func refusedSigner(name string, core bool, claims githubtoken.Claims, shown ...string) scenario {
	return scenario{name: name, core: core, newer: true, run: func(s *stage) {
		s.withSigner()
		a := s.signed(claims)
		got := s.gate(in{"digest": a}, patiently).rejected(gate.VerificationFailed, gate.ArtifactMissing)
		s.classed(got, gate.ClassWrongSigner)
		failed := got.Finding(s.t, gate.VerificationFailed)
		// The controller's own words quote the certificate too.
		_, seen, _ := strings.Cut(failed.Found, "; of "+a+" the gate sees: ")
		for _, text := range shown {
			if !strings.Contains(seen, text) {
				s.t.Errorf("the finding does not show %q as seen by the gate: %s", text, failed.Found)
			}
		}
	}}
}

// acceptedSigner is the scenario of an artifact signed by somebody else than the
// default signer, whom the policy names exactly.
func acceptedSigner(name string, core bool, claims githubtoken.Claims, subject string) scenario {
	return scenario{name: name, core: core, newer: true, run: func(s *stage) {
		s.withSigner()
		verifyBy(exactly(issuer, subject))(&s.desired.Spec)
		s.requireSigners(in{"issuer": issuer, "subject": subject})
		a := s.signed(claims)
		s.gate(in{"digest": a}).verified(a)
	}}
}

// keylessSigners are about who has signed.
func keylessSigners() []scenario {
	pullRequest := githubtoken.Claims{Ref: "refs/pull/7/merge", EventName: "pull_request", HeadRef: "fix", BaseRef: "main"}
	return []scenario{
		{name: "keyless", core: true, newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.signed(githubtoken.Claims{})
			s.gate(in{"digest": a}).verified(a, gate.TrustedRootCustom)
		}},
		refusedSigner("keyless-other-branch", true, githubtoken.Claims{Ref: "refs/heads/feature"}, "@refs/heads/feature"),
		refusedSigner("keyless-other-repository", false, stranger, "mallory/platform"),
		refusedSigner("keyless-other-workflow", false, release, "release.yaml"),
		refusedSigner("keyless-other-issuer", false, githubtoken.Claims{Enterprise: "acme"}, issuer+"/acme"),
		refusedSigner("keyless-unexpected-tag", false, githubtoken.Claims{Ref: "refs/tags/v1.2.3"}, "@refs/tags/v1.2.3"),
		refusedSigner("keyless-pull-request", false, pullRequest, "@refs/pull/7/merge"),
		refusedSigner("keyless-unexpected-merge-queue", false, byQueue(), queueRef),
		refusedSigner("keyless-unexpected-reusable-workflow", false, reusable, "acme/pipelines"),
		acceptedSigner("keyless-tag", false, githubtoken.Claims{Ref: "refs/tags/v1.2.3"},
			"https://github.com/acme/platform/.github/workflows/cd.yaml@refs/tags/v1.2.3"),
		acceptedSigner("keyless-environment", false, githubtoken.Claims{Environment: "production"}, subject),
		{name: "keyless-alternation", core: true, newer: true, run: func(s *stage) {
			s.withSigner()
			verifyBy(either)(&s.desired.Spec)
			s.requireSigners(in{"issuer": issuer, "subject": subject}, in{"issuer": issuer, "subject": releaseSubject})
			a := s.signed(release)
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-shorthand", newer: true, run: func(s *stage) {
			s.withSigner()
			verifyBy(queueOfMain)(&s.desired.Spec)
			s.also(in{"required-signers": signerMain + signerQueue})
			a := s.signed(githubtoken.Claims{})
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-merge-queue", core: true, newer: true, run: func(s *stage) {
			s.withSigner()
			verifyBy(queueOfMain)(&s.desired.Spec)
			s.requireSigners(
				in{"issuer": issuer, "subject": subject},
				in{"issuer": issuer, "subject-pattern": `https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/gh-readonly-queue/main/pr-[0-9]+-[0-9a-f]{40}`})
			a := s.signed(byQueue())
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-reusable-workflow", newer: true, run: func(s *stage) {
			s.withSigner()
			verifyBy(exactly(issuer, reusableSubject))(&s.desired.Spec)
			s.requireSigners(in{"issuer": issuer, "subject": reusableSubject})
			a := s.signed(reusable)
			shared := s.gate(in{"digest": a}).verified(a, gate.SignerShared).Finding(s.t, gate.SignerShared)
			if !strings.Contains(shared.Remedy, `source-repository-id: '1001'`) {
				s.t.Errorf("the remedy does not say what to require: %s", shared.Remedy)
			}
			s.requireSigners(in{"issuer": issuer, "subject": reusableSubject, "source-repository-id": "1001"})
			s.gate(in{"digest": a}).verified(a, gate.SignerShared)
		}},
		{name: "keyless-reusable-workflow-of-another-caller", newer: true, run: func(s *stage) {
			// The controller cannot tell the callers of a workflow apart.
			s.withSigner()
			verifyBy(exactly(issuer, reusableSubject))(&s.desired.Spec)
			s.requireSigners(in{"issuer": issuer, "subject": reusableSubject, "source-repository-id": "1001"})
			caller := stranger
			caller.JobWorkflowRef = reusable.JobWorkflowRef
			a := s.signed(caller)
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			found := s.gate(in{"digest": a}, briefly).rejected(gate.ClaimsMismatch).Finding(s.t, gate.ClaimsMismatch)
			if !strings.Contains(found.Found, `"6666" instead of "1001"`) {
				s.t.Errorf("the finding does not show both ids: %s", found.Found)
			}
		}},
		{name: "keyless-person", newer: true, run: func(s *stage) {
			s.withSigner()
			const person = "release@acme.example"
			verifyBy(exactly(githubtoken.EmailIssuer, person))(&s.desired.Spec)
			s.requireSigners(in{"issuer": githubtoken.EmailIssuer, "subject": person})
			a := s.push("v1", "a")
			s.signAsPerson(a, person)
			s.apply()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-unexpected-person", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.push("v1", "a")
			s.signAsPerson(a, "mallory@acme.example")
			s.apply()
			s.gate(in{"digest": a}, patiently).rejected(gate.VerificationFailed)
		}},
		{name: "keyless-dual-control", core: true, newer: true, run: func(s *stage) {
			s.withSigner()
			verifyBy(either)(&s.desired.Spec)
			s.requireSigners(in{"issuer": issuer, "subject": subject}, in{"issuer": issuer, "subject": releaseSubject})
			s.also(in{"require-all": "true"})
			a := s.signed(githubtoken.Claims{})
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			missing := s.gate(in{"digest": a}, briefly).rejected(gate.SignedByOthers).Finding(s.t, gate.SignedByOthers)
			if !strings.Contains(missing.Expected, "release.yaml") || strings.Contains(missing.Expected, "cd.yaml") {
				s.t.Errorf("the finding does not name the one who is missing: %s", missing.Expected)
			}
			s.signAs(a, release)
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-dual-control-late", newer: true, run: func(s *stage) {
			// The second signature comes while the gate waits for it.
			s.withSigner()
			verifyBy(either)(&s.desired.Spec)
			s.requireSigners(in{"issuer": issuer, "subject": subject}, in{"issuer": issuer, "subject": releaseSubject})
			a := s.signed(githubtoken.Claims{})
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			waiting := s.gate(in{"digest": a, "require-all": "true"})
			waiting.Saw(string(gate.SignedByOthers))
			s.signAs(a, release)
			waiting.verified(a)
		}},
		{name: "keyless-dual-control-by-one", newer: true, run: func(s *stage) {
			// Two requirements that one identity meets are not two signers.
			s.withSigner()
			s.requireSigners(
				in{"issuer": issuer, "subject": subject},
				in{"issuer": issuer, "subject-pattern": `https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main`})
			s.also(in{"require-all": "true"})
			a := s.signed(githubtoken.Claims{}, githubtoken.Claims{RunID: "3002"})
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.gate(in{"digest": a}, briefly).rejected(gate.SignedByOthers)
		}},
		{name: "keyless-claims", core: true, newer: true, run: func(s *stage) {
			s.withSigner()
			s.requireSigners(in{
				"issuer": issuer, "subject": subject, "source-repository": "https://github.com/acme/platform", "source-repository-id": "1001",
				"source-ref": "refs/heads/main", "runner-environment": "github-hosted", "build-trigger": "push", "build-signer-uri": subject,
			})
			a := s.signed(githubtoken.Claims{})
			s.gate(in{"digest": a}).verified(a)
		}},
		otherClaims("keyless-self-hosted-runner", githubtoken.Claims{RunnerEnvironment: "self-hosted"}, "runner-environment", "github-hosted", "self-hosted"),
		otherClaims("keyless-started-by-hand", githubtoken.Claims{EventName: "workflow_dispatch"}, "build-trigger", "push", "workflow_dispatch"),
		otherClaims("keyless-other-source-ref",
			githubtoken.Claims{Ref: "refs/heads/feature", WorkflowRef: "acme/platform/.github/workflows/cd.yaml@refs/heads/main"},
			"source-ref", "refs/heads/main", "refs/heads/feature"),
		{name: "keyless-claims-one-of-two", newer: true, run: func(s *stage) {
			// The wrong claims of one signature do not spoil the right ones of
			// another.
			s.withSigner()
			s.requireSigners(in{"issuer": issuer, "subject": subject, "build-trigger": "push"})
			a := s.signed(githubtoken.Claims{EventName: "workflow_dispatch"}, githubtoken.Claims{})
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-allowed-signer", newer: true, run: func(s *stage) {
			s.withSigner()
			verifyBy(either)(&s.desired.Spec)
			a := s.signed(githubtoken.Claims{})
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.gate(in{"digest": a}, briefly).rejected(gate.PolicyTooWide)
			s.allowRelease()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-only-the-allowed-signer", newer: true, run: func(s *stage) {
			s.withSigner()
			verifyBy(either)(&s.desired.Spec)
			s.allowRelease()
			a := s.signed(release)
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.gate(in{"digest": a}, briefly).rejected(gate.SignedByOthers)
		}},
	}
}

// either accepts the default signer and the release workflow, and nobody else.
var either = sourcev1.OIDCIdentityMatch{
	Issuer:  `^https://token\.actions\.githubusercontent\.com$`,
	Subject: `^https://github\.com/acme/platform/\.github/workflows/(cd|release)\.yaml@refs/heads/main$`,
}

// queueOfMain accepts the default signer, and what the merge queue of its branch
// runs.
var queueOfMain = sourcev1.OIDCIdentityMatch{
	Issuer:  `^https://token\.actions\.githubusercontent\.com$`,
	Subject: `^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/(main|gh-readonly-queue/main/pr-[0-9]+-[0-9a-f]{40})$`,
}

// otherClaims is the scenario of the right identity with a claim that is not the
// required one, which the controller does not look at.
func otherClaims(name string, claims githubtoken.Claims, claim, required, found string) scenario {
	return scenario{name: name, newer: true, run: func(s *stage) {
		s.withSigner()
		s.requireSigners(in{"issuer": issuer, "subject": subject, claim: required})
		a := s.signed(claims)
		s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
		got := s.gate(in{"digest": a}, briefly).rejected(gate.ClaimsMismatch)
		if told := got.Finding(s.t, gate.ClaimsMismatch).Found; !strings.Contains(told, fmt.Sprintf("%s is %q instead of %q", claim, found, required)) {
			s.t.Errorf("the finding does not tell the claim: %s", told)
		}
	}}
}

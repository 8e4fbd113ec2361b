package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
	"flux-verify-gate/test/stack/githubtoken"
)

// production makes a second place beside the scenario's, which is staging then:
// another source, with the same policy and requirements, read with another
// kubeconfig. It follows the tag production in staging's repository, or in one
// of its own.
func (s *stage) production(own bool) *stage {
	s.t.Helper()
	p := newStage(s.t, s.world, scenario{name: s.name + "-live"})
	if !own {
		p.path = s.path
	}
	p.desired.Spec.URL, p.desired.Spec.Reference.Tag = p.url(), "production"
	if s.desired.Spec.Verify.SecretRef != nil {
		p.withKey()
	} else {
		p.trustRoot(s.stack.Sigstore.TrustedRoot())
		p.also(s.required)
		p.desired.Spec.Verify = s.desired.Spec.Verify.DeepCopy()
	}
	return p
}

// queued makes the scenario one of a merge queue: its workflow signs, and what
// main signs is allowed.
func (s *stage) queued() {
	s.t.Helper()
	s.withSuggested(signerQueue, signerMain)
}

// promote moves production's tag to exactly the artifact that a run of the gate
// gave back, in the same repository. It has nothing but the step's output.
func (p *stage) promote(staging actiontest.Result) {
	p.t.Helper()
	artifact, err := remote.Get(p.given(staging), remote.WithContext(p.t.Context()))
	p.check(err)
	p.check(remote.Tag(p.productionTag(), artifact, remote.WithContext(p.t.Context())))
}

// copyFrom copies the artifact that a run of the gate gave back to production's
// own repository, without what refers to it, and tags it there.
func (p *stage) copyFrom(staging actiontest.Result) {
	p.t.Helper()
	artifact, err := remote.Image(p.given(staging), remote.WithContext(p.t.Context()))
	p.check(err)
	p.check(remote.Write(p.productionTag(), artifact, remote.WithContext(p.t.Context())))
}

// given is the artifact that a run of the gate gave back.
func (p *stage) given(staging actiontest.Result) name.Digest {
	p.t.Helper()
	digest, err := name.NewDigest(staging.Outputs["reference"], name.Insecure)
	if err != nil {
		p.t.Fatalf("cannot promote %q: %v", staging.Outputs["reference"], err)
	}
	return digest
}

// productionTag is the tag that production's source follows.
func (p *stage) productionTag() name.Tag {
	p.t.Helper()
	tag, err := name.NewTag(p.repository()+":production", name.Insecure)
	p.check(err)
	return tag
}

// copyReferrers copies what refers to an artifact, as oras copy -r does.
func (p *stage) copyReferrers(staging actiontest.Result) {
	p.t.Helper()
	from := p.given(staging)
	index, err := remote.Referrers(from, remote.WithContext(p.t.Context()))
	p.check(err)
	manifest, err := index.IndexManifest()
	p.check(err)
	if len(manifest.Manifests) == 0 {
		p.t.Fatalf("nothing refers to %s", from)
	}
	for _, d := range manifest.Manifests {
		referrer, err := remote.Image(from.Context().Digest(d.Digest.String()), remote.WithContext(p.t.Context()))
		p.check(err)
		to, err := name.NewDigest(p.repository()+"@"+d.Digest.String(), name.Insecure)
		p.check(err)
		p.check(remote.Write(to, referrer, remote.WithContext(p.t.Context())))
	}
}

// cannotPromote holds that a run of the gate left nothing to promote.
func (s *stage) cannotPromote(r actiontest.Result) {
	s.t.Helper()
	if r.Outputs["verified"] != "false" || r.Outputs["digest"] != "" || r.Outputs["reference"] != "" {
		s.t.Errorf("got %v, want nothing to promote", r.Outputs)
	}
	if _, err := name.NewDigest(r.Outputs["reference"], name.Insecure); err == nil {
		s.t.Errorf("%q can be promoted", r.Outputs["reference"])
	}
}

// staged pushes, signs as the merge queue and deploys to staging, and returns
// what the gate said of it.
func (s *stage) staged(content string) (string, actiontest.Result) {
	s.t.Helper()
	digest := s.push("v1", content)
	s.signAs(digest, byQueue())
	s.apply()
	return digest, s.gate(in{"digest": digest}).verified(digest)
}

// promotions are stories of staging and production.
func promotions() []scenario {
	return []scenario{
		{name: "promotion", newer: true, run: func(s *stage) {
			s.queued()
			p := s.production(false)
			p.apply() // serves nothing yet
			_, staging := s.staged("a")
			p.promote(staging)
			// Whether or not the controller has looked.
			got := p.gate(in{"digest": staging.Outputs["digest"]}).verified(staging.Outputs["digest"])
			if got.Outputs["reference"] != staging.Outputs["reference"] {
				s.t.Errorf("production has %s, staging %s", got.Outputs["reference"], staging.Outputs["reference"])
			}
		}},
		{name: "promotion-reconciles", newer: true, run: func(s *stage) {
			s.queued()
			p := s.production(false)
			first, staging := s.staged("a")
			p.promote(staging)
			p.apply(rarely)
			p.awaitServing(first)
			second, staging := s.staged("b")
			p.promote(staging)
			// With the Role that only reads, asking is refused, and the finding
			// shows the other one.
			refused := p.gate(in{"digest": second, "reconcile": "true"}).undecided(gate.AccessDenied)
			p.cannotPromote(refused)
			if !strings.Contains(refused.Stdout, "patch") {
				s.t.Error("the log does not show the verb that is missing")
			}
			p.permit("role-reconcile.yaml", sourceName)
			p.gate(in{"digest": second, "reconcile": "true"}).verified(second)
		}},
		{name: "promotion-not-signed", newer: true, run: func(s *stage) {
			s.queued()
			s.staged("a")
			b := s.push("v1", "b")
			s.reconcile()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.cannotPromote(s.gate(in{"digest": b, "timeout": "5s"}).rejected(gate.VerificationFailed, gate.DigestMismatch))
		}},
		{name: "promotion-signed-by-main", newer: true, run: func(s *stage) {
			s.queued()
			// The policy admits main's signature, the step wants the merge queue's.
			a := s.push("v1", "a")
			s.signAs(a, githubtoken.Claims{})
			s.apply()
			s.awaitServing(a)
			s.cannotPromote(s.gate(in{"digest": a, "timeout": "10m"}).rejected(gate.SignedByOthers))
		}},
		{name: "promotion-signed-by-another-workflow", newer: true, run: func(s *stage) {
			s.queued()
			s.staged("a")
			b := s.push("v1", "b")
			s.signAs(b, byWorkflow("nightly.yaml"))
			s.reconcile()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.cannotPromote(s.gate(in{"digest": b, "timeout": "10m"}).rejected(gate.VerificationFailed, gate.DigestMismatch))
		}},
		{name: "promotion-tag-not-moved", newer: true, run: func(s *stage) {
			s.queued()
			p := s.production(false)
			_, staging := s.staged("a")
			p.promote(staging)
			p.apply()
			p.gate(in{"digest": staging.Outputs["digest"]}).verified(staging.Outputs["digest"])
			b, _ := s.staged("b")
			p.cannotPromote(p.gate(in{"digest": b, "timeout": "10s"}).rejected(gate.DigestMismatch))
		}},
		{name: "promotion-tag-moved-elsewhere", newer: true, run: func(s *stage) {
			s.queued()
			p := s.production(false)
			_, staging := s.staged("a")
			p.promote(staging)
			p.apply()
			p.awaitServing(staging.Outputs["digest"])
			b, _ := s.staged("b")
			_, other := s.staged("c")
			g := p.gate(in{"digest": b, "timeout": "25s"})
			g.waits(gate.DigestMismatch)
			p.promote(other)
			p.reconcile()
			p.awaitServing(other.Outputs["digest"])
			got := g.rejected(gate.DigestMismatch)
			p.cannotPromote(got)
			if got.Outputs["revision"] != "production@"+other.Outputs["digest"] {
				s.t.Errorf("got the revision %s, want what is there now", got.Outputs["revision"])
			}
		}},
		{name: "promotion-without-policy", newer: true, run: func(s *stage) {
			s.queued()
			p := s.production(false)
			a, staging := s.staged("a")
			p.promote(staging)
			p.apply(noVerify)
			p.awaitReadyNow()
			p.cannotPromote(p.gate(in{"digest": a, "timeout": "5s"}).rejected(gate.VerifyAbsent))
		}},
		{name: "promotion-to-suspended", newer: true, run: func(s *stage) {
			s.queued()
			p := s.production(false)
			first, staging := s.staged("a")
			p.promote(staging)
			p.apply()
			p.gate(in{"digest": first}).verified(first)
			p.apply(suspend)
			second, staging := s.staged("b")
			p.promote(staging)
			p.cannotPromote(p.gate(in{"digest": second, "timeout": "10m"}).rejected(gate.SourceSuspended, gate.DigestMismatch))
		}},
		{name: "promotion-to-another-repository", newer: true, run: func(s *stage) {
			s.queued()
			p := s.production(true)
			a, staging := s.staged("a")
			p.copyFrom(staging)
			p.copyReferrers(staging)
			p.apply()
			p.gate(in{"digest": a}).verified(a)
		}},
		{name: "promotion-without-signatures", newer: true, run: func(s *stage) {
			s.queued()
			p := s.production(true)
			a, staging := s.staged("a")
			p.copyFrom(staging)
			p.apply()
			p.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			p.cannotPromote(p.gate(in{"digest": a, "timeout": "5s"}).rejected(gate.VerificationFailed, gate.ArtifactMissing))
			// They may come later.
			g := p.gate(in{"digest": a})
			g.waits(gate.VerificationFailed)
			p.copyReferrers(staging)
			g.verified(a)
		}},
		{name: "promotion-by-cosign-copy", run: func(s *stage) {
			a := s.serves("a")
			staging := s.gate(in{"digest": a}).verified(a)
			p := s.production(true)
			_, err := s.stack.Sigstore.Run(s.t.Context(), "copy", staging.Outputs["reference"], p.repository()+":production")
			s.check(err)
			p.apply()
			p.gate(in{"digest": a}).verified(a)
		}},
		{name: "promotion-copied-without-sig", run: func(s *stage) {
			a := s.serves("a")
			staging := s.gate(in{"digest": a}).verified(a)
			p := s.production(true)
			p.copyFrom(staging)
			p.apply()
			p.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			p.cannotPromote(p.gate(in{"digest": a, "timeout": "5s"}).rejected(gate.VerificationFailed, gate.ArtifactMissing))
		}},
		{name: "promotion-wrong-url", run: func(s *stage) {
			a := s.serves("a")
			for _, url := range []string{s.url() + "-staging", "oci://ghcr.io/" + s.path} {
				s.cannotPromote(s.gate(in{"digest": a, "url": url, "timeout": "10m"}).rejected(gate.SourceURL))
			}
			for _, url := range []string{s.url() + ":v1", s.repository()} {
				s.cannotPromote(s.gate(in{"digest": a, "url": url}).undecided(gate.BadInput))
			}
		}},
		{name: "promotion-staging-kubeconfig", run: func(s *stage) {
			a := s.serves("a")
			staging := s.gate(in{"digest": a}).verified(a)
			p := s.production(true)
			_, err := s.stack.Sigstore.Run(s.t.Context(), "copy", staging.Outputs["reference"], p.repository()+":production")
			s.check(err)
			p.apply()
			p.awaitServing(a)
			// Where the names differ, access is missing.
			p.cannotPromote(p.gate(in{"digest": a, "kubeconfig": s.kubeconfig}).undecided(gate.AccessDenied))
			// Where they are the same, which they are in two clusters, only url
			// tells staging from production.
			got := p.gate(in{"digest": a, "kubeconfig": s.kubeconfig, "namespace": s.namespace}).rejected(gate.SourceURL)
			p.cannotPromote(got)
			if server := s.stack.Cluster.Server(); got.Report.Cluster.Server != server || !strings.Contains(got.Stdout, server) {
				s.t.Errorf("the log and the report do not name the server %s", server)
			}
		}},
		{name: "example-merge-queue", core: true, newer: true, run: exampleMergeQueue},
		{name: "example-promote", core: true, newer: true, run: examplePromote},
		{name: "example-promote-stops", newer: true, run: examplePromoteStops},
		{name: "example-check-live", newer: true, run: exampleCheckLive},
	}
}

// workflow is what an example says of its jobs.
type workflow struct {
	Jobs map[string]struct {
		If      string
		Outputs map[string]string
		Steps   []struct {
			ID, Uses string
			With     map[string]string
		}
	}
}

func (s *stage) example(file string) workflow {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "examples", "workflows", file))
	s.check(err)
	var w workflow
	s.check(yaml.Unmarshal(content, &w))
	return w
}

// with gives what a job of an example passes to the gate, with its expressions
// filled in.
func (w workflow) with(s *stage, job string, values map[string]string) in {
	s.t.Helper()
	var found []in
	for _, step := range w.Jobs[job].Steps {
		if strings.HasPrefix(step.Uses, "flux-verify-gate/") {
			inputs := in{}
			for name, value := range step.With {
				inputs[name] = fill(s, value, values)
			}
			found = append(found, inputs)
		}
	}
	if len(found) != 1 {
		s.t.Fatalf("expected one step with the gate in the job %s, found %d", job, len(found))
	}
	return found[0]
}

var expression = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)

// fill replaces expressions, and the registry that the examples name, by what
// the stack has.
func fill(s *stage, text string, values map[string]string) string {
	s.t.Helper()
	text = expression.ReplaceAllStringFunc(text, func(e string) string {
		value, known := values[expression.FindStringSubmatch(e)[1]]
		if !known {
			s.t.Fatalf("the example uses the unknown expression %s", e)
		}
		return value
	})
	return strings.ReplaceAll(text, "oci://ghcr.io/acme/platform", s.url())
}

// holds evaluates an if: that joins comparisons by &&.
func holds(s *stage, condition string, values map[string]string) bool {
	s.t.Helper()
	operand := func(text string) string {
		text = strings.TrimSpace(text)
		if literal, quoted := strings.CutPrefix(text, "'"); quoted {
			return strings.TrimSuffix(literal, "'")
		}
		value, known := values[text]
		if !known {
			s.t.Fatalf("the example compares the unknown %s", text)
		}
		return value
	}
	for _, comparison := range strings.Split(condition, "&&") {
		left, right, found := strings.Cut(comparison, "==")
		if !found {
			s.t.Fatalf("expected comparisons by ==, found %q", comparison)
		}
		if operand(left) != operand(right) {
			return false
		}
	}
	return true
}

// step runs the gate with an example's inputs and nothing else, but for what
// the stack is not called as in the example.
func (s *stage) step(with in, env ...string) *run {
	s.t.Helper()
	inputs := in{"namespace": s.namespace, "trusted-root": s.stack.Sigstore.TrustedRoot()}
	for name, value := range with {
		if _, ours := inputs[name]; ours {
			s.t.Fatalf("the example passes %s, which the stack must change", name)
		}
		inputs[name] = value
	}
	return &run{Process: actiontest.Start(s.t, s.world.gate, inputs, env...), s: s, inputs: inputs}
}

// kubeconfigData is what an example's secret holds.
func (s *stage) kubeconfigData() string {
	s.t.Helper()
	content, err := os.ReadFile(s.kubeconfig)
	s.check(err)
	return string(content)
}

func exampleMergeQueue(s *stage) {
	w := s.example("merge-queue.yaml")
	a := s.push("v1", "a")
	with := w.with(s, "deploy", map[string]string{"steps.push.outputs.digest": a})
	s.withSuggested(with["required-signers"], with["allowed-signers"])
	s.signAs(a, byQueue())
	s.apply()
	// Its kubeconfig comes by the environment.
	s.step(with, "KUBECONFIG="+s.kubeconfig).verified(a)
	// A run of main may follow, and is allowed; but it is not who this step
	// waits for.
	b := s.push("v1", "b")
	s.signAs(b, githubtoken.Claims{})
	with = w.with(s, "deploy", map[string]string{"steps.push.outputs.digest": b})
	s.step(with, "KUBECONFIG="+s.kubeconfig).rejected(gate.SignedByOthers)
}

// needs gives the values of a finished job of the promotion.
func needs(s *stage, w workflow, pushed string, r actiontest.Result) map[string]string {
	s.t.Helper()
	steps := map[string]string{"steps.push.outputs.digest": pushed}
	for name, value := range r.Outputs {
		steps["steps.gate.outputs."+name] = value
	}
	values := map[string]string{}
	for name, value := range w.Jobs["staging"].Outputs {
		values["needs.staging.outputs."+name] = fill(s, value, steps)
	}
	return values
}

func examplePromote(s *stage) {
	w := s.example("promote.yaml")
	a := s.push("v1", "a")
	secrets := map[string]string{"steps.push.outputs.digest": a, "secrets.STAGING_KUBECONFIG": s.kubeconfigData()}
	with := w.with(s, "staging", secrets)
	s.withSuggested(with["required-signers"], "")
	p := s.production(false)
	s.signAs(a, byWorkflow("promote.yaml"))
	s.apply()
	p.apply()
	staging := s.step(with).verified(a)
	values := needs(s, w, a, staging)
	if !holds(s, w.Jobs["production"].If, values) {
		s.t.Fatalf("the job production is skipped after %v", values)
	}
	p.promote(actiontest.Result{Outputs: map[string]string{"reference": values["needs.staging.outputs.reference"]}})
	values["secrets.PRODUCTION_KUBECONFIG"] = p.kubeconfigData()
	p.step(w.with(p, "production", values)).verified(a)
}

// examplePromoteStops is the same with an artifact that another workflow of the
// repository signed, and with one that a runner of one's own signed.
func examplePromoteStops(s *stage) {
	w := s.example("promote.yaml")
	selfHosted := byWorkflow("promote.yaml")
	selfHosted.RunnerEnvironment = "self-hosted"
	dispatched := byWorkflow("promote.yaml")
	dispatched.EventName = "workflow_dispatch"
	for i, story := range []struct {
		claims githubtoken.Claims
		reason gate.Code
	}{
		{selfHosted, gate.ClaimsMismatch},
		{dispatched, gate.ClaimsMismatch},
		{byWorkflow("cd.yaml"), gate.VerificationFailed},
	} {
		digest := s.push("v1", string(rune('a'+i)))
		with := w.with(s, "staging", map[string]string{"steps.push.outputs.digest": digest, "secrets.STAGING_KUBECONFIG": s.kubeconfigData()})
		if i == 0 {
			s.withSuggested(with["required-signers"], "")
		}
		s.signAs(digest, story.claims)
		s.apply()
		got := s.step(with).rejected(story.reason)
		if values := needs(s, w, digest, got); holds(s, w.Jobs["production"].If, values) {
			s.t.Errorf("the job production runs after %v", values)
		}
	}
}

func exampleCheckLive(s *stage) {
	w := s.example("check-live.yaml")
	a := s.push("v1", "a")
	values := map[string]string{"inputs.digest": gate.DigestAny, "secrets.KUBECONFIG": s.kubeconfigData()}
	with := w.with(s, "check", values)
	s.withSuggested(with["required-signers"], "")
	s.signAs(a, byWorkflow("promote.yaml"))
	s.apply()
	s.awaitServing(a)
	s.awaitReadyNow()
	s.step(with).verified(a, gate.DigestMismatch)
	values["inputs.digest"] = a
	s.step(w.with(s, "check", values)).verified(a)
	s.apply(noVerify)
	s.awaitReadyNow()
	s.step(w.with(s, "check", values)).rejected(gate.VerifyAbsent)
}

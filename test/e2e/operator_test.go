package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
)

// operatorManager is the field manager of flux-operator.
const operatorManager = "flux-operator"

// operator does what flux-operator does with a FluxInstance: it generates a
// source and its Kustomization, patches them with kustomize, and applies the
// result. It is the one part that is imitated, because the operator cannot be
// built from its module; operator-writes compares with what a real one wrote.
type operator struct {
	s *stage
	// name is spec.sync.name.
	name string
	// patches is spec.kustomize.patches.
	patches []any
}

// operator makes the scenario one of a FluxInstance without patches.
func (s *stage) operator() *operator {
	o := &operator{s: s, name: sourceName}
	s.t.Cleanup(func() {
		// The consumer before its source, so that it can prune.
		ctx, cancel := afterTest()
		defer cancel()
		_ = s.resource(kustomizations).Delete(ctx, o.name, metav1.DeleteOptions{})
		_ = s.objects().Delete(ctx, o.name, metav1.DeleteOptions{})
	})
	return o
}

var kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}

// patch replaces the patches by those of a YAML list.
func (o *operator) patch(list string) {
	o.s.t.Helper()
	o.patches = nil
	o.s.check(yaml.Unmarshal([]byte(list), &o.patches))
}

// addVerify is a list of patches as the documentation of flux-operator writes
// it: one whose target has no name, because that can change.
func addVerify(verify string) string {
	return "- target: {kind: OCIRepository}\n  patch: |\n    - op: add\n      path: /spec/verify\n      value: " + verify + "\n"
}

// verifyKey is spec.verify with the scenario's key.
const verifyKey = "{provider: cosign, secretRef: {name: " + keySecret + "}}"

// syncTemplate is what flux-operator generates of spec.sync (its
// internal/builder/templates.go, v0.59.0).
const syncTemplate = `apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  interval: 10s
  url: URL
  ref: {tag: TAG}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  interval: 10m
  path: ./
  prune: true
  sourceRef: {kind: OCIRepository, name: NAME}
`

// render builds the objects as the operator does.
func (o *operator) render() (string, error) {
	s := o.s
	// The stack's registry has no TLS; the recorded FluxInstance has this patch
	// too.
	insecure := map[string]any{
		"target": map[string]any{"kind": "OCIRepository"}, "patch": "- {op: add, path: /spec/insecure, value: true}",
	}
	kustomization, err := yaml.Marshal(map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": []any{"sync.yaml"},
		"patches": append([]any{insecure}, o.patches...),
		"commonAnnotations": map[string]any{
			"kustomize.toolkit.fluxcd.io/prune": "Disabled", "kustomize.toolkit.fluxcd.io/ssa": "Ignore",
		},
		"labels": []any{map[string]any{"pairs": map[string]any{
			"app.kubernetes.io/instance": s.namespace, "app.kubernetes.io/managed-by": "flux-operator",
			"app.kubernetes.io/part-of": "flux", "app.kubernetes.io/version": "v2.9.4",
			"fluxcd.controlplane.io/name": "flux", "fluxcd.controlplane.io/namespace": s.namespace,
		}}},
	})
	if err != nil {
		return "", err
	}
	files := filesys.MakeFsInMemory()
	for name, content := range map[string]string{
		"kustomization.yaml": string(kustomization),
		"sync.yaml": strings.NewReplacer("NAMESPACE", s.namespace, "NAME", o.name, "URL", s.url(), "TAG", s.desired.Spec.Reference.Tag).
			Replace(syncTemplate),
	} {
		if err := files.WriteFile(name, []byte(content)); err != nil {
			return "", err
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
	if err != nil {
		return "", err
	}
	text, err := built.AsYaml()
	return string(text), err
}

// reconcile is one reconciliation of the FluxInstance.
func (o *operator) reconcile() {
	o.s.t.Helper()
	manifests, err := o.render()
	o.s.check(err)
	o.s.applyYAML(operatorManager, manifests)
}

// suggest asks the gate's own command for the policy of these signers, and
// returns spec.verify and the FluxInstance's patches, both under the stack's
// trusted root.
func (s *stage) suggest(required, allowed string) (*sourcev1.OCIRepositoryVerification, []any) {
	s.t.Helper()
	args := []string{"suggest", "--required-signers", required, "--trusted-root", s.stack.Sigstore.TrustedRoot()}
	if allowed != "" {
		args = append(args, "--allowed-signers", allowed)
	}
	output, err := exec.CommandContext(s.t.Context(), s.world.gate, args...).Output()
	s.check(err)
	// As it says, with the name that only the reader knows.
	text := strings.ReplaceAll(string(output), report.UnknownSecret, rootSecret)
	object, instance, found := strings.Cut(text, "# Or,")
	if !found {
		s.t.Fatalf("expected two suggestions, found:\n%s", output)
	}
	var source sourcev1.OCIRepository
	s.check(yaml.UnmarshalStrict([]byte(object), &source))
	if source.Spec.Verify == nil || source.Spec.Verify.TrustedRootSecretRef == nil {
		s.t.Fatalf("expected spec.verify with a trusted root, found:\n%s", object)
	}
	var flux struct {
		Spec struct{ Kustomize struct{ Patches []any } }
	}
	s.check(yaml.Unmarshal([]byte("#"+instance), &flux))
	return source.Spec.Verify, flux.Spec.Kustomize.Patches
}

// withSuggested makes the scenario one with these signers: the gate requires
// and allows them, and the policy is the one that the gate suggests.
func (s *stage) withSuggested(required, allowed string) {
	s.t.Helper()
	s.trustRoot(s.stack.Sigstore.TrustedRoot())
	s.also(in{"required-signers": required, "allowed-signers": allowed})
	s.desired.Spec.Verify, _ = s.suggest(required, allowed)
}

// The signers of the story of three workflows, as inputs.
const (
	signerMain    = "- github: {repository: acme/platform, workflow: cd.yaml, ref: refs/heads/main}\n"
	signerQueue   = "- github: {repository: acme/platform, workflow: cd.yaml, merge-queue-of: main}\n"
	signerRelease = "- github: {repository: acme/platform, workflow: release.yaml, ref: refs/heads/main}\n"
)

// queueRef is a ref of GitHub's merge queue.
const queueRef = "refs/heads/gh-readonly-queue/main/pr-7-0123456789abcdef0123456789abcdef01234567"

// byQueue are the claims of a job of the merge queue.
func byQueue() githubtoken.Claims {
	return githubtoken.Claims{Ref: queueRef, EventName: "merge_group"}
}

// byWorkflow are the claims of a push to main in another workflow.
func byWorkflow(file string) githubtoken.Claims {
	return githubtoken.Claims{WorkflowRef: "acme/platform/.github/workflows/" + file + "@refs/heads/main"}
}

// threeEntries is the policy of three identities as Flux documents it: an entry
// for each.
const threeEntries = `{provider: cosign, trustedRootSecretRef: {name: ` + rootSecret + `}, matchOIDCIdentity: [
  {issuer: '^https://token\.actions\.githubusercontent\.com$', subject: '^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$'},
  {issuer: '^https://token\.actions\.githubusercontent\.com$', subject: '^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/gh-readonly-queue/main/pr-[0-9]+-[0-9a-f]{40}$'},
  {issuer: '^https://token\.actions\.githubusercontent\.com$', subject: '^https://github\.com/acme/platform/\.github/workflows/release\.yaml@refs/heads/main$'}]}`

// operated are stories of a source that flux-operator makes.
func operated() []scenario {
	return []scenario{
		{name: "operator-writes", core: true, run: func(s *stage) {
			s.withKey()
			o := s.operator()
			o.patch(addVerify(verifyKey))
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Tag)
			o.reconcile()
			got := s.gate(in{"digest": a}).verified(a)
			s.writtenAs("50-fluxinstance-synced.json")
			if owners := got.Report.Owners; len(owners) == 0 || owners[0].Manager != operatorManager {
				s.t.Errorf("got the owners %v, want flux-operator first", owners)
			}
		}},
		missed("operator-misses-kind", "- target: {kind: OciRepository}\n  patch: '- {op: add, path: /spec/verify, value: "+verifyKey+"}'\n"),
		missed("operator-misses-name", "- target: {kind: OCIRepository, name: flux}\n  patch: '- {op: add, path: /spec/verify, value: "+verifyKey+"}'\n"),
		missed("operator-misses-strategic", "- target: {kind: OCIRepository, group: source.fluxcd.io}\n  patch: |\n    apiVersion: source.toolkit.fluxcd.io/v1\n"+
			"    kind: OCIRepository\n    metadata: {name: any}\n    spec: {verify: "+verifyKey+"}\n"),
		{name: "operator-strategic", run: func(s *stage) {
			s.withKey()
			o := s.operator()
			o.patch("- target: {kind: OCIRepository, name: flux-.*}\n  patch: |\n    apiVersion: source.toolkit.fluxcd.io/v1\n" +
				"    kind: OCIRepository\n    metadata: {name: any}\n    spec: {verify: " + verifyKey + "}\n")
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Tag)
			o.reconcile()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "operator-build-fails", run: func(s *stage) {
			s.withKey()
			o := s.operator()
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Tag)
			o.reconcile() // before there was a policy
			// A path whose parent is missing is a build error, and nothing is
			// applied.
			o.patch("- target: {kind: OCIRepository}\n  patch: '- {op: replace, path: /spec/verify/provider, value: cosign}'\n")
			if text, err := o.render(); err == nil || !strings.Contains(err.Error(), "/spec/verify/provider") {
				s.t.Fatalf("got %v, want a build error about the missing path; rendered:\n%s", err, text)
			}
			// So is a strategic merge that names its object itself, and wrongly.
			o.patch("- patch: |\n    apiVersion: source.toolkit.fluxcd.io/v1\n    kind: OCIRepository\n    metadata: {name: flux}\n    spec: {verify: " + verifyKey + "}\n")
			if text, err := o.render(); err == nil || !strings.Contains(err.Error(), "no matches") {
				s.t.Fatalf("got %v, want a build error about the missing object; rendered:\n%s", err, text)
			}
			s.awaitReadyNow()
			s.gate(in{"digest": a, "timeout": "5s"}).rejected(gate.VerifyAbsent)
			// One whose parent is there is made, as by add.
			o.patch("- target: {kind: OCIRepository}\n  patch: '- {op: replace, path: /spec/verify, value: " + verifyKey + "}'\n")
			o.reconcile()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "operator-patch-removed", run: func(s *stage) {
			s.withKey()
			o := s.operator()
			o.patch(addVerify(verifyKey))
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Tag)
			o.reconcile()
			s.gate(in{"digest": a}).verified(a)
			o.patch("[]")
			o.reconcile()
			s.awaitReadyNow()
			s.gate(in{"digest": a, "timeout": "5s"}).rejected(gate.VerifyAbsent)
		}},
		{name: "operator-undoes-removal", core: true, run: func(s *stage) {
			s.withKey()
			o := s.operator()
			o.patch(addVerify(verifyKey))
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Tag)
			o.reconcile()
			s.gate(in{"digest": a}).verified(a)
			s.removeByHand()
			s.awaitReadyNow()
			s.writtenAs("53-verify-removed-by-hand.json")
			s.gate(in{"digest": a, "timeout": "5s"}).rejected(gate.VerifyAbsent)
			o.reconcile()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "operator-undoes-second-identity", newer: true, run: func(s *stage) {
			s.trustRoot(s.stack.Sigstore.TrustedRoot())
			s.also(in{"required-signers": signerMain})
			o := s.operator()
			_, o.patches = s.suggest(signerMain, "")
			a := s.push("v1", "a")
			s.signAs(a, githubtoken.Claims{})
			o.reconcile()
			s.gate(in{"digest": a}).verified(a)
			s.edit("kubectl-edit", func(spec *sourcev1.OCIRepositorySpec) {
				spec.Verify.MatchOIDCIdentity = append(spec.Verify.MatchOIDCIdentity,
					exactly(issuer, "https://github.com/acme/hotfix/.github/workflows/cd.yaml@refs/heads/main"))
			})
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			got := s.gate(in{"digest": a, "timeout": "15s"}).rejected(gate.MatchersMultiple, gate.PolicyTooWide, gate.VerificationFailed)
			if !ownedBy(got.Report.Owners, "kubectl-edit", "verify") {
				s.t.Errorf("got the owners %v, want kubectl-edit as one of spec.verify", got.Report.Owners)
			}
			o.reconcile()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "operator-sync-name", run: func(s *stage) {
			s.withKey()
			o := s.operator()
			o.name = "platform"
			o.patch("- target: {kind: OCIRepository, name: flux-system}\n  patch: '- {op: add, path: /spec/verify, value: " + verifyKey + "}'\n")
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Tag)
			o.reconcile()
			s.gate(in{"digest": a, "timeout": "5s"}).rejected(gate.SourceMissing)
			s.gate(in{"digest": a, "name": "platform"}).undecided(gate.AccessDenied)
			s.permit("role.yaml", "platform")
			// The patch still names the old one.
			s.awaitPermitted("platform")
			s.gate(in{"digest": a, "name": "platform", "timeout": "10s"}).rejected(gate.VerifyAbsent)
			o.patch(addVerify(verifyKey))
			o.reconcile()
			s.gate(in{"digest": a, "name": "platform"}).verified(a)
		}},
		{name: "operator-three-identities", core: true, newer: true, run: func(s *stage) {
			s.trustRoot(s.stack.Sigstore.TrustedRoot())
			s.also(in{"required-signers": signerMain, "allowed-signers": signerQueue + signerRelease})
			o := s.operator()
			o.patch(addVerify("{provider: cosign, trustedRootSecretRef: {name: " + rootSecret + "}, matchOIDCIdentity: [{issuer: '^https://token\\.actions\\.githubusercontent\\.com$', subject: '^https://github\\.com/acme/platform/\\.github/workflows/cd\\.yaml@refs/heads/main$'}]}"))
			a := s.push("v1", "a")
			s.signAs(a, githubtoken.Claims{})
			o.reconcile()
			s.gate(in{"digest": a}).verified(a)

			// Two workflows more are to deploy, each with an entry of its own.
			o.patch(addVerify(strings.ReplaceAll(threeEntries, "\n", "")))
			o.reconcile()
			b := s.push("v1", "b")
			s.signAs(b, githubtoken.Claims{})
			s.reconcile()
			s.awaitCondition(sourcev1.ArtifactOutdatedCondition, metav1.ConditionTrue)
			got := s.gate(in{"digest": b, "timeout": "10s"}).rejected(gate.MatchersMultiple, gate.VerificationFailed, gate.DigestMismatch)
			if live := serving(s.read()); live != a || !strings.Contains(got.Outputs["revision"], a) {
				s.t.Errorf("serving %s, output %s, want the old one, %s", live, got.Outputs["revision"], a)
			}

			// What the gate suggests instead.
			_, o.patches = s.suggest(signerMain, signerQueue+signerRelease)
			o.reconcile()
			s.gate(in{"digest": b}).verified(b)
			c := s.push("v1", "c")
			s.signAs(c, byQueue())
			s.gate(in{"digest": c, "required-signers": signerQueue, "allowed-signers": signerMain + signerRelease}).verified(c)
		}},
	}
}

// missed is a deployment whose patch renders without a word and does nothing.
func missed(name, patches string) scenario {
	return scenario{name: name, core: name == "operator-misses-name", run: func(s *stage) {
		s.withKey()
		o := s.operator()
		without, err := o.render()
		s.check(err)
		o.patch(patches)
		with, err := o.render()
		s.check(err)
		if with != without {
			s.t.Fatalf("the patch has done something:\n%s", with)
		}
		a := s.push("v1", "a")
		s.signKey(a, s.ours, cosigncli.Tag)
		o.reconcile()
		s.awaitReadyNow()
		s.gate(in{"digest": a, "timeout": "5s"}).rejected(gate.VerifyAbsent)
	}}
}

// removeByHand removes the policy as kubectl edit does, which sends what was
// changed.
func (s *stage) removeByHand() {
	s.t.Helper()
	_, err := s.objects().Patch(s.t.Context(), sourceName, "application/merge-patch+json", []byte(`{"spec":{"verify":null}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	s.check(err)
}

// awaitReadyNow waits until the source is Ready in its live generation and the
// controller is done with it.
func (s *stage) awaitReadyNow() {
	s.t.Helper()
	s.await("Ready at the live generation", func(o *sourcev1.OCIRepository) bool {
		c := condition(o, "Ready")
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == o.Generation && o.Status.ObservedGeneration == o.Generation
	})
}

// awaitPermitted waits until the API server's authorizer has seen the new Role.
func (s *stage) awaitPermitted(name string) {
	s.t.Helper()
	reviews := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"spec": map[string]any{
			"user": "system:serviceaccount:" + s.namespace + ":flux-verify-gate",
			"resourceAttributes": map[string]any{
				"group": sources.Group, "resource": sources.Resource, "namespace": s.namespace, "name": name, "verb": "get",
			},
		},
	}}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		answer, err := s.stack.Cluster.Dynamic().Resource(reviews).Create(s.t.Context(), review, metav1.CreateOptions{})
		s.check(err)
		if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); allowed {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %s for the Role", patience)
		}
	}
}

func ownedBy(owners []gate.Owner, manager, field string) bool {
	for _, o := range owners {
		if o.Manager == manager && strings.Contains(strings.Join(o.Fields, " "), field) {
			return true
		}
	}
	return false
}

// writtenAs compares the live source with one that a real flux-operator wrote:
// its labels and annotations, and who owns which field.
func (s *stage) writtenAs(file string) {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "gate", "testdata", "cases", "operator", file))
	s.check(err)
	var recorded unstructured.Unstructured
	s.check(json.Unmarshal(content, &recorded.Object))
	live, err := s.objects().Get(s.t.Context(), sourceName, metav1.GetOptions{})
	s.check(err)
	if got, want := operatorShape(s, live), operatorShape(s, &recorded); !reflect.DeepEqual(got, want) {
		s.t.Errorf("the source was written as\n%v\nand by a real flux-operator as\n%v", got, want)
	}
}

// shape is what a writer leaves in the metadata, without values and times.
func operatorShape(s *stage, u *unstructured.Unstructured) map[string]any {
	s.t.Helper()
	labels := map[string]bool{}
	for name := range u.GetLabels() {
		labels[name] = true
	}
	managed := map[string]any{}
	for _, entry := range u.GetManagedFields() {
		if entry.Subresource != "" {
			continue
		}
		var fields any
		s.check(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
		managed[entry.Manager+" "+string(entry.Operation)] = fields
	}
	return map[string]any{"labels": labels, "annotations": u.GetAnnotations(), "managed": managed}
}

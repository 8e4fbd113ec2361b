package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/controller"
	"flux-verify-gate/test/stack/registries"
)

// sourceName is the name of every scenario's source, as in the shipped Role.
const sourceName = "flux-system"

// patience bounds the waiting for something that must come.
const patience = 90 * time.Second

// stage is one scenario's own place: a namespace, a repository, a source in the
// making, and a kubeconfig for the gate with the shipped Role.
type stage struct {
	*world
	t          *testing.T
	name       string
	namespace  string
	kubeconfig string
	// registry is the shared one unless the scenario has taken its own.
	registry *registries.Registry
	// front is the address that the source names instead of the registry's own,
	// where something stands before it.
	front string
	// path is where in it the artifacts are.
	path string
	// desired is the source as it was applied last, or will be first.
	desired *sourcev1.OCIRepository
	// required are the inputs of the gate that say who must have signed.
	required in
	// twoFaced says that the registry does not show everybody the same.
	twoFaced bool
	// history is every state of the source; only for a recording.
	history *cluster.History
}

// in are inputs of the gate.
type in = map[string]string

func newStage(t *testing.T, w *world, sc scenario) *stage {
	t.Helper()
	s := &stage{world: w, t: t, name: sc.name, namespace: sc.namespace, registry: w.stack.Registry}
	var err error
	if s.namespace == "" {
		s.namespace, err = w.stack.Cluster.Namespace(t.Context(), sc.name)
		s.check(err)
	} else {
		s.applyYAML("admin", "{apiVersion: v1, kind: Namespace, metadata: {name: "+s.namespace+"}}")
	}
	s.path = s.namespace + "/platform"
	s.admit()
	s.desired = &sourcev1.OCIRepository{
		TypeMeta:   metav1.TypeMeta{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.OCIRepositoryKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: sourceName},
		Spec: sourcev1.OCIRepositorySpec{
			URL: s.url(), Insecure: true, Reference: &sourcev1.OCIRepositoryRef{Tag: "v1"},
			Interval: metav1.Duration{Duration: 10 * time.Second}, Timeout: &metav1.Duration{Duration: 20 * time.Second},
		},
	}
	if *record {
		s.history, err = w.stack.Cluster.Record(t.Context(), sources, s.namespace, sourceName)
		s.check(err)
	}
	t.Cleanup(func() {
		// What is left would be reconciled until the stack ends.
		ctx, cancel := afterTest()
		defer cancel()
		_ = s.objects().Delete(ctx, sourceName, metav1.DeleteOptions{})
	})
	return s
}

// afterTest is a context for what is removed when a test's own has ended.
func afterTest() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 10*time.Second)
}

// admit makes the gate's service account, with the shipped Role and nothing
// else.
func (s *stage) admit() {
	s.t.Helper()
	s.permit("role.yaml", sourceName)
	account, err := s.stack.Cluster.ServiceAccount(s.t.Context(), s.namespace, "flux-verify-gate", time.Hour)
	s.check(err)
	s.kubeconfig = filepath.Join(s.t.TempDir(), "kubeconfig")
	s.check(cluster.WriteKubeconfig(s.kubeconfig, s.stack.Cluster.Kubeconfig(account)))
}

// permit gives the gate a shipped Role, which names flux-system or the canary,
// for a source of this name. role-reconcile.yaml takes the place of role.yaml,
// role-canary.yaml stands beside either.
func (s *stage) permit(file, name string) {
	s.t.Helper()
	role, err := os.ReadFile(filepath.Join("..", "..", "examples", "rbac", file))
	s.check(err)
	s.applyYAML("admin", strings.NewReplacer(
		"namespace: 'flux-system'", "namespace: '"+s.namespace+"'",
		"resourceNames: ['flux-system']", "resourceNames: ['"+name+"']",
	).Replace(string(role)))
}

func (s *stage) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// url is the repository that the scenario's artifacts are in, as the source
// names it.
func (s *stage) url() string { return "oci://" + s.served() }

// served is that repository without the scheme.
func (s *stage) served() string {
	if s.front != "" {
		return s.front + "/" + s.path
	}
	return s.repository()
}

// repository is the same repository for those who push and sign.
func (s *stage) repository() string { return s.registry.Address() + "/" + s.path }

// ownRegistry gives the scenario a registry of its own, which it may stop.
func (s *stage) ownRegistry(kind registries.Kind) {
	s.t.Helper()
	r, err := s.stack.NewRegistry(s.t.Context(), kind, "registry-of-"+s.namespace)
	s.check(err)
	s.t.Cleanup(func() { s.mustNot("stop the registry", r.Close()) })
	s.registry = r
	s.desired.Spec.URL = s.url()
}

// ownSources gives the scenario a source-controller of its own, which it may
// stop.
func (s *stage) ownSources(env ...string) *controller.Controller {
	s.t.Helper()
	c, err := s.stack.NewSources(s.t.Context(), "source-controller-of-"+s.namespace, s.namespace, env...)
	s.check(err)
	s.t.Cleanup(func() { s.mustNot("stop the controller", c.Close()) })
	s.desired.Labels = map[string]string{controller.ShardLabel: s.namespace}
	return c
}

func (s *stage) mustNot(what string, err error) {
	if err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
}

var sources = sourcev1.GroupVersion.WithResource("ocirepositories")

func (s *stage) objects() dynamic.ResourceInterface { return s.resource(sources) }

func (s *stage) resource(r schema.GroupVersionResource) dynamic.ResourceInterface {
	return s.stack.Cluster.Dynamic().Resource(r).Namespace(s.namespace)
}

// applyYAML applies other objects than the source.
func (s *stage) applyYAML(manager, manifests string) {
	s.t.Helper()
	_, err := s.stack.Cluster.Apply(s.t.Context(), manager, strings.NewReader(manifests))
	s.check(err)
}

// apply applies the source with changes, as kustomize-controller does: what an
// earlier call has set and this one does not is removed. The changes stay.
func (s *stage) apply(changes ...func(*sourcev1.OCIRepositorySpec)) {
	s.t.Helper()
	s.applyAs("kustomize-controller", changes...)
}

func (s *stage) applyAs(manager string, changes ...func(*sourcev1.OCIRepositorySpec)) {
	s.t.Helper()
	for _, change := range changes {
		change(&s.desired.Spec)
	}
	_, err := s.objects().Apply(s.t.Context(), sourceName, plain(s.t, s.desired), metav1.ApplyOptions{FieldManager: manager, Force: true})
	s.check(err)
}

// plain returns what a person would have written of an object.
func plain(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "status")
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u
}

// edit changes the live source by an update, as kubectl edit does.
func (s *stage) edit(manager string, change func(*sourcev1.OCIRepositorySpec)) {
	s.t.Helper()
	for {
		live := s.read()
		version := live.ResourceVersion
		change(&live.Spec)
		u := plain(s.t, live)
		u.SetResourceVersion(version)
		_, err := s.objects().Update(s.t.Context(), u, metav1.UpdateOptions{FieldManager: manager})
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "the object has been modified") {
			s.t.Fatal(err)
		}
	}
}

// read returns the live source.
func (s *stage) read() *sourcev1.OCIRepository {
	s.t.Helper()
	u, err := s.objects().Get(s.t.Context(), sourceName, metav1.GetOptions{})
	s.check(err)
	return s.typed(u)
}

// readAny is read for a source that need not be there.
func (s *stage) readAny() *sourcev1.OCIRepository {
	s.t.Helper()
	list, err := s.objects().List(s.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + sourceName})
	s.check(err)
	if len(list.Items) == 0 {
		return nil
	}
	return s.typed(&list.Items[0])
}

// typed is a source as the API server gives it.
func (s *stage) typed(u *unstructured.Unstructured) *sourcev1.OCIRepository {
	s.t.Helper()
	var o sourcev1.OCIRepository
	s.check(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o))
	return &o
}

// reconcile asks the controller to look again, as flux reconcile does.
func (s *stage) reconcile() {
	s.t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		meta.ReconcileRequestAnnotation: time.Now().Format(time.RFC3339Nano),
	}}})
	s.check(err)
	_, err = s.objects().Patch(s.t.Context(), sourceName, "application/merge-patch+json", patch, metav1.PatchOptions{FieldManager: "flux"})
	s.check(err)
}

// version returns the source as it was at a resource version, nil if it never
// was. What the gate has seen the recording's watch has seen, or will.
func (s *stage) version(resourceVersion string) *unstructured.Unstructured {
	s.t.Helper()
	if resourceVersion == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	v, err := s.history.Wait(ctx, func(v cluster.Version) bool { return v.Object.GetResourceVersion() == resourceVersion })
	s.check(err)
	return v.Object
}

// await returns the live source once it is as it must become.
func (s *stage) await(what string, done func(*sourcev1.OCIRepository) bool) *sourcev1.OCIRepository {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		live := s.read()
		if done(live) {
			return live
		}
		if time.Now().After(deadline) {
			text, _ := yaml.Marshal(live.Status)
			s.t.Fatalf("waited %s for: %s\n%s", patience, what, text)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// eventually waits for something that must come.
func (s *stage) eventually(what string, done func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// awaitCondition waits for a condition at the live generation.
func (s *stage) awaitCondition(kind string, status metav1.ConditionStatus) *sourcev1.OCIRepository {
	s.t.Helper()
	return s.await(fmt.Sprintf("%s %s", kind, status), func(o *sourcev1.OCIRepository) bool {
		c := condition(o, kind)
		return c != nil && c.Status == status && c.ObservedGeneration == o.Generation
	})
}

// awaitServing waits until a digest is in status.artifact.
func (s *stage) awaitServing(digest string) *sourcev1.OCIRepository {
	s.t.Helper()
	return s.await("serving "+digest, func(o *sourcev1.OCIRepository) bool { return serving(o) == digest })
}

// serving returns the digest of what a source serves; empty if nothing.
func serving(o *sourcev1.OCIRepository) string {
	if o.Status.Artifact == nil {
		return ""
	}
	_, digest, found := strings.Cut(o.Status.Artifact.Revision, "@")
	if !found {
		return o.Status.Artifact.Revision
	}
	return digest
}

func condition(o *sourcev1.OCIRepository, kind string) *metav1.Condition {
	for i := range o.Status.Conditions {
		if o.Status.Conditions[i].Type == kind {
			return &o.Status.Conditions[i]
		}
	}
	return nil
}

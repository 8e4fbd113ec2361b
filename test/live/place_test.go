package live

import (
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
	"k8s.io/client-go/util/retry"

	"flux-verify-gate/gate/action/actiontest"
	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/testcontroller"
)

const (
	// object is the name in examples/rbac, which the tests apply as it is
	// shipped but for the namespace.
	object  = "flux-system"
	account = "flux-verify-gate"
)

// place is a namespace with a service account for the gate.
type place struct {
	t         *testing.T
	cluster   *cluster.Cluster
	namespace string
	// name is that of the object.
	name string
	// user is the gate's name to the API server.
	user string
	// credentials are the gate's.
	credentials cluster.Credentials
	kubeconfig  string
	resource    schema.GroupVersionResource
}

// newPlace makes a namespace and gives the gate a Role of examples/rbac, or
// none if role is empty.
func newPlace(t *testing.T, c *cluster.Cluster, role string) *place {
	t.Helper()
	namespace, err := c.Namespace(t.Context(), "live")
	if err != nil {
		t.Fatal(err)
	}
	p := &place{
		t: t, cluster: c, namespace: namespace, name: object, user: "system:serviceaccount:" + namespace + ":" + account,
		resource: testcontroller.Resource(),
	}
	if p.credentials, err = c.ServiceAccount(t.Context(), namespace, account, time.Hour); err != nil {
		t.Fatal(err)
	}
	if role != "" {
		p.allow(role)
	}
	p.kubeconfig = p.write()
	return p
}

// steadyPlace is a place in the shared cluster with the shipped Role.
func steadyPlace(t *testing.T) *place {
	t.Helper()
	return newPlace(t, steadyCluster(t), shipped(t, "role.yaml"))
}

// shipped reads an example of the repository.
func shipped(t *testing.T, name string) string {
	t.Helper()
	role, err := os.ReadFile(filepath.Join("..", "..", "examples", "rbac", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(role)
}

// allow applies a Role that was written for the namespace flux-system.
func (p *place) allow(role string) {
	p.t.Helper()
	role = strings.ReplaceAll(role, "namespace: 'flux-system'", "namespace: '"+p.namespace+"'")
	if _, err := p.cluster.Apply(p.t.Context(), "kubectl", strings.NewReader(role)); err != nil {
		p.t.Fatal(err)
	}
}

// write writes the gate's kubeconfig.
func (p *place) write() string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(path, p.cluster.Kubeconfig(p.credentials)); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// inputs are those of a run in this place that asks for the least; changes
// replace or add some.
func (p *place) inputs(changes ...map[string]string) map[string]string {
	inputs := map[string]string{
		"kubeconfig": p.kubeconfig, "namespace": p.namespace, "name": object,
		"required-keys": "{secret: cosign}", "signature": "skip", "digest": "any", "timeout": "100s",
	}
	for _, more := range changes {
		for name, value := range more {
			inputs[name] = value
		}
	}
	return inputs
}

// gate starts the gate here.
func (p *place) gate(changes ...map[string]string) *actiontest.Process {
	p.t.Helper()
	return startGate(p.t, p.inputs(changes...))
}

func (p *place) objects() dynamic.ResourceInterface {
	return p.cluster.Dynamic().Resource(p.resource).Namespace(p.namespace)
}

// revision is what a tag that points to some content is resolved to.
func revision(content string) string { return "v1@" + testcontroller.Digest(content) }

// create makes the object as kustomize-controller does, without a status.
func (p *place) create(edits ...func(*sourcev1.OCIRepository)) {
	p.t.Helper()
	o := &sourcev1.OCIRepository{
		TypeMeta:   metav1.TypeMeta{Kind: sourcev1.OCIRepositoryKind, APIVersion: p.resource.GroupVersion().String()},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name},
		Spec: sourcev1.OCIRepositorySpec{
			URL: "oci://registry.stack.test/acme/platform", Interval: metav1.Duration{Duration: time.Minute},
			Reference: &sourcev1.OCIRepositoryRef{Tag: "v1"},
			Verify: &sourcev1.OCIRepositoryVerification{
				Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "cosign"},
			},
		},
	}
	for _, edit := range edits {
		edit(o)
	}
	if _, err := p.objects().Create(p.t.Context(), untyped(p.t, o), metav1.CreateOptions{FieldManager: "kustomize-controller"}); err != nil {
		p.t.Fatal(err)
	}
}

// edit changes the object's spec or metadata.
func (p *place) edit(edit func(*sourcev1.OCIRepository)) {
	p.t.Helper()
	p.update("", edit)
}

// settle writes the status that the controller leaves when it has verified and
// stored a revision at the object's generation, with changes.
func (p *place) settle(revision string, edits ...func(*sourcev1.OCIRepository)) {
	p.t.Helper()
	p.update("status", append([]func(*sourcev1.OCIRepository){verified(revision)}, edits...)...)
}

func (p *place) update(subresource string, edits ...func(*sourcev1.OCIRepository)) {
	p.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := p.objects().Get(p.t.Context(), p.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		o := typed(p.t, now)
		for _, edit := range edits {
			edit(o)
		}
		if subresource == "" {
			_, err = p.objects().Update(p.t.Context(), untyped(p.t, o), metav1.UpdateOptions{FieldManager: "kubectl-edit"})
		} else {
			_, err = p.objects().UpdateStatus(p.t.Context(), untyped(p.t, o), metav1.UpdateOptions{FieldManager: testcontroller.FieldManager})
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// remove deletes the object.
func (p *place) remove() {
	p.t.Helper()
	if err := p.objects().Delete(p.t.Context(), p.name, metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// requests counts what the gate asked the API server about the object, by verb.
func (p *place) requests() map[string]int {
	p.t.Helper()
	requests, err := p.cluster.Requests(p.user)
	if err != nil {
		p.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.Verb]++
	}
	return counts
}

func typed(t *testing.T, o *unstructured.Unstructured) *sourcev1.OCIRepository {
	t.Helper()
	s := &sourcev1.OCIRepository{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func untyped(t *testing.T, o *sourcev1.OCIRepository) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// verified is the status of a source that serves a verified revision.
func verified(revision string) func(*sourcev1.OCIRepository) {
	return func(o *sourcev1.OCIRepository) {
		size := int64(1)
		o.Status.ObservedGeneration = o.Generation
		o.Status.URL = "http://source-controller.stack.test/latest.tar.gz"
		o.Status.Artifact = &meta.Artifact{
			Path: "ocirepository/a.tar.gz", URL: "http://source-controller.stack.test/a.tar.gz", Revision: revision,
			Digest: testcontroller.Digest("tarball of " + revision), LastUpdateTime: metav1.Now().Rfc3339Copy(), Size: &size,
		}
		o.Status.Conditions = nil
		condition(meta.ReadyCondition, true, meta.SucceededReason, "stored artifact for digest '"+revision+"'")(o)
		condition(sourcev1.ArtifactInStorageCondition, true, meta.SucceededReason, "stored artifact for digest '"+revision+"'")(o)
		condition(sourcev1.SourceVerifiedCondition, true, meta.SucceededReason, "verified signature of revision "+revision)(o)
	}
}

// condition sets a condition at the object's generation.
func condition(kind string, status bool, reason, message string) func(*sourcev1.OCIRepository) {
	return func(o *sourcev1.OCIRepository) {
		c := metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message,
			ObservedGeneration: o.Generation, LastTransitionTime: metav1.Now().Rfc3339Copy(),
		}
		if status {
			c.Status = metav1.ConditionTrue
		}
		drop(kind)(o)
		o.Status.Conditions = append(o.Status.Conditions, c)
	}
}

// drop removes a condition.
func drop(kind string) func(*sourcev1.OCIRepository) {
	return func(o *sourcev1.OCIRepository) {
		var kept []metav1.Condition
		for _, c := range o.Status.Conditions {
			if c.Type != kind {
				kept = append(kept, c)
			}
		}
		o.Status.Conditions = kept
	}
}

// refused is the status after a failed verification of a revision that is not
// stored.
func refused(incoming, why string) func(*sourcev1.OCIRepository) {
	return func(o *sourcev1.OCIRepository) {
		message := fmt.Sprintf("failed to verify the signature using provider 'cosign': %s", why)
		condition(sourcev1.ArtifactOutdatedCondition, true, "NewRevision", fmt.Sprintf("new revision '%s' for 'registry.stack.test/acme/platform'", incoming))(o)
		condition(sourcev1.SourceVerifiedCondition, false, sourcev1.VerificationError, message)(o)
		condition(meta.ReadyCondition, false, sourcev1.VerificationError, message)(o)
		condition(meta.ReconcilingCondition, true, meta.ProgressingWithRetryReason, "building artifact: new revision")(o)
	}
}

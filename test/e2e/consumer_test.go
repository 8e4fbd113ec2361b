package e2e

import (
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// applied is the content, in the cluster, of the artifact's ConfigMap.
func (s *stage) applied() string {
	s.t.Helper()
	u, err := s.resource(configMaps).Get(s.t.Context(), "settings", metav1.GetOptions{})
	s.check(err)
	content, _, err := unstructured.NestedString(u.Object, "data", "content")
	s.check(err)
	return content
}

// awaitApplied waits until kustomize-controller has applied a content.
func (s *stage) awaitApplied(content string) {
	s.t.Helper()
	found := "no ConfigMap"
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		u, err := s.resource(configMaps).Get(s.t.Context(), "settings", metav1.GetOptions{})
		if err == nil {
			if found, _, _ = unstructured.NestedString(u.Object, "data", "content"); found == content {
				return
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %s for the content %q in the cluster, found %q", patience, content, found)
		}
	}
}

// consume has kustomize-controller apply once more, and waits for the end of
// that.
func (s *stage) consume() {
	s.t.Helper()
	token := time.Now().Format(time.RFC3339Nano)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, token)
	_, err := s.resource(kustomizations).Patch(s.t.Context(), sourceName, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{FieldManager: "flux"})
	s.check(err)
	s.eventually("kustomize-controller", func() bool {
		u, err := s.resource(kustomizations).Get(s.t.Context(), sourceName, metav1.GetOptions{})
		s.check(err)
		handled, _, _ := unstructured.NestedString(u.Object, "status", "lastHandledReconcileAt")
		return handled == token
	})
}

// consumers are stories of what the cluster does with an artifact meanwhile.
func consumers() []scenario {
	return []scenario{
		{name: "consumer-keeps-the-old", core: true, run: func(s *stage) {
			s.withKey()
			o := s.operator()
			o.patch(addVerify(verifyKey))
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Tag)
			o.reconcile()
			s.awaitApplied("a")
			s.gate(in{"digest": a}).verified(a)

			b := s.push("v1", "b")
			s.reconcile()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			got := s.gate(in{"digest": b, "timeout": "5s"}).rejected(gate.VerificationFailed, gate.DigestMismatch, gate.ArtifactOutdated)
			if got.Outputs["revision"] != "v1@"+a {
				s.t.Errorf("got the revision %s, want the old one", got.Outputs["revision"])
			}
			// The old one is not only left, it is applied again.
			_, err := s.resource(configMaps).Patch(s.t.Context(), "settings", "application/merge-patch+json", []byte(`{"data":{"content":"by hand"}}`), metav1.PatchOptions{FieldManager: "somebody"})
			s.check(err)
			s.consume()
			s.awaitApplied("a")

			s.signKey(b, s.ours, cosigncli.Tag)
			s.gate(in{"digest": b}).verified(b)
			s.awaitApplied("b")
		}},
		{name: "consumer-applies-the-unsigned", run: func(s *stage) {
			s.withKey()
			o := s.operator()
			o.patch(addVerify(verifyKey))
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Tag)
			o.reconcile()
			s.awaitApplied("a")
			b := s.push("v1", "b")
			s.reconcile()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": b, "timeout": "5s"}).rejected(gate.VerificationFailed, gate.DigestMismatch)

			s.removeByHand()
			s.awaitApplied("b")
			s.awaitReadyNow()
			s.gate(in{"digest": b, "timeout": "5s"}).rejected(gate.VerifyAbsent, gate.Unsigned)
			s.gate(in{"timeout": "5s"}).rejected(gate.VerifyAbsent, gate.Unsigned)

			// The operator restores the policy, and nothing is undone by that.
			o.reconcile()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			got := s.gate(in{"digest": b, "timeout": "10s"}).rejected(gate.VerificationFailed, gate.Unsigned)
			if got.Outputs["revision"] != "v1@"+b {
				s.t.Errorf("got the revision %s, want the unsigned one", got.Outputs["revision"])
			}
			s.consume()
			if content := s.applied(); content != "b" {
				s.t.Errorf("the cluster has %q, want what was applied without a signature", content)
			}
		}},
	}
}

package gate

import (
	"context"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

// A condition that is bad news is answered by its absence and by False, and by
// nothing else: unknown never passes.
func TestBadNewsIsNoneOnlyWhereFalse(t *testing.T) {
	t.Parallel()
	policy, err := NewPolicy(Requirements{Keys: &Keys{Secret: "cosign-pub"}, Digest: DigestAny, Signature: SignatureSkip})
	if err != nil {
		t.Fatal(err)
	}
	for kind, code := range map[string]Code{
		meta.ReconcilingCondition:                SourceReconciling,
		meta.StalledCondition:                    SourceStalled,
		sourcev1.FetchFailedCondition:            FetchFailed,
		sourcev1.ArtifactOutdatedCondition:       ArtifactOutdated,
		sourcev1.StorageOperationFailedCondition: StorageFailed,
	} {
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown, "true", ""} {
			s := serving(nil, metav1.ConditionTrue, "")
			s.Object.Status.Conditions = append(s.Object.Status.Conditions,
				metav1.Condition{Type: kind, Status: metav1.ConditionFalse}, metav1.Condition{Type: kind, Status: status})
			want := Fail
			if status == metav1.ConditionFalse {
				want = Pass
			}
			r := Decide(context.Background(), policy, Evidence{Source: s}, time.Time{})
			for _, f := range r.Findings {
				if f.Code == code && f.Outcome != want {
					t.Errorf("%s %q: got %s, want %s", kind, status, f.Outcome, want)
				}
			}
		}
	}
}

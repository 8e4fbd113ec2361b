package e2e

import (
	"path/filepath"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cluster"
)

// places are gates that look at the wrong thing, or may not look.
func places() []scenario {
	return []scenario{
		{name: "source-missing", core: true, run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.gate(in{"digest": a, "timeout": "5s"}).rejected(gate.SourceMissing)
		}},
		{name: "source-comes-while-waiting", run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "a")
			run := s.gate(in{"digest": a})
			run.waits(gate.SourceMissing)
			s.apply()
			run.verified(a)
		}},
		{name: "source-deleted", run: func(s *stage) {
			a := s.withVerified()
			s.deleteSource()
			s.gate(in{"digest": a, "timeout": "5s"}).rejected(gate.SourceMissing)
		}},
		{name: "source-deleted-and-deployed-again", run: func(s *stage) {
			a := s.withVerified()
			before := s.read().UID
			s.deleteSource()
			run := s.gate(in{"digest": a})
			run.waits(gate.SourceMissing)
			s.apply()
			if got := run.verified(a); got.Report.Source.UID == string(before) || got.Report.Source.UID == "" {
				s.t.Errorf("verified the object %q, want another one than %q", got.Report.Source.UID, before)
			}
		}},
		{name: "source-url-of-another", run: func(s *stage) {
			a := s.withVerified()
			s.gate(in{"digest": a, "url": strings.Replace(s.url(), "/platform", "/website", 1)}).rejected(gate.SourceURL)
		}},
		{name: "source-url-impossible", run: func(s *stage) {
			// The API server takes it, the controller gives up.
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.desired.Spec.URL += "/Website"
			s.apply()
			s.becomesLike("Stalled True URLInvalid of 1", "artifact false")
			s.gate(in{"digest": a, "url": s.desired.Spec.URL}).rejected(gate.FetchFailed, gate.SourceStalled, gate.ArtifactMissing)
		}},
		{name: "source-stalled", run: func(s *stage) {
			// A way to log in that this controller does not offer: it gives up without
			// a fetch, and what it verified before stays.
			a := s.withVerified()
			_, err := s.stack.Cluster.ServiceAccount(s.t.Context(), s.namespace, "reader", time.Hour)
			s.check(err)
			s.apply(func(spec *sourcev1.OCIRepositorySpec) { spec.Provider, spec.ServiceAccountName = "aws", "reader" })
			s.becomesLike("Stalled True FeatureGateDisabled of 2", "generation 2, observed 2", "SourceVerified True Succeeded of 1", "artifact true",
				sourcev1.FetchFailedCondition)
			s.gate(in{"digest": a}).rejected(gate.SourceStalled, gate.VerificationStale, gate.NotReady)
		}},
		{name: "account-without-rights", run: func(s *stage) {
			a := s.withVerified()
			stranger, err := s.stack.Cluster.ServiceAccount(s.t.Context(), s.namespace, "stranger", time.Hour)
			s.check(err)
			path := filepath.Join(s.t.TempDir(), "stranger")
			s.check(cluster.WriteKubeconfig(path, s.stack.Cluster.Kubeconfig(stranger)))
			s.gate(in{"digest": a, "kubeconfig": path, "timeout": soon}).undecided(gate.AccessDenied)
		}},
	}
}

// deleteSource deletes the source and waits until it is gone.
func (s *stage) deleteSource() {
	s.t.Helper()
	s.check(s.objects().Delete(s.t.Context(), sourceName, metav1.DeleteOptions{}))
	s.eventually("the source to be gone", func() bool { return s.readAny() == nil })
}

package e2e

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/registries"
)

// controllers are source-controllers that are not there, come back, or have
// lost what they had stored.
func controllers() []scenario {
	return []scenario{
		{name: "controller-down", run: func(s *stage) {
			// Nothing has changed, so what it said last holds.
			c := s.ownSources()
			a := s.withVerified()
			s.check(c.Stop())
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "controller-never-there", run: func(s *stage) {
			c := s.ownSources()
			s.check(c.Stop())
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.apply()
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationMissing, gate.ArtifactMissing, gate.SourceUnobserved, gate.NotReady)
		}},
		{name: "controller-down-spec-touched", core: true, run: func(s *stage) {
			// All conditions are green, and of the older generation.
			c := s.ownSources()
			a := s.withVerified()
			s.check(c.Stop())
			s.apply(touch)
			s.becomesLike("generation 2, observed 1", "Ready True Succeeded of 1", "SourceVerified True Succeeded of 1")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationStale, gate.SourceUnobserved, gate.NotReady)
		}},
		{name: "controller-down-ref-changed", run: func(s *stage) {
			c := s.ownSources()
			s.withVerified()
			b := s.pushSigned("v2", "b")
			s.check(c.Stop())
			s.apply(follow("v2"))
			s.gate(in{"digest": b, "timeout": soon}).rejected(gate.DigestMismatch, gate.VerificationStale, gate.SourceUnobserved)
		}},
		{name: "controller-and-registry-down", run: func(s *stage) {
			s.ownRegistry(registries.Referrers)
			c := s.ownSources()
			a := s.withVerified()
			s.check(s.registry.Stop())
			s.reconcile()
			s.becomes("13c-verified-then-registry-down")
			s.check(c.Stop())
			s.apply(follow("v9"))
			s.becomes("14a-controller-down-spec-changed")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.FetchFailed, gate.VerificationStale, gate.SourceUnobserved)
		}},
		{name: "controller-down-ignore-changed", run: func(s *stage) {
			c := s.ownSources()
			a := s.withVerified()
			s.check(c.Stop())
			ignore := "*.md"
			s.apply(func(spec *sourcev1.OCIRepositorySpec) { spec.Ignore = &ignore })
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationStale, gate.ContentConfig, gate.SourceUnobserved)
			s.check(c.Restart(s.t.Context()))
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "controller-back", run: func(s *stage) {
			c := s.ownSources()
			s.withVerified()
			b := s.pushSigned("v2", "b")
			s.check(c.Stop())
			s.apply(follow("v2"))
			run := s.gate(in{"digest": b})
			run.waits(gate.DigestMismatch)
			s.check(c.Restart(s.t.Context()))
			run.verified(b)
		}},
		{name: "controller-restarted", run: func(s *stage) {
			c := s.ownSources()
			a := s.withVerified()
			stored := s.read().Status.Artifact.LastUpdateTime
			s.check(c.Restart(s.t.Context()))
			s.reconciled()
			s.gate(in{"digest": a}).verified(a)
			if again := s.read().Status.Artifact.LastUpdateTime; !again.Equal(&stored) {
				s.t.Errorf("the artifact was stored again at %s; want that of %s still", again, stored)
			}
		}},
		{name: "storage-lost", core: true, run: func(s *stage) {
			c := s.ownSources()
			a := s.withVerified()
			s.check(c.Stop())
			s.check(c.LoseStorage())
			s.check(c.Restart(s.t.Context()))
			s.reconciled()
			s.gate(in{"digest": a}).verified(a)
			if path := filepath.Join(c.Storage(), s.read().Status.Artifact.Path); !exists(path) {
				s.t.Errorf("the artifact was not stored again at %s", path)
			}
		}},
		{name: "storage-lost-registry-down", run: func(s *stage) {
			s.ownRegistry(registries.Referrers)
			c := s.ownSources()
			a := s.withVerified()
			s.check(c.Stop())
			s.check(c.LoseStorage())
			s.check(s.registry.Stop())
			s.check(c.Restart(s.t.Context()))
			s.becomesLike("FetchFailed True OCIArtifactPullFailed of 1", "SourceVerified True Succeeded of 1", "artifact false")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.FetchFailed, gate.ArtifactMissing, gate.VerificationOtherRevision)
		}},
		{name: "storage-lost-key-rotated", run: func(s *stage) {
			// The loss makes the controller look at the Secret again.
			c := s.ownSources()
			a := s.withRotatedKey()
			s.check(c.Stop())
			s.check(c.LoseStorage())
			s.check(c.Restart(s.t.Context()))
			s.becomesLike("SourceVerified False VerificationError of 1", "artifact false")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
		}},
		{name: "storage-damaged", run: func(s *stage) {
			// A damaged file is noticed, and fetched and verified again.
			c := s.ownSources()
			a := s.withVerified()
			path := filepath.Join(c.Storage(), s.read().Status.Artifact.Path)
			s.check(os.WriteFile(path, []byte("damaged"), 0o600))
			s.reconciled()
			s.gate(in{"digest": a}).verified(a)
			if content, err := os.ReadFile(path); err != nil || string(content) == "damaged" {
				s.t.Errorf("the artifact was not stored again: %v", err)
			}
		}},
		{name: "storage-broken", run: func(s *stage) {
			// A file where the controller wants a directory.
			c := s.ownSources()
			s.check(os.WriteFile(filepath.Join(c.Storage(), "ocirepository"), nil, 0o600))
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.apply()
			failed := "StorageOperationFailed True DirectoryCreationFailed of 1"
			s.becomesLike(failed, "SourceVerified True Succeeded of 1", "artifact false")
			// At each try the condition goes for a moment: let the last word be one
			// with it.
			for s.check(c.Stop()); !slices.Contains(stateLines(s.read()), failed); s.check(c.Stop()) {
				s.check(c.Restart(s.t.Context()))
				s.becomesLike(failed)
			}
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.StorageFailed, gate.ArtifactMissing, gate.VerificationOtherRevision)
		}},
		{name: "source-deleting", run: func(s *stage) {
			// A controller that is not there keeps the finalizer.
			c := s.ownSources()
			a := s.withVerified()
			s.check(c.Stop())
			s.check(s.objects().Delete(s.t.Context(), sourceName, metav1.DeleteOptions{}))
			s.gate(in{"digest": a}).rejected(gate.SourceDeleting)
			s.check(c.Restart(s.t.Context()))
		}},
		{name: "reconcile-asked-of-nobody", run: func(s *stage) {
			// The request is never handled: what stands there is of before.
			c := s.ownSources()
			a := s.withVerified()
			s.permit("role-reconcile.yaml", sourceName)
			s.check(c.Stop())
			s.gate(in{"digest": a, "timeout": soon, "reconcile": "true"}).rejected(gate.SourceUnobserved)
		}},
		{name: "reconcile-asked", run: func(s *stage) {
			rarely(&s.desired.Spec)
			s.withVerified()
			s.permit("role-reconcile.yaml", sourceName)
			b := s.pushSigned("v1", "b")
			s.gate(in{"digest": b, "reconcile": "true"}).verified(b)
			if s.read().Annotations[meta.ReconcileRequestAnnotation] == "" {
				s.t.Error("there is no request on the source")
			}
		}},
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

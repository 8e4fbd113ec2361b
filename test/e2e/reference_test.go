package e2e

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
)

// movedToUnsigned is the shape of a source whose tag has moved from a verified
// artifact to one that is refused.
var movedToUnsigned = []string{
	"generation 1, observed 1", "Ready False VerificationError of 1", "SourceVerified False VerificationError of 1",
	"ArtifactOutdated True NewRevision of 1", "artifact true",
}

// references are the ways in which a source says which artifact it wants, and
// tags that move.
func references() []scenario {
	return []scenario{
		{name: "tag-moved-to-unsigned", core: true, run: func(s *stage) {
			a := s.withVerified()
			b := s.push("v1", "b")
			s.reconcile()
			s.becomesLike(movedToUnsigned...)
			s.gate(in{"digest": b, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactOutdated, gate.DigestMismatch, gate.NotReady)
			if got := serving(s.read()); got != a {
				s.t.Errorf("the controller serves %q now, want %s still", got, a)
			}
		}},
		{name: "tag-moved-then-signed", core: true, run: func(s *stage) {
			s.withVerified()
			b := s.push("v1", "b")
			s.reconcile()
			s.becomesLike(movedToUnsigned...)
			run := s.gate(in{"digest": b})
			run.waits(gate.VerificationFailed)
			s.signKey(b, s.ours, cosigncli.Tag)
			run.verified(b)
			s.becomes("10c-then-signed")
		}},
		{name: "tag-moved-from-what-is-promoted", run: func(s *stage) {
			// The old artifact is served still, but the source is not in order.
			a := s.withVerified()
			s.push("v1", "b")
			s.reconcile()
			s.becomesLike(movedToUnsigned...)
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactOutdated)
		}},
		{name: "tag-moved-on", run: func(s *stage) {
			// Somebody else's good deployment came after ours.
			a := s.withVerified()
			b := s.pushSigned("v1", "b")
			s.reconcile()
			s.awaitServing(b)
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.DigestMismatch)
			s.gate(in{"digest": b}).verified(b)
		}},
		{name: "tag-of-nothing", core: true, run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.apply(follow("v9"))
			s.becomesLike("FetchFailed True OCIArtifactPullFailed of 1", "artifact false")
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.FetchFailed, gate.ArtifactMissing, gate.VerificationMissing)
		}},
		{name: "digest-of-another-tag", run: func(s *stage) {
			// The pipeline has pushed b, and the source follows another tag.
			s.withVerified()
			b := s.pushSigned("v2", "b")
			s.gate(in{"digest": b, "timeout": soon}).rejected(gate.DigestMismatch)
		}},
		{name: "ref-changed", run: func(s *stage) {
			s.withVerified()
			b := s.pushSigned("v2", "b")
			s.apply(follow("v2"))
			s.gate(in{"digest": b}).verified(b)
		}},
		{name: "semver-ref", run: func(s *stage) {
			s.withKey()
			for _, version := range []string{"1.0.0", "1.2.0", "2.0.0"} {
				s.pushSigned(version, version)
			}
			s.apply(reference(sourcev1.OCIRepositoryRef{SemVer: "1.x"}))
			wanted := s.pushSigned("1.10.0", "newest of 1.x")
			s.reconcile()
			got := s.gate(in{"digest": wanted}).verified(wanted)
			if want := "1.10.0@" + wanted; got.Outputs["revision"] != want {
				s.t.Errorf("got revision %s, want %s", got.Outputs["revision"], want)
			}
		}},
		{name: "semver-newest-unsigned", run: func(s *stage) {
			// The controller does not fall back to the newest signed version.
			s.withKey()
			s.pushSigned("1.0.0", "1.0.0")
			newest := s.push("1.1.0", "1.1.0")
			s.apply(reference(sourcev1.OCIRepositoryRef{SemVer: ">=1.0.0"}))
			s.becomes("03-unsigned")
			s.gate(in{"digest": newest, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
		}},
		{name: "digest-ref", run: func(s *stage) {
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.push("v1", "b") // the tag has moved on, and does not count
			s.apply(reference(sourcev1.OCIRepositoryRef{Tag: "v1", Digest: a}))
			got := s.gate(in{"digest": a}).verified(a)
			if got.Outputs["revision"] != a {
				s.t.Errorf("got revision %s, want the bare %s", got.Outputs["revision"], a)
			}
		}},
		{name: "digest-ref-of-unsigned", run: func(s *stage) {
			s.withKey()
			s.pushSigned("v1", "a")
			b := s.push("v2", "b")
			s.apply(reference(sourcev1.OCIRepositoryRef{Digest: b}))
			s.becomes("03-unsigned")
			s.gate(in{"digest": b, "timeout": soon}).rejected(gate.VerificationFailed, gate.ArtifactMissing)
		}},
		{name: "pull-failed-after-verification", run: func(s *stage) {
			s.brokenPull()
			got := s.gate(in{"timeout": soon}).rejected(gate.FetchFailed, gate.VerificationOtherRevision, gate.ArtifactOutdated)
			if condition(s.read(), sourcev1.SourceVerifiedCondition).Status != "True" {
				s.t.Errorf("the controller does not say any more that it verified the artifact that it cannot pull; report %v", got.Report.Findings)
			}
		}},
		{name: "tag-moved-back-after-failed-pull", core: true, run: func(s *stage) {
			// Everything is green, and the verification is of another artifact.
			a := s.brokenPull()
			s.tag("v1", a)
			s.reconcile()
			s.becomesLike("Ready True Succeeded of 1", "SourceVerified True Succeeded of 1", sourcev1.FetchFailedCondition,
				sourcev1.ArtifactOutdatedCondition)
			s.gate(in{"digest": a, "timeout": soon}).rejected(gate.VerificationOtherRevision)
			// What the remedy says does help.
			s.apply(touch)
			s.gate(in{"digest": a}).verified(a)
		}},
	}
}

// fluxContent is the media type of the layer that flux push artifact makes.
const fluxContent = "application/vnd.cncf.flux.content.v1.tar+gzip"

// brokenPull makes a source that serves a verified artifact, whose digest is
// returned, while its tag has moved to one that is signed too, and has no layer
// that the source could take.
func (s *stage) brokenPull() string {
	s.t.Helper()
	s.withKey()
	s.desired.Spec.LayerSelector = &sourcev1.OCILayerSelector{MediaType: fluxContent, Operation: sourcev1.OCILayerExtract}
	a := s.pushSigned("v1", "a")
	s.apply()
	s.awaitServing(a)
	s.becomes("10a-verified")
	s.signKey(s.pushWithoutContent("v1"), s.ours, cosigncli.Tag)
	s.reconcile()
	s.becomesLike("SourceVerified True Succeeded of 1", "FetchFailed True OCIArtifactLayerOperationFailed of 1", "artifact true")
	return a
}

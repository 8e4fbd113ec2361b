package gate

import (
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

// verificationState is what SourceVerified says of what is serving now.
type verificationState int

// The states, from the one answer that counts to the ones that may still
// become it.
const (
	verificationGood verificationState = iota
	verificationBad
	verificationOutstanding
)

// verification sums SourceVerified up. Outstanding is everything that a later
// status may still turn either way: no condition, another generation, another
// revision, a text that does not parse.
func (s *Source) verification() verificationState {
	if s.anyWith(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse) != nil {
		return verificationBad
	}
	c := s.condition(sourcev1.SourceVerifiedCondition)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != meta.SucceededReason || c.ObservedGeneration != s.Object.Generation {
		return verificationOutstanding
	}
	if revision, ok := verifiedRevision(c.Message); !ok || revision != s.revision() {
		return verificationOutstanding
	}
	return verificationGood
}

// failedDigest gives the digest of the revision whose verification failed, as
// docs/checks.md says to find it; empty where that is unknown.
func (s *Source) failedDigest() string {
	for _, kind := range []string{sourcev1.ArtifactOutdatedCondition, meta.ReadyCondition, meta.ReconcilingCondition, sourcev1.SourceVerifiedCondition} {
		for _, c := range s.conditionsOf(kind) {
			if revision, ok := incomingRevision(c.Message); ok {
				return digestOf(revision)
			}
		}
	}
	if s.takingIn() {
		return ""
	}
	return digestOf(s.revision())
}

// takingIn says whether the controller is taking in a revision other than the
// one that is stored.
func (s *Source) takingIn() bool {
	if s.revision() == "" || s.anyWith(sourcev1.ArtifactOutdatedCondition, metav1.ConditionTrue) != nil {
		return true
	}
	// "building artifact" is what Reconciling says while a revision other than
	// the stored one is built.
	c := s.anyWith(meta.ReconcilingCondition, metav1.ConditionTrue)
	return c != nil && strings.HasPrefix(c.Message, buildingArtifact)
}

const buildingArtifact = "building artifact"

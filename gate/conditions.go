package gate

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditionsOf gives every condition of one type. There should be at most one;
// the API does not hold it, so the rules count.
func (s *Source) conditionsOf(kind string) []metav1.Condition {
	var found []metav1.Condition
	for _, c := range s.Object.Status.Conditions {
		if c.Type == kind {
			found = append(found, c)
		}
	}
	return found
}

// condition gives the one condition of a type. It gives nil if there is none,
// or more than one, so that an ambiguous condition never counts as good.
func (s *Source) condition(kind string) *metav1.Condition {
	if found := s.conditionsOf(kind); len(found) == 1 {
		return &found[0]
	}
	return nil
}

// anyWith gives the first condition of a type that has the status: for
// conditions that are bad news in that status, one of several is enough.
func (s *Source) anyWith(kind string, status metav1.ConditionStatus) *metav1.Condition {
	for _, c := range s.conditionsOf(kind) {
		if c.Status == status {
			return &c
		}
	}
	return nil
}

// anyButFalse gives the first condition of a type that is not False. A condition
// that is only there when something is wrong says that nothing is by being absent
// or False; Unknown, and a status that there is not, is no such answer.
func (s *Source) anyButFalse(kind string) *metav1.Condition {
	for _, c := range s.conditionsOf(kind) {
		if c.Status != metav1.ConditionFalse {
			return &c
		}
	}
	return nil
}

// trueNow says whether the one condition of a type is True at the object's
// generation.
func (s *Source) trueNow(kind string) bool {
	c := s.condition(kind)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == s.Object.Generation
}

// describe says in words what the conditions of a type are.
func (s *Source) describe(kind string) string {
	found := s.conditionsOf(kind)
	switch len(found) {
	case 0:
		return "no condition " + kind
	case 1:
		return describeCondition(&found[0])
	}
	return fmt.Sprintf("%d conditions %s", len(found), kind)
}

func describeCondition(c *metav1.Condition) string {
	return fmt.Sprintf("%s %s (%s) at generation %d: %s", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
}

// revision is what is serving now; empty if nothing is.
func (s *Source) revision() string {
	if s.Object.Status.Artifact == nil {
		return ""
	}
	return s.Object.Status.Artifact.Revision
}

// verifiedNow says that the controller's verification of what is serving now
// succeeded at this generation: the whole of section C that is about
// SourceVerified, as one predicate.
func (s *Source) verifiedNow() bool {
	return s.verification() == verificationGood
}

// Digest is the digest of what is serving now, from status.artifact.revision;
// empty if nothing is, or its revision has no well-formed digest.
func (s *Source) Digest() string { return digestOf(s.revision()) }

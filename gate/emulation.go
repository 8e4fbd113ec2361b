package gate

import (
	"fmt"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Opinion is what one series of source-controller would say of the signatures
// of an artifact, if it verified now.
type Opinion struct {
	// Accepts says that it would set SourceVerified True.
	Accepts bool
	// Unsure says that either answer is possible.
	Unsure bool
	// Class is that of the message with which it would refuse; empty if it
	// accepts.
	Class Class
	// Layout is the one that it would look at; empty where it finds nothing.
	Layout Layout
	// Why says in words what it does, beginning with a verb.
	Why string
}

// Emulate says what a series of source-controller, such as "1.9", would say of
// signatures under a policy. It is the rule that the check of the controller
// compares with the condition; found must have been verified under the trust
// that the policy names. It is exported for test/e2e, which compares it with the
// running controller. It is an error if the gate does not know the series, or
// if there is no cosign policy to verify by.
func Emulate(name string, verify *sourcev1.OCIRepositoryVerification, found []Signature) (Opinion, error) {
	n := slices.IndexFunc(supported, func(v series) bool { return v.name == name })
	switch {
	case n < 0:
		return Opinion{}, fmt.Errorf("expected a series of source-controller that the gate knows (%s), found %q", names(supported), name)
	case verify == nil || verify.Provider != "cosign":
		return Opinion{}, fmt.Errorf("expected a policy with the provider cosign, found %+v", verify)
	}
	o := supported[n].emulate(verify, found)
	return Opinion{Accepts: o.accepts, Unsure: o.unsure, Class: o.class, Layout: o.looked, Why: o.why}, nil
}

// Word is what the controller says of one artifact.
type Word struct {
	// Accepts says that SourceVerified is True.
	Accepts bool
	// Class is that of the message of a refusal; empty if it accepts.
	Class Class
	// Digest is that of the artifact that it speaks of, which need not be the
	// one that is being served.
	Digest string
	// Message is the condition's own.
	Message string
}

// Word gives what the one condition SourceVerified says at the source's own
// generation. It is nil if there is none, or if the artifact that it speaks of
// cannot be told.
func (s *Source) Word() *Word {
	c := s.condition(sourcev1.SourceVerifiedCondition)
	if c == nil || c.ObservedGeneration != s.Object.Generation {
		return nil
	}
	w := &Word{Accepts: c.Status == metav1.ConditionTrue, Message: c.Message}
	switch c.Status {
	case metav1.ConditionTrue:
		revision, _ := verifiedRevision(c.Message)
		w.Digest = digestOf(revision)
	case metav1.ConditionFalse:
		w.Class, w.Digest = classify(c.Message), s.failedDigest()
	}
	if w.Digest == "" {
		return nil
	}
	return w
}

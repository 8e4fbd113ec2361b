package gate

// Canary is what one read of the canary showed: a second OCIRepository that
// carries the policy of the source, points at an artifact that nobody may
// deploy, and must be refused. It is an object of its own, so it has a
// resourceVersion of its own, and is read after the source that is judged beside
// it.
type Canary struct {
	// Source is the object; nil if there is none.
	Source *Source
	// Missing says that the read was answered, and that there is no such object.
	Missing bool
	// Failure says why it could not be read; it excludes the other two.
	Failure *Failure
}

// CanaryState is what became of the canary.
type CanaryState string

// CanaryRefused is the one good state. CanaryWasAccepted: the controller took
// what it must refuse. CanaryUnknown is everything that shows neither.
const (
	CanaryRefused     CanaryState = "refused"
	CanaryWasAccepted CanaryState = "accepted"
	CanaryUnknown     CanaryState = "unknown"
)

// CanarySummary identifies the canary and says what became of it.
type CanarySummary struct {
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	State     CanaryState `json:"state"`
	// Class is the class of the refusal, and Message the controller's words for
	// it; empty where it does not say that it refused.
	Class           Class  `json:"class,omitempty"`
	Message         string `json:"message,omitempty"`
	APIVersion      string `json:"apiVersion,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Generation      int64  `json:"generation,omitempty"`
	URL             string `json:"url,omitempty"`
	// Digest is that of the artifact which was refused; empty where the status
	// does not name it.
	Digest string `json:"digest,omitempty"`
	// Revision is what the canary still serves from before, which should be
	// nothing.
	Revision string `json:"revision,omitempty"`
}

// canarySummary is made of the findings, so that the report has one opinion.
func (f *facts) canarySummary(findings []Finding) *CanarySummary {
	if f.want.Canary == (ObjectName{}) {
		return nil
	}
	summary := &CanarySummary{Namespace: f.want.Canary.Namespace, Name: f.want.Canary.Name, State: CanaryUnknown}
	for _, finding := range findings {
		switch {
		case finding.Code != CanaryAccepted:
		case finding.Outcome == Pass:
			summary.State = CanaryRefused
		case finding.Outcome == Fail:
			summary.State = CanaryWasAccepted
		}
	}
	s := f.canary()
	if s == nil {
		return summary
	}
	object := s.Object
	summary.APIVersion, summary.UID, summary.ResourceVersion = object.APIVersion, string(object.UID), object.ResourceVersion
	summary.Generation, summary.URL, summary.Revision = object.Generation, object.Spec.URL, s.revision()
	if c := s.refusal(); c != nil {
		summary.Class, summary.Message, summary.Digest = classify(c.Message), c.Message, s.failedDigest()
	}
	return summary
}

// identity names the object, its generation, or that there is none, so that a
// canary which was just replaced is not taken for one that has been so for long.
func (c *CanarySummary) identity() string {
	if c == nil || c.UID == "" {
		return ""
	}
	return identityText(c.UID, c.Generation)
}

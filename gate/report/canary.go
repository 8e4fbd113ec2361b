package report

import "flux-verify-gate/gate"

// canaryText says in one line what became of the canary; empty where none was
// asked for. A refusal is the good news, so it is said with its reason although
// nothing has to be done.
func canaryText(r gate.Report) string {
	c := r.Canary
	if c == nil {
		return ""
	}
	name := c.Namespace + "/" + c.Name
	switch c.State {
	case gate.CanaryRefused:
		return name + " was refused, as it must be (" + string(c.Class) + "): " + c.Message
	case gate.CanaryWasAccepted:
		return name + " was accepted, and must be refused"
	}
	return name + " is not known to be refused, so it shows nothing"
}

package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PendingFor is how long a fail of the classes WaitMinute and WaitQuiet has to
// stand before it is final.
const PendingFor = time.Minute

// History is what a run remembers from one read to the next, so that the rule
// "settled or keep waiting" needs nothing but it, the newest report and the
// time. It is a value: Observe gives a new one. The zero value is the history of
// a run that has read nothing.
type History struct {
	// Reads counts the completed reads.
	Reads int
	// LastFailure is the last text of a failed verification. The controller
	// deletes the condition when a later run fails before it verifies again, so
	// the text would be lost.
	LastFailure string

	identity string
	// canary names the canary that was seen last, and canarySince is since when.
	canary      string
	canarySince time.Time
	quiet       string
	quietSince  time.Time
	firstSeen   map[string]time.Time
}

// Observe adds one read, completed or failed, and the report that was made of it
// to the history. at is when the read was made.
func (h History) Observe(e Evidence, r Report, at time.Time) History {
	if identity := identityOf(e.Source); identity != h.identity {
		// Another object of the same name, or another generation: what was
		// pending before says nothing about it.
		h = History{Reads: h.Reads, identity: identity}
	}
	if e.Source != nil || e.Missing {
		h.Reads++
	}
	if quiet := quietKey(e); quiet != h.quiet || h.quietSince.IsZero() {
		h.quiet, h.quietSince = quiet, at
	}
	if e.Source != nil {
		if c := e.Source.anyWith(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse); c != nil {
			h.LastFailure = c.Message
		}
	}
	return h.Note(r, at)
}

// Note adds a report that was made without another read of the object, for
// example because the registry has been asked meanwhile.
func (h History) Note(r Report, at time.Time) History {
	h.firstSeen = maps.Clone(h.firstSeen)
	if h.firstSeen == nil {
		h.firstSeen = map[string]time.Time{}
	}
	if canary := r.Canary.identity(); canary != h.canary || h.canarySince.IsZero() {
		h.canary, h.canarySince = canary, at
	}
	h.forgetPassed(r)
	for _, f := range r.Findings {
		if key := pendingKey(f, r); f.Wait == WaitMinute {
			if _, known := h.firstSeen[key]; !known {
				h.firstSeen[key] = at
			}
		}
	}
	return h
}

// forgetPassed removes what has passed since. A finding that is merely absent
// stays: in steady failure the controller deletes and sets SourceVerified again
// on every try, and a minute of that is a minute.
func (h History) forgetPassed(r Report) {
	for _, f := range r.Findings {
		if f.Outcome != Pass {
			continue
		}
		maps.DeleteFunc(h.firstSeen, func(key string, _ time.Time) bool {
			return strings.HasPrefix(key, string(f.Code)+" ")
		})
	}
}

// identityOf names the object and its generation.
func identityOf(s *Source) string {
	if s == nil {
		return ""
	}
	return identityText(string(s.Object.UID), s.Object.Generation)
}

func identityText(uid string, generation int64) string { return fmt.Sprintf("%s/%d", uid, generation) }

// quietKey changes whenever the source is not quiet: with its identity, its
// conditions or what it serves.
func quietKey(e Evidence) string {
	if e.Source == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(identityOf(e.Source) + "\n" + e.Source.revision() + "\n")
	conditions := slices.Clone(e.Source.Object.Status.Conditions)
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	for _, c := range conditions {
		fmt.Fprintf(&b, "%s %s %s %d %q\n", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	return b.String()
}

// pendingKey names one thing that is pending: its code first, then what it is
// about.
func pendingKey(f Finding, r Report) string {
	return fmt.Sprintf("%s %s %s", f.Code, f.Class, r.Source.Revision)
}

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"flux-verify-gate/gate"
)

// settle returns the report with the gaps closed that a run which broke off
// early leaves: what is not a verdict is undecided, and no slice is nil. It
// never makes a report better than it is.
func settle(r gate.Report) gate.Report {
	switch r.Verdict {
	case gate.Verified, gate.Rejected:
	default:
		r.Verdict = gate.Undecided
	}
	if r.Reason == "" || (r.Reason == gate.ReasonVerified) != (r.Verdict == gate.Verified) {
		r.Reason = gate.Internal
		if r.Verdict == gate.Verified {
			r.Verdict = gate.Undecided
		}
	}
	if r.Mode != gate.Warn {
		r.Mode = gate.Enforce
	}
	if r.SchemaVersion == 0 {
		r.SchemaVersion = gate.SchemaVersion
	}
	if w := float64(r.Timings.Waited); math.IsNaN(w) || math.IsInf(w, 0) || w < 0 {
		r.Timings.Waited = 0
	}
	r.JudgedAt = r.JudgedAt.UTC()
	r.Timings.StartedAt = r.Timings.StartedAt.UTC()
	if r.Canary != nil {
		canary := *r.Canary
		if canary.State != gate.CanaryRefused && canary.State != gate.CanaryWasAccepted {
			canary.State = gate.CanaryUnknown
		}
		r.Canary = &canary
	}
	r.Findings = filled(r.Findings)
	r.Signers = filled(r.Signers)
	r.Policy.Required = filled(r.Policy.Required)
	r.Policy.Allowed = filled(r.Policy.Allowed)
	r.Policy.Witnesses = filled(r.Policy.Witnesses)
	r.Owners = filled(r.Owners)
	for i := range r.Owners {
		r.Owners[i].Fields = filled(r.Owners[i].Fields)
		r.Owners[i].Time = r.Owners[i].Time.UTC()
	}
	return r
}

func filled[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return slices.Clone(s)
}

// by returns the findings of one outcome in the report's order, the one that is
// the reason first.
func by(r gate.Report, outcome gate.Outcome) []gate.Finding {
	var found []gate.Finding
	for _, f := range r.Findings {
		if f.Outcome == outcome {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b gate.Finding) int {
		return before(a.Code == r.Reason, b.Code == r.Reason)
	})
	return found
}

// passes are the checks that passed, each once: what is tested in two ways may
// have passed twice.
func passes(r gate.Report) []gate.Finding {
	return slices.CompactFunc(by(r, gate.Pass), func(a, b gate.Finding) bool { return a.Code == b.Code })
}

func before(a, b bool) int {
	switch {
	case a && !b:
		return -1
	case b && !a:
		return 1
	}
	return 0
}

// telling returns every finding that is not a pass: fails, unknowns, notes, and
// last anything whose outcome is none of these.
func telling(r gate.Report) []gate.Finding {
	found := slices.Concat(by(r, gate.Fail), by(r, gate.Unknown), by(r, gate.Note))
	for _, f := range r.Findings {
		switch f.Outcome {
		case gate.Pass, gate.Fail, gate.Unknown, gate.Note:
		default:
			found = append(found, f)
		}
	}
	return found
}

// cause returns the finding that is the reason of the verdict.
func cause(r gate.Report) (gate.Finding, bool) {
	for _, f := range slices.Concat(by(r, gate.Fail), by(r, gate.Unknown)) {
		if f.Code == r.Reason {
			return f, true
		}
	}
	return gate.Finding{}, false
}

// tally says how many findings there are of each outcome, leaving out none.
func tally(r gate.Report) string {
	var parts []string
	for _, t := range []struct {
		outcome   gate.Outcome
		one, many string
	}{
		{gate.Fail, "failed", "failed"},
		{gate.Unknown, "unknown", "unknown"},
		{gate.Note, "note", "notes"},
		{gate.Pass, "passed", "passed"},
	} {
		switch n := len(by(r, t.outcome)); n {
		case 0:
		case 1:
			parts = append(parts, "1 "+t.one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, t.many))
		}
	}
	if len(parts) == 0 {
		return "no check was made"
	}
	return strings.Join(parts, ", ")
}

// object names the source; "a source" where a run did not get so far.
func object(r gate.Report) string {
	if r.Source.Namespace == "" && r.Source.Name == "" {
		return "the source"
	}
	return "OCIRepository " + r.Source.Namespace + "/" + r.Source.Name
}

// origin says where the object was read.
func origin(r gate.Report) string {
	switch {
	case r.Cluster.File != "":
		return "the recording " + r.Cluster.File
	case r.Cluster.Server != "" && r.Cluster.Context != "":
		return r.Cluster.Server + ", context " + r.Cluster.Context
	case r.Cluster.Server != "":
		return r.Cluster.Server
	case r.Cluster.Context != "":
		return "context " + r.Cluster.Context
	}
	return ""
}

// standing says what the verdict does and does not lead to, where that is not
// the usual; empty otherwise.
func standing(r gate.Report) string {
	var parts []string
	if r.Verdict != gate.Verified && r.Forgiven() {
		parts = append(parts, "mode warn: a verdict that is not verified does not fail the step")
	}
	if !r.Live && r.Cluster.File != "" {
		parts = append(parts, "judged from a recording, which can promote nothing")
	}
	return strings.Join(parts, "; ")
}

// timing says when it was judged and what that took; empty if it was not.
func timing(r gate.Report) string {
	if r.JudgedAt.IsZero() {
		return ""
	}
	text := r.JudgedAt.UTC().Format("2006-01-02 15:04:05 UTC")
	if r.Timings.Waited >= 0.5 {
		text += fmt.Sprintf(", after waiting %.0f s", float64(r.Timings.Waited))
	}
	switch {
	case r.Timings.Reads == 1:
		text += ", 1 read"
	case r.Timings.Reads > 1:
		text += fmt.Sprintf(", %d reads", r.Timings.Reads)
	}
	return text
}

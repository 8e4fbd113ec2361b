package gate

import (
	"slices"
	"time"
)

// Settled says whether the newest report is final: whether waiting longer can
// no longer change the verdict for a reason that the rules wait for. h is the
// history with that report's read in it.
//
// Where it is not final, next is the time at which it may become so by time
// alone; it is zero where only a change of the source can. A caller that stops
// at the deadline takes the newest report as it is: every pending fail is a
// fail then.
func (h History) Settled(p Policy, r Report, at time.Time) (final bool, next time.Time) {
	pending := false
	for _, f := range r.Findings {
		if f.Outcome != Fail && f.Outcome != Unknown {
			continue
		}
		done, due := h.finished(p, f, r, at)
		switch {
		case done && (f.Outcome == Fail || f.Code == BadInput):
			// One final fail rejects, whatever the rest may still become.
			return true, time.Time{}
		case !done:
			pending = true
			if !due.IsZero() && (next.IsZero() || due.Before(next)) {
				next = due
			}
		}
	}
	if pending {
		return false, next
	}
	return true, time.Time{}
}

// Stopped gives what the newest report comes to when the run was stopped before
// its deadline: what was still pending then had not failed yet, and becomes a
// note. A final fail stays one. That nobody has looked for the signatures yet is
// left out: it is no news beside the reason. A report without an unknown, which
// would say that the run was stopped, is given back as it is.
func (h History) Stopped(p Policy, r Report, at time.Time) Report {
	if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Outcome == Unknown }) {
		return r
	}
	r.Findings = slices.Clone(r.Findings)
	if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Code == Cancelled && f.Outcome == Unknown }) {
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.Wait == WaitLook })
	}
	for i, f := range r.Findings {
		if done, _ := h.finished(p, f, r, at); f.Outcome == Fail && !done {
			r.Findings[i].Outcome = Note
		}
	}
	r.Verdict, r.Reason = verdictOf(r.Findings)
	return r
}

// AwaitsSignatures says whether the only thing that a report still waits for is
// that somebody looks for the signatures.
func (r Report) AwaitsSignatures() bool {
	awaits := false
	for _, f := range r.Findings {
		switch {
		case f.Outcome == Fail, f.Outcome == Unknown && f.Wait != WaitLook:
			return false
		case f.Wait == WaitLook:
			awaits = true
		}
	}
	return awaits
}

// canaryCodes are about the canary, which has to have been as it is for as long
// as the source.
var canaryCodes = []Code{CanaryAccepted, CanaryDiffers}

// finished says whether one fail or unknown is final at a time, and if not, when
// it will be by time alone.
func (h History) finished(p Policy, f Finding, r Report, at time.Time) (bool, time.Time) {
	switch f.Wait {
	case WaitNone:
		return true, time.Time{}
	case WaitOnceMore:
		// The final re-read, which every verdict needs, is the one more read.
		return true, time.Time{}
	case WaitMinute:
		since, known := h.firstSeen[pendingKey(f, r)]
		if !known {
			since = at
		}
		due := since.Add(PendingFor)
		return !at.Before(due), due
	case WaitQuiet:
		if p.want.Digest != DigestAny && r.Source.Digest != p.want.Digest {
			return false, time.Time{}
		}
		since := h.quietSince
		if slices.Contains(canaryCodes, f.Code) && h.canarySince.After(since) {
			// What is wrong with a canary that came or changed just now.
			since = h.canarySince
		}
		due := since.Add(PendingFor)
		return !at.Before(due), due
	}
	return false, time.Time{}
}

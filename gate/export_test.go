package gate

import (
	"context"
	"slices"
)

// What the external tests of this package (which read recordings with package
// cluster, which imports this one) need to see of the rule book.

// AllCodes is every code in the order of the document.
var AllCodes = codes

// ReasonOrder is the order in which codes explain a verdict.
var ReasonOrder = reasonOrder

// CheckedCodes gives the codes that each line of the rule book states.
func CheckedCodes() [][]Code {
	var stated [][]Code
	for _, c := range checks {
		stated = append(stated, c.codes)
	}
	return stated
}

// LookEach gives what each line of the rule book finds in a source that was read.
func LookEach(ctx context.Context, p Policy, e Evidence) [][]Finding {
	if e.Source == nil {
		return nil
	}
	f := &facts{ctx: ctx, want: p.want, evidence: e, source: e.Source}
	var each [][]Finding
	for _, c := range checks {
		each = append(each, c.look(f))
	}
	return each
}

// VerdictWithout is the verdict under a rule book that lacks one line.
func VerdictWithout(ctx context.Context, line int, p Policy, e Evidence) (Verdict, Code) {
	f := &facts{ctx: ctx, want: p.want, evidence: e, source: e.Source}
	return verdictOf(f.lookBy(slices.Delete(slices.Clone(checks), line, line+1)))
}

// LookCodes is section G.
var LookCodes = lookOrder

// DigestOf, VerifiedRevision, StoredRevision and IncomingRevision read revisions
// and messages.
var (
	DigestOf         = digestOf
	VerifiedRevision = verifiedRevision
	StoredRevision   = storedRevision
	IncomingRevision = incomingRevision
)

// Classify reads the class off a message; ClassWait says how long it waits.
func Classify(message string) Class { return classify(message) }

// ClassWait says how long a failure of a class may still mend itself.
func ClassWait(c Class) Wait { return c.wait() }

// ClassRemedy is the next step after a failure of a class.
func ClassRemedy(c Class) string { return c.remedy() }

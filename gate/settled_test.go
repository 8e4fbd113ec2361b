package gate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"flux-verify-gate/gate/signer"
)

// step is one read in a run: when it was made, what the source looked like, and
// what is to be said then.
type step struct {
	after    time.Duration
	uid      string
	message  string // of one condition, to make the source change
	revision string
	canary   string // its uid
	findings []Finding
	final    bool
	// next is when, after the start, time alone may make it final; zero if only
	// a change can.
	next time.Duration
}

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func fails(code Code, wait Wait) Finding { return Finding{Code: code, Outcome: Fail, Wait: wait} }

func unknowns(code Code, wait Wait) Finding { return Finding{Code: code, Outcome: Unknown, Wait: wait} }

func passes(code Code) Finding { return Finding{Code: code, Outcome: Pass} }

func TestSettled(t *testing.T) {
	t.Parallel()
	flapping := func(f Finding) []Finding { return []Finding{f, fails(NotReady, WaitDeadline)} }
	noSignature := Finding{Code: VerificationFailed, Outcome: Fail, Wait: WaitMinute, Class: ClassNoSignature}
	tests := []struct {
		name   string
		digest string
		steps  []step
	}{
		{"all pass is final", digestA, []step{{findings: []Finding{passes(NotReady)}, final: true}}},
		{"nothing at all is final, and Decide calls it undecided", digestA, []step{{final: true}}},
		{"a note decides nothing", digestA, []step{{findings: []Finding{{Code: KeysUnread, Outcome: Note}}, final: true}}},
		{"a final fail ends the wait", digestA, []step{{findings: []Finding{fails(SourceSuspended, WaitNone), fails(NotReady, WaitDeadline)}, final: true}}},
		{"a final unknown alone is final", digestA, []step{{findings: []Finding{unknowns(AccessDenied, WaitNone)}, final: true}}},
		{"a final unknown waits for a pending fail", digestA, []step{{findings: []Finding{unknowns(VerifyFieldUnknown, WaitNone), fails(NotReady, WaitDeadline)}}}},
		{"bad input is never waited for", digestA, []step{{findings: []Finding{unknowns(BadInput, WaitNone), fails(NotReady, WaitDeadline)}, final: true}}},
		{"a pending fail waits without end", digestA, []step{
			{findings: []Finding{fails(NotReady, WaitDeadline)}},
			{after: time.Hour, findings: []Finding{fails(NotReady, WaitDeadline)}},
		}},
		{"once more is left to the final re-read", digestA, []step{{findings: []Finding{fails(VerificationFailed, WaitOnceMore)}, final: true}}},
		{"a minute of absence is final", digestA, []step{
			{findings: []Finding{fails(SourceMissing, WaitMinute)}, next: time.Minute},
			{after: 59 * time.Second, findings: []Finding{fails(SourceMissing, WaitMinute)}, next: time.Minute},
			{after: time.Minute, findings: []Finding{fails(SourceMissing, WaitMinute)}, final: true},
		}},
		{"an absence that was interrupted starts again", digestA, []step{
			{findings: []Finding{fails(SourceMissing, WaitMinute)}, next: time.Minute},
			{after: 30 * time.Second, uid: "a", findings: []Finding{passes(SourceMissing), fails(NotReady, WaitDeadline)}},
			{after: 61 * time.Second, findings: []Finding{fails(SourceMissing, WaitMinute)}, next: 121 * time.Second},
		}},
		{"a minute of flapping failure is a minute", digestA, []step{
			{uid: "a", findings: flapping(noSignature), next: time.Minute},
			{after: 20 * time.Second, uid: "a", findings: []Finding{fails(VerificationMissing, WaitDeadline)}},
			{after: 61 * time.Second, uid: "a", findings: flapping(noSignature), final: true},
		}},
		{"a failure of another object starts again", digestA, []step{
			{uid: "a", findings: flapping(noSignature), next: time.Minute},
			{after: 61 * time.Second, uid: "b", findings: flapping(noSignature), next: 121 * time.Second},
		}},
		{"a failure that passed starts again", digestA, []step{
			{uid: "a", findings: flapping(noSignature), next: time.Minute},
			{after: 30 * time.Second, uid: "a", findings: []Finding{passes(VerificationFailed), fails(NotReady, WaitDeadline)}},
			{after: 61 * time.Second, uid: "a", findings: flapping(noSignature), next: 121 * time.Second},
		}},
		{"a policy fail is final after a quiet minute", digestA, []step{
			{uid: "a", revision: "v1@" + digestA, findings: []Finding{fails(VerifyAbsent, WaitQuiet)}, next: time.Minute},
			{after: time.Minute, uid: "a", revision: "v1@" + digestA, findings: []Finding{fails(VerifyAbsent, WaitQuiet)}, final: true},
		}},
		{"a policy fail is not final while conditions change", digestA, []step{
			{uid: "a", revision: "v1@" + digestA, findings: []Finding{fails(VerifyAbsent, WaitQuiet)}, next: time.Minute},
			{after: 50 * time.Second, uid: "a", message: "other", revision: "v1@" + digestA, findings: []Finding{fails(VerifyAbsent, WaitQuiet)}, next: 110 * time.Second},
			{after: 70 * time.Second, uid: "a", message: "other", revision: "v1@" + digestA, findings: []Finding{fails(VerifyAbsent, WaitQuiet)}, next: 110 * time.Second},
		}},
		{"a policy fail is not final while another digest is serving", digestA, []step{
			{uid: "a", revision: "v1@" + digestB, findings: []Finding{fails(VerifyAbsent, WaitQuiet)}},
			{after: time.Hour, uid: "a", revision: "v1@" + digestB, findings: []Finding{fails(VerifyAbsent, WaitQuiet)}},
		}},
		{"an accepted canary is final after a quiet minute", DigestAny, []step{
			{uid: "a", canary: "c", revision: "v1@" + digestB, findings: []Finding{fails(CanaryAccepted, WaitQuiet)}, next: time.Minute},
			{after: 59 * time.Second, uid: "a", canary: "c", revision: "v1@" + digestB, findings: []Finding{fails(CanaryAccepted, WaitQuiet)}, next: time.Minute},
			{after: time.Minute, uid: "a", canary: "c", revision: "v1@" + digestB, findings: []Finding{fails(CanaryAccepted, WaitQuiet)}, final: true},
		}},
		{"a canary that came late has a minute of its own", DigestAny, []step{
			{uid: "a", revision: "v1@" + digestB, findings: []Finding{unknowns(CanaryAccepted, WaitQuiet)}, next: time.Minute},
			{after: 50 * time.Second, uid: "a", canary: "c", revision: "v1@" + digestB, findings: []Finding{fails(CanaryDiffers, WaitQuiet)}, next: 110 * time.Second},
			{after: 70 * time.Second, uid: "a", canary: "d", revision: "v1@" + digestB, findings: []Finding{fails(CanaryAccepted, WaitQuiet)}, next: 130 * time.Second},
			{after: 130 * time.Second, uid: "a", canary: "d", revision: "v1@" + digestB, findings: []Finding{fails(CanaryAccepted, WaitQuiet)}, final: true},
		}},
		{"a policy fail does not wait for a canary that changes", DigestAny, []step{
			{uid: "a", canary: "c", revision: "v1@" + digestB, findings: []Finding{fails(VerifyAbsent, WaitQuiet)}, next: time.Minute},
			{after: time.Minute, uid: "a", canary: "d", revision: "v1@" + digestB, findings: []Finding{fails(VerifyAbsent, WaitQuiet)}, final: true},
		}},
		{"a canary fail is not final while another digest is serving", digestA, []step{
			{uid: "a", canary: "c", revision: "v1@" + digestB, findings: []Finding{fails(CanaryAccepted, WaitQuiet)}},
			{after: time.Hour, uid: "a", canary: "c", revision: "v1@" + digestB, findings: []Finding{fails(CanaryAccepted, WaitQuiet)}},
		}},
		{"a canary of which nothing is known waits, and passes when it is refused", DigestAny, []step{
			{uid: "a", canary: "c", revision: "v1@" + digestB, findings: []Finding{unknowns(CanaryAccepted, WaitDeadline)}},
			{after: time.Hour, uid: "a", canary: "c", revision: "v1@" + digestB, findings: []Finding{unknowns(CanaryAccepted, WaitDeadline)}},
			{after: 2 * time.Hour, uid: "a", canary: "c", revision: "v1@" + digestB, findings: []Finding{passes(CanaryAccepted)}, final: true},
		}},
		{"any digest is the expected one", DigestAny, []step{
			{uid: "a", revision: "v1@" + digestB, findings: []Finding{fails(VerifyAbsent, WaitQuiet)}, next: time.Minute},
			{after: time.Minute, uid: "a", revision: "v1@" + digestB, findings: []Finding{fails(VerifyAbsent, WaitQuiet)}, final: true},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := NewPolicy(Requirements{Digest: tt.digest, Signature: SignatureSkip,
				Required: []signer.Signer{{Issuer: "i", Subject: "s"}}})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)
			var h History
			for i, s := range tt.steps {
				at := start.Add(s.after)
				e, r := s.read()
				h = h.Observe(e, r, at)
				final, next := h.Settled(p, r, at)
				if final != s.final {
					t.Errorf("step %d: final %v, want %v", i, final, s.final)
				}
				want := time.Time{}
				if s.next != 0 {
					want = start.Add(s.next)
				}
				if !next.Equal(want) {
					t.Errorf("step %d: next %v, want %v", i, next, want)
				}
				if h.Reads != i+1 {
					t.Errorf("step %d: %d reads counted", i, h.Reads)
				}
			}
		})
	}
}

// read makes the evidence and the report of one step.
func (s step) read() (Evidence, Report) {
	r := Report{Findings: s.findings, Source: SourceSummary{Revision: s.revision, Digest: digestOf(s.revision)}}
	if s.canary != "" {
		r.Canary = &CanarySummary{UID: s.canary}
	}
	if s.uid == "" {
		return Evidence{Missing: true}, r
	}
	source := &Source{}
	source.Object.UID = types.UID(s.uid)
	source.Object.Status.Conditions = []metav1.Condition{{Type: "Ready", Message: s.message}}
	return Evidence{Source: source}, r
}

func TestHistoryKeepsTheLastFailure(t *testing.T) {
	t.Parallel()
	failed := &Source{}
	failed.Object.UID = "a"
	failed.Object.Status.Conditions = []metav1.Condition{{Type: "SourceVerified", Status: metav1.ConditionFalse, Message: "no signatures found"}}
	deleted := &Source{}
	deleted.Object.UID = "a"
	other := &Source{}
	other.Object.UID = "b"

	var h History
	h = h.Observe(Evidence{Source: failed}, Report{}, time.Time{})
	before := h
	h = h.Observe(Evidence{Source: deleted}, Report{}, time.Time{})
	if got, want := h.LastFailure, "no signatures found"; got != want {
		t.Errorf("after the condition was deleted: got %q, want %q", got, want)
	}
	h = h.Observe(Evidence{Source: other}, Report{}, time.Time{})
	if h.LastFailure != "" {
		t.Errorf("another object inherited %q", h.LastFailure)
	}
	if before.Reads != 1 {
		t.Errorf("an older history changed: %d reads", before.Reads)
	}
}

// A run that is stopped before its deadline has not seen what is pending fail,
// and has not seen it pass either.
func TestStopped(t *testing.T) {
	t.Parallel()
	stopped := Finding{Code: Cancelled, Outcome: Unknown}
	pending := Finding{Code: SourceUnobserved, Outcome: Fail, Wait: WaitDeadline}
	final := Finding{Code: SourceSuspended, Outcome: Fail}
	unasked := Finding{Code: NoAnswer, Outcome: Unknown, Wait: WaitLook}
	for name, test := range map[string]struct {
		findings []Finding
		verdict  Verdict
		reason   Code
	}{
		"pending":             {[]Finding{pending, stopped}, Undecided, Cancelled},
		"pending and final":   {[]Finding{pending, final, stopped}, Rejected, SourceSuspended},
		"not known as ended":  {[]Finding{pending}, Rejected, SourceUnobserved},
		"nothing was pending": {[]Finding{stopped}, Undecided, Cancelled},
		"not looked yet":      {[]Finding{unasked, pending, stopped}, Undecided, Cancelled},
		"unreachable":         {[]Finding{{Code: Unreachable, Outcome: Unknown, Wait: WaitDeadline}, stopped}, Undecided, Unreachable},
		"unknown as stopped":  {[]Finding{unasked}, Undecided, NoAnswer},
	} {
		r := Report{Verdict: Rejected, Reason: SourceUnobserved, Findings: test.findings}
		got := History{}.Stopped(Policy{}, r, time.Time{})
		if got.Verdict != test.verdict || got.Reason != test.reason {
			t.Errorf("%s: got %s, %s, want %s, %s", name, got.Verdict, got.Reason, test.verdict, test.reason)
		}
	}
	findings := []Finding{pending, stopped}
	_ = History{}.Stopped(Policy{}, Report{Findings: findings}, time.Time{})
	if findings[0].Outcome != Fail {
		t.Error("the report that was given has changed")
	}
}

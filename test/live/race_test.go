package live

import (
	"fmt"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
	"flux-verify-gate/test/stack/testcontroller"
)

// Somebody changes a source that was good at the first read, just before the
// read on which the verdict is given.
func TestChangedBeforeTheVerdict(t *testing.T) {
	t.Parallel()
	newer := func(o *sourcev1.OCIRepository) { o.Spec.Interval = metav1.Duration{Duration: time.Hour} }
	for name, test := range map[string]struct {
		change func(p *place)
		// atOnce is what there is to say without time to start over, later what
		// with enough.
		atOnce, later actiontest.Want
		serving       string
	}{
		"the tag moved": {
			func(p *place) { p.settle(revision("b")) },
			actiontest.Want{Verdict: gate.Undecided, Reason: gate.NoAnswer}, actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified}, "b",
		},
		"the policy was removed": {
			func(p *place) { p.edit(func(o *sourcev1.OCIRepository) { o.Spec.Verify = nil }) },
			actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerifyAbsent}, actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerifyAbsent}, "a",
		},
		"the policy was changed": {
			func(p *place) {
				p.edit(func(o *sourcev1.OCIRepository) { o.Spec.Verify.SecretRef.Name = "other" })
				p.settle(revision("a"))
			},
			actiontest.Want{Verdict: gate.Rejected, Reason: gate.KeyUnexpected}, actiontest.Want{Verdict: gate.Rejected, Reason: gate.KeyUnexpected}, "a",
		},
		"a newer generation": {
			func(p *place) { p.edit(newer) },
			actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationStale}, actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationStale}, "a",
		},
		"a newer generation, verified": {
			func(p *place) {
				p.edit(newer)
				p.settle(revision("a"))
			},
			actiontest.Want{Verdict: gate.Undecided, Reason: gate.NoAnswer}, actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified}, "a",
		},
		"it was suspended": {
			func(p *place) { p.edit(func(o *sourcev1.OCIRepository) { o.Spec.Suspend = true }) },
			actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceSuspended}, actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceSuspended}, "a",
		},
		"it was deleted": {
			func(p *place) { p.remove() },
			actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceMissing}, actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceMissing}, "",
		},
		"it was made anew": {
			func(p *place) {
				p.remove()
				p.create()
			},
			actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationMissing}, actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationMissing}, "",
		},
		"it was made anew, verified": {
			func(p *place) {
				p.remove()
				p.create()
				p.settle(revision("a"))
			},
			actiontest.Want{Verdict: gate.Undecided, Reason: gate.NoAnswer}, actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified}, "a",
		},
		"the controller changed its mind": {
			func(p *place) { p.settle(revision("a"), refused(revision("a"), "no signatures found")) },
			actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationFailed}, actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationFailed}, "a",
		},
	} {
		for timeout, w := range map[string]actiontest.Want{"0": test.atOnce, "40s": test.later} {
			t.Run(name+", "+timeout, func(t *testing.T) {
				t.Parallel()
				p := steadyPlace(t)
				p.create()
				p.settle(revision("a"))
				through := between(p, at(2, func() { test.change(p) }))
				r := p.gate(through, map[string]string{"timeout": timeout}).Is(w)
				serving := ""
				if test.serving != "" {
					serving = revision(test.serving)
				}
				if r.Outputs["revision"] != serving {
					t.Errorf("got revision %q, want %q", r.Outputs["revision"], serving)
				}
			})
		}
	}
}

// A source that is another one at every read is never verified, although it is
// good at each.
func TestChangesAtEveryRead(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	p.create()
	through := between(p, func(read int) bool {
		p.settle(revision(fmt.Sprint(read)))
		return true
	})
	r := p.gate(through, map[string]string{"timeout": "20s"}).Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.NoAnswer})
	if r.Report.Timings.Reads < 3 {
		t.Errorf("got %d reads: it did not start over", r.Report.Timings.Reads)
	}
}

// One hiccup of the API server at the read before the verdict is none of the
// gate's failures; silence is.
func TestNoAnswerBeforeTheVerdict(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before func(int) bool
		want   actiontest.Want
	}{
		"once":   {func(read int) bool { return read != 2 }, actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified}},
		"always": {func(read int) bool { return read < 2 }, actiontest.Want{Verdict: gate.Undecided, Reason: gate.NoAnswer}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := steadyPlace(t)
			p.create()
			p.settle(revision("a"))
			r := p.gate(between(p, test.before), map[string]string{"timeout": "5s", "digest": testcontroller.Digest("a")}).Is(test.want)
			if r.Outputs["revision"] != revision("a") {
				t.Errorf("got revision %q", r.Outputs["revision"])
			}
		})
	}
}

package live

import (
	"fmt"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
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
		atOnce, later want
		serving       string
	}{
		"the tag moved": {
			func(p *place) { p.settle(revision("b")) },
			want{gate.Undecided, gate.NoAnswer}, want{gate.Verified, gate.ReasonVerified}, "b",
		},
		"the policy was removed": {
			func(p *place) { p.edit(func(o *sourcev1.OCIRepository) { o.Spec.Verify = nil }) },
			want{gate.Rejected, gate.VerifyAbsent}, want{gate.Rejected, gate.VerifyAbsent}, "a",
		},
		"the policy was changed": {
			func(p *place) {
				p.edit(func(o *sourcev1.OCIRepository) { o.Spec.Verify.SecretRef.Name = "other" })
				p.settle(revision("a"))
			},
			want{gate.Rejected, gate.KeyUnexpected}, want{gate.Rejected, gate.KeyUnexpected}, "a",
		},
		"a newer generation": {
			func(p *place) { p.edit(newer) },
			want{gate.Rejected, gate.VerificationStale}, want{gate.Rejected, gate.VerificationStale}, "a",
		},
		"a newer generation, verified": {
			func(p *place) {
				p.edit(newer)
				p.settle(revision("a"))
			},
			want{gate.Undecided, gate.NoAnswer}, want{gate.Verified, gate.ReasonVerified}, "a",
		},
		"it was suspended": {
			func(p *place) { p.edit(func(o *sourcev1.OCIRepository) { o.Spec.Suspend = true }) },
			want{gate.Rejected, gate.SourceSuspended}, want{gate.Rejected, gate.SourceSuspended}, "a",
		},
		"it was deleted": {
			func(p *place) { p.remove() },
			want{gate.Rejected, gate.SourceMissing}, want{gate.Rejected, gate.SourceMissing}, "",
		},
		"it was made anew": {
			func(p *place) {
				p.remove()
				p.create()
			},
			want{gate.Rejected, gate.VerificationMissing}, want{gate.Rejected, gate.VerificationMissing}, "",
		},
		"it was made anew, verified": {
			func(p *place) {
				p.remove()
				p.create()
				p.settle(revision("a"))
			},
			want{gate.Undecided, gate.NoAnswer}, want{gate.Verified, gate.ReasonVerified}, "a",
		},
		"the controller changed its mind": {
			func(p *place) { p.settle(revision("a"), refused(revision("a"), "no signatures found")) },
			want{gate.Rejected, gate.VerificationFailed}, want{gate.Rejected, gate.VerificationFailed}, "a",
		},
	} {
		for timeout, w := range map[string]want{"0": test.atOnce, "40s": test.later} {
			t.Run(name+", "+timeout, func(t *testing.T) {
				t.Parallel()
				p := steadyPlace(t)
				p.create()
				p.settle(revision("a"))
				through := between(p, at(2, func() { test.change(p) }))
				r := p.gate(through, map[string]string{"timeout": timeout}).is(w)
				serving := ""
				if test.serving != "" {
					serving = revision(test.serving)
				}
				if r.outputs["revision"] != serving {
					t.Errorf("got revision %q, want %q", r.outputs["revision"], serving)
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
	r := p.gate(through, map[string]string{"timeout": "20s"}).is(want{gate.Undecided, gate.NoAnswer})
	if r.report.Timings.Reads < 3 {
		t.Errorf("got %d reads: it did not start over", r.report.Timings.Reads)
	}
}

// One hiccup of the API server at the read before the verdict is none of the
// gate's failures; silence is.
func TestNoAnswerBeforeTheVerdict(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before func(int) bool
		want   want
	}{
		"once":   {func(read int) bool { return read != 2 }, want{gate.Verified, gate.ReasonVerified}},
		"always": {func(read int) bool { return read < 2 }, want{gate.Undecided, gate.NoAnswer}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := steadyPlace(t)
			p.create()
			p.settle(revision("a"))
			r := p.gate(between(p, test.before), map[string]string{"timeout": "5s", "digest": testcontroller.Digest("a")}).is(test.want)
			if r.outputs["revision"] != revision("a") {
				t.Errorf("got revision %q", r.outputs["revision"])
			}
		})
	}
}

package report_test

import (
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
)

// TestCanaryLine holds that log and summary each have one line on the canary
// that was asked for, and none where none was.
func TestCanaryLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		report gate.Report
		says   string
	}{
		"none":     {verified(), ""},
		"refused":  {withCanary(), "flux-system/flux-system-canary was refused, as it must be (no-signature): failed to verify"},
		"accepted": {canaryTaken(), "flux-system/flux-system-canary was accepted, and must be refused"},
		"unread":   {canaryDenied(), "flux-canary/unsigned is not known to be refused, so it shows nothing"},
	} {
		log := logOf(t, test.report, report.Style{Width: 1000})
		lines := 0
		for line := range strings.Lines(log) {
			if text, ok := strings.CutPrefix(line, "│ canary    "); ok {
				lines++
				if !strings.HasPrefix(text, test.says) {
					t.Errorf("%s: the log says %q, want %q", name, text, test.says)
				}
			}
		}
		want := 0
		if test.says != "" {
			want = 1
		}
		if summary := strings.Count(report.Summary(test.report, report.Style{}), "\n- Canary: "); lines != want || summary != want {
			t.Errorf("%s: %d lines in the log and %d in the summary, want %d", name, lines, summary, want)
		}
	}
}

// TestUnknownStateIsUnknown: a state that is none is never said to be good.
func TestUnknownStateIsUnknown(t *testing.T) {
	t.Parallel()
	for _, state := range []gate.CanaryState{"", "made-up", gate.CanaryUnknown} {
		r := withCanary()
		r.Canary.State = state
		if log := logOf(t, r, report.Style{}); !strings.Contains(log, "is not known to be refused") {
			t.Errorf("%q: the log says\n%s", state, log)
		}
		if text := jsonOf(t, r); !strings.Contains(text, `"state": "unknown"`) {
			t.Errorf("%q: the JSON says\n%s", state, text)
		}
		if r.Canary.State != state {
			t.Errorf("the report was changed to %q", r.Canary.State)
		}
	}
}

package report_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
	"flux-verify-gate/gate/report/runnertest"
)

func TestLine(t *testing.T) {
	t.Parallel()
	if got, want := report.Line(report.Doing, "read\n::error::x ##[error]y"), `► read␊::error::x #\#[error]y`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	w := report.Waiting{While: "verification-missing\r::error::x", Since: judged, Now: judged.Add(95400 * time.Millisecond), Until: judged.Add(5 * time.Minute)}
	got := report.Progress(w)
	if want := "◎ waiting while verification-missing␍::error::x: 1m35s so far, until 19:31:59 UTC at the latest"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Now = judged.Add(-time.Hour)
	if got := report.Progress(w); !strings.Contains(got, ": 0s so far") {
		t.Errorf("a clock that was set back: %q", got)
	}
}

func TestLogWidth(t *testing.T) {
	t.Parallel()
	for _, width := range []int{0, 40, 60, 200} {
		limit := width
		if width == 0 {
			limit = 100
		}
		for name, r := range samples() {
			text := logOf(t, r, report.Style{Width: width})
			for _, line := range runnertest.Lines(text) {
				if utf8.RuneCountInString(line) <= limit {
					continue
				}
				// Only the last word may reach beyond, and only if the line has
				// no earlier place to break: after its prefix and label.
				text := strings.TrimLeft(strings.TrimPrefix(line, string(report.Continued)), " ")
				text = strings.TrimPrefix(text, "looked at ")
				if words := strings.Fields(text); len(words) > 2 && strings.HasPrefix(line, "│") {
					t.Errorf("%s at %d: %d characters: %q", name, width, utf8.RuneCountInString(line), line)
				}
			}
		}
	}
}

// TestLogOrder holds that the reason comes first, then what else is wrong, and
// what passed last.
func TestLogOrder(t *testing.T) {
	t.Parallel()
	r := many()
	r.Reason = gate.DigestMismatch
	text := logOf(t, r, report.Style{})
	at := -1
	for _, want := range []string{
		"✗ rejected (digest-mismatch): OCIRepository flux-system/flux-system", "✗ digest-mismatch: ", "✗ policy-too-wide: ",
		"✗ verification-failed: ", "? registry-denied: ", "• source-insecure: ", "✔ passed: ", "► the policy to paste", "                - issuer: '",
	} {
		i := strings.Index(text, "\n"+want)
		if strings.HasPrefix(text, want) {
			i = 0
		}
		if i <= at {
			t.Errorf("%q stands at %d, after %d:\n%s", want, i, at, text)
		}
		at = max(at, i)
	}
}

// TestLogOfModeWarn holds that the log promises a green step only where the exit
// status is one.
func TestLogOfModeWarn(t *testing.T) {
	t.Parallel()
	const promise = "does not fail the step"
	if text := logOf(t, warned(), report.Style{}); !strings.Contains(text, promise) {
		t.Errorf("a rejected source in mode warn, and no word of it:\n%s", text)
	}
	r := undecided()
	r.Mode = gate.Warn
	if text := logOf(t, r, report.Style{}); strings.Contains(text, promise) {
		t.Errorf("nothing was read, so the step fails, and the log promises otherwise:\n%s", text)
	}
}

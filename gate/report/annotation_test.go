package report_test

import (
	"fmt"
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
	"flux-verify-gate/gate/report/runnertest"
)

func TestAnnotationLevels(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		r       gate.Report
		failing bool
		want    string
	}{
		"verified":                 {verified(), false, ""},
		"verified, will refuse":    {willRefuse(), false, "notice"},
		"rejected":                 {tooWide(), true, "error"},
		"rejected, in mode warn":   {warned(), false, "warning"},
		"undecided":                {undecided(), true, "error"},
		"bad input, in mode warn":  {gate.Report{Mode: gate.Warn, Verdict: gate.Undecided, Reason: gate.BadInput}, true, "error"},
		"nothing is known":         {broken(), true, "error"},
		"rejected and will refuse": {func() gate.Report { r := willRefuse(); r.Verdict, r.Reason = gate.Rejected, gate.Unsigned; return r }(), true, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, c := range runnertest.Commands(lines(report.Annotations([]gate.Report{test.r}, test.failing, report.Style{}))) {
				got = append(got, c.Name)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAnnotationsOfManySources(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 0, 1: 1, 9: 9, 10: 10, 11: 10, 500: 10} {
		var rs []gate.Report
		for i := range n {
			r := tooWide()
			r.Source.Name = fmt.Sprintf("source-%d", i)
			rs = append(rs, verified(), r)
		}
		got := runnertest.Commands(lines(report.Annotations(rs, true, report.Style{})))
		if len(got) != want {
			t.Errorf("%d failed sources: %d annotations, want %d", n, len(got), want)
		}
		told := min(n, 9)
		for i := range told {
			if !strings.Contains(got[i].Data, fmt.Sprintf("flux-system/source-%d:", i)) {
				t.Errorf("annotation %d is %q", i, got[i].Data)
			}
		}
		if n > 9 && !strings.HasPrefix(got[9].Data, fmt.Sprintf("%d more not verified: flux-system/source-9", n-9)) {
			t.Errorf("the last annotation is %q", got[9].Data)
		}
	}
}

func TestAnnotationText(t *testing.T) {
	t.Parallel()
	got := runnertest.Commands(lines(report.Annotations([]gate.Report{many()}, true, report.Style{DocsURL: "https://example.com/checks.md"})))
	if len(got) != 1 {
		t.Fatalf("%d annotations", len(got))
	}
	if title := got[0].Properties["title"]; title != "Flux Verify Gate: rejected (policy-too-wide)" {
		t.Errorf("title %q", title)
	}
	for _, want := range []string{
		"OCIRepository flux-system/flux-system: the live policy accepts", "expected: ", "found: ", "next step: ",
		"besides: 2 failed (verification-failed, digest-mismatch), 1 unknown (registry-denied)",
		"https://example.com/checks.md#policy-too-wide",
	} {
		if !strings.Contains(got[0].Data, want) {
			t.Errorf("%q is not in %q", want, got[0].Data)
		}
	}
}

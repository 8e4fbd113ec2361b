package report_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
)

var (
	tag       = regexp.MustCompile(`</?[a-z]+( open)?/?>`)
	reference = regexp.MustCompile(`&#[0-9]+;|#[0-9]+;`)
	yamlText  = regexp.MustCompile(`'.*'|".*"`)
	blockMark = regexp.MustCompile("^(#+ |- |> |\\| |```[a-z]*$|  n[0-9]|  linkStyle|flowchart|\\*\\*)")
	docsLink  = regexp.MustCompile(`\[(<code>[a-z0-9-]*(<wbr>[a-z0-9-]*)*</code>)\]\(docs/checks\.md#[a-z0-9-]+\)`)
)

// shape leaves out the tags at which a long text may be broken (<wbr>, and <br/>
// in the diagram). It is what Markdown makes a structure of in one line: how it begins, its
// cells, its tags and its other active characters.
func shape(line string) string {
	line = docsLink.ReplaceAllString(line, "$1")
	begin := blockMark.FindString(line)
	var tags []string
	for _, t := range tag.FindAllString(line, -1) {
		if t != "<wbr>" && t != "<br/>" {
			tags = append(tags, t)
		}
	}
	rest := reference.ReplaceAllString(tag.ReplaceAllString(line, ""), "")
	var acts strings.Builder
	for _, r := range rest {
		if strings.ContainsRune("|`*_[]<>\\~$!&#\"", r) {
			acts.WriteRune(r)
		}
	}
	return begin + " " + strings.Join(tags, "") + " " + acts.String()
}

func shapes(summary string) []string {
	var of []string
	yaml := false
	for line := range strings.SplitSeq(summary, "\n") {
		if strings.HasPrefix(line, "```") {
			yaml = line == "```yaml"
		}
		if yaml {
			line = yamlText.ReplaceAllString(line, "text")
		}
		of = append(of, shape(line))
	}
	return of
}

// sameShape checks that the texts of a report change nothing in the structure of
// its summary: it is that of the report with harmless texts of the same kind.
func sameShape(t *testing.T, r gate.Report) {
	t.Helper()
	style := report.Style{ReportPath: reportPath}
	got, want := shapes(report.Summary(r, style)), shapes(report.Summary(harmlessCopy(r), style))
	if !reflect.DeepEqual(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("line %d has the shape %q, with harmless texts %q:\n%s", i+1, got[i], want[i], strings.Split(report.Summary(r, style), "\n")[i])
			}
		}
		t.Fatalf("%d lines, with harmless texts %d", len(got), len(want))
	}
}

// harmlessCopy replaces every text that means nothing to the renderer.
func harmlessCopy(r gate.Report) gate.Report {
	known := map[string]bool{
		"": true, string(gate.PolicyTooWide): true, gate.DigestAny: true, "flux-operator": true,
		string(gate.Fail): true, string(gate.Unknown): true, string(gate.Note): true, string(gate.Pass): true,
		string(gate.Verified): true, string(gate.Rejected): true, string(gate.Undecided): true, string(gate.Warn): true,
	}
	for _, c := range codes(nil) {
		known[string(c)] = true
	}
	var walk func(v reflect.Value) reflect.Value
	walk = func(v reflect.Value) reflect.Value {
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		switch v.Kind() {
		case reflect.String:
			if !known[v.String()] {
				out.SetString("x")
			}
		case reflect.Pointer:
			if !v.IsNil() {
				p := reflect.New(v.Type().Elem())
				p.Elem().Set(walk(v.Elem()))
				out.Set(p)
			}
		case reflect.Slice:
			if !v.IsNil() {
				out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
				for i := range v.Len() {
					out.Index(i).Set(walk(v.Index(i)))
				}
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					out.Field(i).Set(walk(v.Field(i)))
				}
			}
		}
		return out
	}
	return walk(reflect.ValueOf(r)).Interface().(gate.Report)
}

func TestSummaryKeepsItsShape(t *testing.T) {
	t.Parallel()
	for _, s := range hostile {
		sameShape(t, hostileReport(s))
	}
	for _, r := range samples() {
		sameShape(t, r)
	}
}

// TestShapeSeesHarm is the control: a summary with raw text in it has another
// shape.
func TestShapeSeesHarm(t *testing.T) {
	t.Parallel()
	const cell = "| ❌ | <code>x</code> | y |"
	for _, raw := range []string{"|", "`", "**", "<b>", "</code>", "[a](b)", "\\", "$"} {
		if shape(cell) == shape(strings.Replace(cell, "y", raw, 1)) {
			t.Errorf("%q makes no difference to the shape", raw)
		}
	}
	if shape("x") == shape("# x") || shape("x") == shape("| x") {
		t.Error("how a line begins makes no difference to the shape")
	}
}

func TestSummaryCountsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	got := report.Summary(huge(), report.Style{ReportPath: reportPath})
	for _, want := range []string{"more findings: see", "more signatures: see", "more entries: see", "more owners: see"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not said", want)
		}
	}
	if n := len(got); n > report.SummaryLimit || n < report.SummaryLimit/2 {
		t.Errorf("%d bytes", n)
	}
	if rows, heads := strings.Count(got, "| ❌ |"), strings.Count(got, "| Check |"); rows < 5 || heads != 1 {
		t.Errorf("%d rows under %d headers", rows, heads)
	}
}

func TestSummaryWithALongPolicy(t *testing.T) {
	t.Parallel()
	r := tooWide()
	r.Policy.Suggested.Subject = strings.Repeat("a", 13<<10)
	got := report.Summary(r, report.Style{})
	if !strings.Contains(got, "too long to be shown") || strings.Contains(got, "```yaml") {
		t.Errorf("a policy of 13 KiB is shown:\n%s", got)
	}
	if log := logOf(t, r, report.Style{}); !strings.Contains(log, "too long to be shown") {
		t.Errorf("a policy of 13 KiB is logged:\n%s", log)
	}
}

func TestSummaryChoosesThePatch(t *testing.T) {
	t.Parallel()
	r := tooWide()
	owned := report.Summary(r, report.Style{})
	if !strings.Contains(owned, "path: /spec/verify") || strings.Contains(owned, "In the OCIRepository") {
		t.Errorf("an object of flux-operator should be changed by a patch only:\n%s", owned)
	}
	r.Owners[0].Manager = "kustomize-controller"
	plain := report.Summary(r, report.Style{})
	for _, want := range []string{"In the OCIRepository", "path: /spec/verify", "kind: OCIRepository"} {
		if !strings.Contains(plain, want) {
			t.Errorf("%q is missing in:\n%s", want, plain)
		}
	}
}

// TestChain holds which link of the diagram a finding marks.
func TestChain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		findings []gate.Finding
		digest   string
		want     []string
	}{
		"nothing": {nil, digestA, nil},
		"nothing of the chain": {
			[]gate.Finding{{Code: gate.Unreachable, Outcome: gate.Unknown}}, digestA, nil,
		},
		"all hold": {
			join(passA, passB, passC, passD, passE), digestA,
			[]string{`-->|"✔ accepts them"|`, `-->|"✔ verified"|`, `-->|"✔ is"|`, `-->|"✔ signed"|`},
		},
		"Ready without a policy: nothing was verified": {
			join(passA, []gate.Finding{{Code: gate.VerifyAbsent, Outcome: gate.Fail}}, pass(gate.NotReady, gate.ArtifactMissing)), digestA,
			[]string{`--x|"✗ verify-absent"|`, `-.->|"• nothing was verified"|`},
		},
		"any digest": {
			join(passA, passB, passC, passD), gate.DigestAny,
			[]string{`-->|"✔ accepts them"|`, `-->|"✔ verified"|`, `-.->|"• any digest is accepted"|`, `-->|"✔ signed"|`},
		},
		"any digest, said in a note; signature skipped": {
			join(passB, passC, passE, pass(gate.ControllerDisagrees), []gate.Finding{
				{Code: gate.DigestMismatch, Outcome: gate.Note}, {Code: gate.SignatureSkipped, Outcome: gate.Note},
			}, pass(gate.Unsigned)), gate.DigestAny,
			[]string{`-->|"✔ accepts them"|`, `-->|"✔ verified"|`, `-.->|"• any digest is accepted"|`, `-.->|"• signature-skipped"|`},
		},
		"the self-test is no signature": {
			join(passB, passE), digestA,
			[]string{`-->|"✔ accepts them"|`, `-.->|"not looked at"|`, `-.->|"not looked at"|`, `-.->|"not looked at"|`},
		},
		"a fail beats an unknown beats a pass beats a note": {
			join(passB, []gate.Finding{
				{Code: gate.ProofTooLarge, Outcome: gate.Unknown},
				{Code: gate.PolicyTooWide, Outcome: gate.Fail},
				{Code: gate.SignerMissing, Outcome: gate.Fail},
				{Code: gate.MessageUnknown, Outcome: gate.Unknown},
				{Code: gate.SignatureSkipped, Outcome: gate.Note},
			}, passC), digestA,
			[]string{`--x|"✗ policy-too-wide and 1 more"|`, `-.->|"? message-unknown"|`, `-.->|"not looked at"|`, `-.->|"• signature-skipped"|`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := report.Summary(gate.Report{Findings: test.findings, Expected: gate.Expected{Digest: test.digest}}, report.Style{})
			if has := strings.Contains(got, "```mermaid"); has != (test.want != nil) {
				t.Fatalf("diagram: %v", has)
			}
			for i, want := range test.want {
				if line := "  n" + string(rune('0'+i)) + " " + want; !strings.Contains(got, line) {
					t.Errorf("no line %q in:\n%s", line, got)
				}
			}
		})
	}
}

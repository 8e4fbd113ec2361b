package report_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
	"flux-verify-gate/gate/report/runnertest"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const reportPath = "flux-verify-gate-report.json"

// TestGolden holds what people and programs see of each sample report.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, r := range samples() {
		style := report.Style{ReportPath: reportPath}
		failing := r.Mode != gate.Warn
		for file, text := range map[string]string{
			name + ".log":        logOf(t, r, style),
			name + ".annotation": lines(report.Annotations([]gate.Report{r}, failing, style)),
			name + ".output":     outputFile(t, report.Outputs(r, reportPath)),
			name + ".md":         report.Summary(r, style),
			name + ".json":       jsonOf(t, r),
		} {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				golden(t, file, text)
			})
		}
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it); got:\n%s", path, got)
	}
}

func logOf(t *testing.T, r gate.Report, s report.Style) string {
	t.Helper()
	var b strings.Builder
	if err := report.WriteLog(&b, r, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func jsonOf(t *testing.T, r gate.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func outputFile(t *testing.T, outputs []report.Output) string {
	t.Helper()
	text, err := report.FormatOutputs(outputs)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func lines(of []string) string {
	if len(of) == 0 {
		return ""
	}
	return strings.Join(of, "\n") + "\n"
}

// TestHostileTextsDoHarm is the control of every test with hostile texts: the
// oracle finds commands in them when they are printed as they are.
func TestHostileTextsDoHarm(t *testing.T) {
	t.Parallel()
	fired := map[string]bool{}
	for _, s := range hostile {
		for _, c := range runnertest.Formed("\n" + s + "\n") {
			fired[c.Grammar+" "+c.Name] = true
		}
	}
	for _, want := range []string{
		"modern error", "modern set-output", "modern add-mask", "modern stop-commands",
		"legacy set-output", "legacy add-mask", "legacy error",
	} {
		if !fired[want] {
			t.Errorf("no hostile text is a command %s", want)
		}
	}
}

// hold checks everything that must hold of whatever is rendered.
func hold(t *testing.T, r gate.Report) {
	t.Helper()
	style := report.Style{ReportPath: reportPath, DocsURL: report.DefaultDocsURL}

	log := logOf(t, r, style)
	if found := runnertest.Formed(log); len(found) > 0 {
		t.Errorf("the log has a command: %+v", found[0])
	}
	for _, line := range runnertest.Lines(log) {
		if !logLine(line) {
			t.Errorf("the log has a line that begins with something else: %q", line)
		}
	}

	summary := report.Summary(r, style)
	if len(summary) > report.SummaryLimit {
		t.Errorf("the summary has %d bytes", len(summary))
	}
	if found := runnertest.Formed(summary); len(found) > 0 {
		t.Errorf("the summary has a command: %+v", found[0])
	}

	annotations := report.Annotations([]gate.Report{r}, true, style)
	found := runnertest.Formed(lines(annotations))
	if len(found) != len(annotations) || len(found) > 1 {
		t.Errorf("%d annotations, %d commands", len(annotations), len(found))
	}
	for _, c := range found {
		if c.Grammar != runnertest.Modern || c.Name != "error" && c.Name != "notice" || len(c.Properties) != 1 {
			t.Errorf("not an annotation of ours: %+v", c)
		}
		if len(c.Data) > runnertest.MaxIssue {
			t.Errorf("the annotation has %d bytes", len(c.Data))
		}
	}

	outputs := report.Outputs(r, r.Cluster.File)
	read, err := runnertest.Outputs(outputFile(t, outputs))
	if err != nil {
		t.Errorf("the output file: %v", err)
	}
	if len(read) != len(outputs) {
		t.Errorf("%d outputs were read, %d written", len(read), len(outputs))
	}
	for _, o := range outputs {
		if read[o.Name] != o.Value {
			t.Errorf("output %s is read as %q, written as %q", o.Name, read[o.Name], o.Value)
		}
		if printed := "\n" + o.Value + "\n"; len(runnertest.Formed(printed)) > 0 {
			t.Errorf("output %s is a command when printed: %q", o.Name, o.Value)
		}
	}
	if n := len(read["findings"]); n > report.FindingsLimit {
		t.Errorf("findings has %d bytes", n)
	}

	if found := runnertest.Formed(jsonOf(t, r)); len(found) > 0 {
		t.Errorf("the JSON report is a command when printed: %+v", found[0])
	}
}

// logLine says that a line begins with a symbol, or is of the policy to paste.
func logLine(line string) bool {
	for _, s := range []report.Symbol{report.Passed, report.Failed, report.Unsure, report.Noted, report.Doing, report.Continued} {
		if strings.HasPrefix(line, string(s)+" ") {
			return true
		}
	}
	line = strings.TrimLeft(line, " ")
	for _, key := range []string{"spec:", "verify:", "provider: cosign", "trustedRootSecretRef:", "secretRef:", "matchOIDCIdentity:", "name: ", "- issuer: ", "subject: ",
		"kustomize:", "patches:", "- target:", "kind: OCIRepository", "patch: |", "- op: add", "path: /spec/verify", "value:"} {
		if strings.HasPrefix(line, key) {
			return true
		}
	}
	return false
}

func TestHold(t *testing.T) {
	t.Parallel()
	for name, r := range samples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold(t, r)
		})
	}
	t.Run("huge", func(t *testing.T) {
		t.Parallel()
		hold(t, huge())
	})
	t.Run("each hostile text everywhere", func(t *testing.T) {
		t.Parallel()
		for _, s := range hostile {
			hold(t, hostileReport(s))
			hold(t, filledWith(s))
		}
	})
	t.Run("each hostile text repeated", func(t *testing.T) {
		t.Parallel()
		for i := 0; i < len(hostile); i += 4 {
			hold(t, hostileReport(strings.Repeat(hostile[i], 250), hostile[(i+1)%len(hostile)]))
		}
	})
}

func FuzzReport(f *testing.F) {
	for i, s := range hostile {
		f.Add(s, hostile[(i+7)%len(hostile)], hostile[(i+31)%len(hostile)])
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, r := range []gate.Report{hostileReport(a, b, c), filledWith(a, b, c)} {
			hold(t, r)
			sameShape(t, r)
		}
	})
}

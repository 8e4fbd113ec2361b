package report_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
	"flux-verify-gate/gate/report/runnertest"
)

var declared = []string{"verdict", "verified", "reason", "digest", "reference", "revision", "findings", "report"}

func outputsOf(t *testing.T, outputs []report.Output) map[string]string {
	t.Helper()
	of := map[string]string{}
	var names []string
	for _, o := range outputs {
		of[o.Name] = o.Value
		names = append(names, o.Name)
	}
	if strings.Join(names, " ") != strings.Join(declared, " ") {
		t.Errorf("the outputs are %q, expected %q", names, declared)
	}
	return of
}

// TestOutputsPromote holds the promise of the outputs: a digest and a reference
// come out of a live source that was verified, and of nothing else.
func TestOutputsPromote(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change                      func(r *gate.Report)
		verified, digest, reference string
	}{
		"verified, live": {func(*gate.Report) {}, "true", digestA, "ghcr.io/acme/platform@" + digestA},
		"in mode warn":   {func(r *gate.Report) { r.Mode = gate.Warn }, "true", digestA, "ghcr.io/acme/platform@" + digestA},
		"a registry with a port": {
			func(r *gate.Report) { r.Source.Reference = "[::1]:5000/a_b/c@" + digestA }, "true", digestA, "[::1]:5000/a_b/c@" + digestA,
		},
		"a recording":                  {func(r *gate.Report) { r.Live = false }, "false", "", ""},
		"rejected":                     {func(r *gate.Report) { r.Verdict, r.Reason = gate.Rejected, gate.Unsigned }, "false", "", ""},
		"rejected, in mode warn":       {func(r *gate.Report) { r.Verdict, r.Reason, r.Mode = gate.Rejected, gate.Unsigned, gate.Warn }, "false", "", ""},
		"undecided":                    {func(r *gate.Report) { r.Verdict, r.Reason = gate.Undecided, gate.NoAnswer }, "false", "", ""},
		"no verdict":                   {func(r *gate.Report) { r.Verdict = "" }, "false", "", ""},
		"another word for it":          {func(r *gate.Report) { r.Verdict = "Verified" }, "false", "", ""},
		"verified for a reason":        {func(r *gate.Report) { r.Reason = gate.Unsigned }, "false", "", ""},
		"verified for no reason":       {func(r *gate.Report) { r.Reason = "" }, "false", "", ""},
		"no digest":                    {func(r *gate.Report) { r.Source.Digest = "" }, "true", "", ""},
		"not a digest":                 {func(r *gate.Report) { r.Source.Digest += "0" }, "true", "", ""},
		"upper case":                   {func(r *gate.Report) { r.Source.Digest = strings.ToUpper(digestA) }, "true", "", ""},
		"a digest with a line":         {func(r *gate.Report) { r.Source.Digest += "\n" }, "true", "", ""},
		"a reference to another":       {func(r *gate.Report) { r.Source.Reference = "ghcr.io/acme/platform@" + digestB }, "true", digestA, ""},
		"a reference with a space":     {func(r *gate.Report) { r.Source.Reference = "ghcr.io/a b@" + digestA }, "true", digestA, ""},
		"a reference with a command":   {func(r *gate.Report) { r.Source.Reference = "##[error]@" + digestA }, "true", digestA, ""},
		"a reference with a shell":     {func(r *gate.Report) { r.Source.Reference = "a/$(b)@" + digestA }, "true", digestA, ""},
		"a reference without registry": {func(r *gate.Report) { r.Source.Reference = "@" + digestA }, "true", digestA, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := verified()
			test.change(&r)
			got := outputsOf(t, report.Outputs(r, reportPath))
			if got["verified"] != test.verified || got["digest"] != test.digest || got["reference"] != test.reference {
				t.Errorf("got verified %q, digest %q, reference %q", got["verified"], got["digest"], got["reference"])
			}
			if (got["verdict"] == "verified") != (test.verified == "true") && name != "a recording" {
				t.Errorf("verdict %q beside verified %q", got["verdict"], got["verified"])
			}
			if got["revision"] != "latest@"+digestA {
				t.Errorf("revision %q, expected what is serving, always", got["revision"])
			}
		})
	}
}

func TestNothingKnown(t *testing.T) {
	t.Parallel()
	got := outputsOf(t, report.NothingKnown())
	for name, value := range got {
		want := map[string]string{"verdict": "undecided", "verified": "false", "findings": "[]"}[name]
		if value != want {
			t.Errorf("%s is %q, expected %q", name, value, want)
		}
	}
}

func TestFindingsOutput(t *testing.T) {
	t.Parallel()
	var list []map[string]any
	text := outputsOf(t, report.Outputs(many(), ""))["findings"]
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range list {
		got = append(got, f["outcome"].(string)+" "+f["code"].(string))
	}
	want := "fail policy-too-wide, fail verification-failed, fail digest-mismatch, unknown registry-denied, note source-insecure"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if list[1]["class"] != "no-signature" || list[1]["found"] != many().Findings[len(passA)+len(passB)+1].Found {
		t.Errorf("got %v", list[1])
	}
	if text := outputsOf(t, report.Outputs(verified(), ""))["findings"]; text != "[]" {
		t.Errorf("with passes only: %s", text)
	}
}

func TestFindingsOutputCountsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	r := huge()
	telling := 0
	for _, f := range r.Findings {
		if f.Outcome != gate.Pass {
			telling++
		}
	}
	text := outputsOf(t, report.Outputs(r, ""))["findings"]
	var list []map[string]any
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	last := list[len(list)-1]
	if more, _ := last["more"].(float64); len(list)-1+int(more) != telling || more == 0 {
		t.Errorf("%d findings are shown and %v counted, of %d", len(list)-1, last["more"], telling)
	}
	if len(text) > report.FindingsLimit || len(text) < report.FindingsLimit/2 {
		t.Errorf("%d bytes", len(text))
	}
}

func TestFormatOutputs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ output report.Output }{
		"line feed":       {report.Output{Name: "a", Value: "b\nverified=true"}},
		"carriage return": {report.Output{Name: "a", Value: "b\rverified=true"}},
		"no name":         {report.Output{Name: "", Value: "b"}},
		"name with =":     {report.Output{Name: "a=b", Value: "c"}},
		"name with <<":    {report.Output{Name: "a<<b", Value: "c"}},
		"name with line":  {report.Output{Name: "a\nb", Value: "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if text, err := report.FormatOutputs([]report.Output{{Name: "x", Value: "y"}, test.output}); err == nil || text != "" {
				t.Errorf("got %q and no error", text)
			}
		})
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	output, summary := filepath.Join(dir, "output"), filepath.Join(dir, "summary")
	env := map[string]string{"GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": summary}
	getenv := func(name string) string { return env[name] }

	for _, outputs := range [][]report.Output{report.NothingKnown(), report.Outputs(verified(), reportPath)} {
		if err := report.AppendOutputs(getenv, outputs); err != nil {
			t.Fatal(err)
		}
	}
	if err := report.AppendOutputs(getenv, []report.Output{{Name: "digest", Value: "a"}, {Name: "b", Value: "\n"}}); err == nil {
		t.Error("a value of two lines was written")
	}
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	got, err := runnertest.Outputs(string(text))
	if err != nil || got["verdict"] != "verified" || got["digest"] != digestA || got["report"] != reportPath || len(got) != len(declared) {
		t.Errorf("got %q, %v", got, err)
	}

	for _, part := range []string{"# a\n", "b\n"} {
		if err := report.AppendSummary(getenv, part); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(summary); err != nil || string(text) != "# a\nb\n" {
		t.Errorf("got %q, %v", text, err)
	}

	nothing := func(string) string { return "" }
	for _, err := range []error{report.AppendOutputs(nothing, report.NothingKnown()), report.AppendSummary(nothing, "a")} {
		if !errors.Is(err, report.ErrNoFile) {
			t.Errorf("got %v, want ErrNoFile", err)
		}
	}
	missing := func(string) string { return filepath.Join(dir, "missing", "file") }
	for _, err := range []error{report.AppendOutputs(missing, report.NothingKnown()), report.AppendSummary(missing, "a")} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want that the file cannot be opened", err)
		}
	}
}

func FuzzFormatOutputs(f *testing.F) {
	for i, s := range hostile {
		f.Add("digest", s)
		f.Add(s, hostile[(i+3)%len(hostile)])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		text, err := report.FormatOutputs([]report.Output{{Name: "verdict", Value: "undecided"}, {Name: name, Value: value}, {Name: "verified", Value: "false"}})
		if err != nil {
			return
		}
		got, err := runnertest.Outputs(text)
		if err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		want := map[string]string{"verdict": "undecided", name: value, "verified": "false"}
		if name == "verified" {
			want[name] = "false"
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
)

// schemas compiles docs/report.schema.json as it is, and closed: with every
// object refusing what it does not describe.
func schemas(t *testing.T) (open, closed *jsonschema.Schema) {
	t.Helper()
	text, err := os.ReadFile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	compile := func(close bool) *jsonschema.Schema {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if close {
			closeObjects(doc)
		}
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.AssertFormat()
		if err := c.AddResource("report.json", doc); err != nil {
			t.Fatal(err)
		}
		s, err := c.Compile("report.json")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return compile(false), compile(true)
}

func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, e := range v {
			closeObjects(e)
		}
	case []any:
		for _, e := range v {
			closeObjects(e)
		}
	}
}

func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

// full is a report in which nothing is empty, and every word is one that the
// schema knows.
func full() gate.Report {
	r := filledWith("text")
	r.SchemaVersion, r.Verdict, r.Reason, r.Mode = gate.SchemaVersion, gate.Rejected, gate.Unsigned, gate.Warn
	for i := range r.Findings {
		r.Findings[i].Code, r.Findings[i].Outcome, r.Findings[i].Class = gate.Unsigned, gate.Unknown, gate.ClassNoSignature
	}
	r.Canary.Class = gate.ClassNoSignature
	for i := range r.Signers {
		r.Signers[i].Layout, r.Signers[i].Kind = gate.LayoutBundle, gate.KindAttestation
	}
	for i := range r.Policy.Witnesses {
		r.Policy.Witnesses[i].Code = gate.PolicyTooWide
	}
	return r
}

func TestJSONHasItsSchema(t *testing.T) {
	t.Parallel()
	open, closed := schemas(t)
	reports := samples()
	delete(reports, "hostile") // its words are none of the schema
	reports["full"] = full()
	reports["huge"] = huge()
	for name, r := range reports {
		text := jsonOf(t, r)
		if err := validate(t, open, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := validate(t, closed, text); err != nil {
			t.Errorf("%s has something that the schema does not describe: %v", name, err)
		}
	}
}

// TestSchemaDescribesNothingElse is the other direction: every property of the
// schema occurs in a report in which nothing is empty.
func TestSchemaDescribesNothingElse(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal([]byte(jsonOf(t, full())), &doc); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, s map[string]any, v any)
	walk = func(path string, s map[string]any, v any) {
		if ref, ok := s["$ref"].(string); ok {
			s = schema["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		if items, ok := s["items"].(map[string]any); ok {
			for _, e := range v.([]any) {
				walk(path+"[]", items, e)
			}
		}
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			e, ok := v.(map[string]any)[name]
			if !ok {
				t.Errorf("%s.%s is in the schema and in no report", path, name)
				continue
			}
			walk(path+"."+name, p.(map[string]any), e)
		}
	}
	walk("", schema, doc)
}

// TestSchemaRefuses is the control: the schema tells a report from what is none.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	open, closed := schemas(t)
	good := jsonOf(t, many())
	for old, wrong := range map[string]string{
		`"verdict": "rejected"`:               `"verdict": "fine"`,
		`"reason": "policy-too-wide"`:         `"reason": "Too Wide"`,
		`"judgedAt": "2026-11-30T19:26:59Z"`:  `"judgedAt": "2026-11-30T19:26:59+01:00"`,
		`"startedAt": "2026-11-30T19:26:47Z"`: `"startedAt": "yesterday"`,
		`"outcome": "fail"`:                   `"outcome": "pending"`,
		`"waitedSeconds": 11.5`:               `"waitedSeconds": "11.5"`,
		`"live": true`:                        `"live": null`,
		`"allowed": []`:                       `"allowed": null`,
		`"schemaVersion": 1`:                  `"schemaVersion": 2`,
		`"layout": "bundle"`:                  `"layout": "other"`,
	} {
		bad := strings.Replace(good, old, wrong, 1)
		if bad == good {
			t.Errorf("%s is not in the report", old)
		} else if validate(t, open, bad) == nil {
			t.Errorf("%s is not refused", wrong)
		}
	}
	more := strings.Replace(good, `"live": true`, `"live": true, "more": 1`, 1)
	if err := validate(t, open, more); err != nil {
		t.Errorf("a field of a later version is refused: %v", err)
	}
	if validate(t, closed, more) == nil {
		t.Error("the closed schema does not see a field that is not described")
	}
}

// TestJSONKeepsValues holds that what makes the file harmless to print does not
// change what it says.
func TestJSONKeepsValues(t *testing.T) {
	t.Parallel()
	for _, s := range append([]string{"\U0001F600", "\U0010ffff", "a##b###c", `\##\"#`, "\u2028"}, hostile...) {
		in := strings.ToValidUTF8(s, "\ufffd")
		r := hostileReport(in)
		text := jsonOf(t, r)
		var got gate.Report
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if !reflect.DeepEqual(got.Findings, unwaited(r.Findings)) || !reflect.DeepEqual(got.Policy, r.Policy) || !reflect.DeepEqual(got.Signers, r.Signers) {
			t.Errorf("%q is changed:\n%s", s, text)
		}
	}
}

// unwaited leaves out what the JSON leaves out.
func unwaited(findings []gate.Finding) []gate.Finding {
	var of []gate.Finding
	for _, f := range findings {
		f.Wait = ""
		of = append(of, f)
	}
	return of
}

func TestJSONOfNothing(t *testing.T) {
	t.Parallel()
	r := gate.Report{JudgedAt: time.Date(2026, 1, 1, 1, 0, 0, 0, time.FixedZone("CET", 3600)), Owners: []gate.Owner{{}}}
	r.Timings.Waited = gate.Seconds(math.NaN())
	text := jsonOf(t, r)
	if strings.Contains(text, "null") {
		t.Errorf("a list is null:\n%s", text)
	}
	for _, want := range []string{`"judgedAt": "2026-01-01T00:00:00Z"`, `"verdict": "undecided"`, `"reason": "internal"`, `"waitedSeconds": 0,`, `"fields": []`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in:\n%s", want, text)
		}
	}
	if !strings.HasSuffix(text, "}\n") {
		t.Errorf("it ends with %q", text[len(text)-3:])
	}
	if r.Owners[0].Fields != nil {
		t.Error("the caller's report was changed")
	}
}

type failing struct{}

var errFull = errors.New("the disk is full")

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestWritersReturnErrors(t *testing.T) {
	t.Parallel()
	if err := report.WriteJSON(failing{}, verified()); !errors.Is(err, errFull) {
		t.Errorf("WriteJSON: %v", err)
	}
	if err := report.WriteLog(failing{}, verified(), report.Style{}); !errors.Is(err, errFull) {
		t.Errorf("WriteLog: %v", err)
	}
}

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"flux-verify-gate/gate"
)

func source(namespace, name string) string {
	return fmt.Sprintf(`{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"OCIRepository","metadata":{"namespace":%q,"name":%q},"spec":{"url":"oci://x","interval":"1m"}}`, namespace, name)
}

const kustomization = `{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"a"}}`

func list(apiVersion, kind string, items ...string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"items":[%s]}`, apiVersion, kind, strings.Join(items, ","))
}

func toYAML(t testing.TB, text string) string {
	t.Helper()
	out, err := yaml.JSONToYAML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestReadRecordingFindsTheSource(t *testing.T) {
	t.Parallel()
	a, b := source("flux-system", "a"), source("flux-system", "b")
	bare := `{"metadata":{"namespace":"flux-system","name":"a"},"spec":{"url":"oci://x","interval":"1m"}}`
	utf16 := func(text string) string {
		out := "\xff\xfe"
		for i := range len(text) {
			out += text[i:i+1] + "\x00"
		}
		return out
	}
	for name, text := range map[string]string{
		"one, whatever its name":         source("x", "y"),
		"one, as YAML":                   toYAML(t, a),
		"one, flow YAML":                 `{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: a}}`,
		"one, with a byte order mark":    "\ufeff" + a,
		"one, UTF-16 as from PowerShell": utf16(a),
		"one beside another kind":        list("v1", "List", kustomization, source("x", "y")),
		"List":                           list("v1", "List", a, b),
		"List, as YAML":                  toYAML(t, list("v1", "List", a, b)),
		"OCIRepositoryList":              list("source.toolkit.fluxcd.io/v1", "OCIRepositoryList", a, b),
		"OCIRepositoryList, bare":        list("source.toolkit.fluxcd.io/v1", "OCIRepositoryList", bare),
		"documents":                      toYAML(t, a) + "---\n" + toYAML(t, b),
		"documents, with a comment":      "--- # first\n" + toYAML(t, b) + "--- # second\n" + toYAML(t, a),
		"documents, one empty":           "---\n---\n" + toYAML(t, a) + "---\n",
		"documents of JSON":              a + "\n---\n" + b,
		"another group of that kind":     list("v1", "List", a, strings.Replace(a, "source.toolkit.fluxcd.io", "example.com", 1)),
		"unquoted time":                  "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {creationTimestamp: 2026-11-30T17:22:49Z}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ReadRecording(strings.NewReader(text), "flux-system", "a")
			if err != nil {
				t.Fatal(err)
			}
			if got.Object.Kind != kind || got.Object.Name == "b" {
				t.Errorf("got %s %s", got.Object.Kind, got.Object.Name)
			}
		})
	}
}

func TestReadRecordingRefuses(t *testing.T) {
	t.Parallel()
	a, b := source("flux-system", "a"), source("flux-system", "b")
	deep := strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"empty":                  {"", []string{"an empty file"}},
		"blank":                  {" \n\t\n", []string{"an empty file"}},
		"only a comment":         {"# nothing\n", []string{"found nothing"}},
		"null":                   {"null", []string{"found nothing"}},
		"a string":               {"hello", []string{`the string "hello"`}},
		"a list at the top":      {"[" + a + "]", []string{"a list"}},
		"an HTML page":           {"<html><body>Sign in</body></html>", []string{"the string"}},
		"empty List":             {list("v1", "List"), []string{"an empty List"}},
		"List without items":     {`{"apiVersion":"v1","kind":"List"}`, []string{"an empty List"}},
		"items, a map":           {`{"apiVersion":"v1","kind":"List","items":{}}`, []string{"items: expected a list"}},
		"an item, null":          {list("v1", "List", "null"), []string{"items[0]: null"}},
		"another kind":           {kustomization, []string{"a Kustomization of kustomize.toolkit.fluxcd.io/v1"}},
		"no kind":                {`{"a":1}`, []string{"a null of null"}},
		"a List in a List":       {list("v1", "List", list("v1", "List", a)), []string{"a List of v1"}},
		"two, no match":          {list("v1", "List", source("x", "a"), b), []string{"0 of them match", `"flux-system/a"`, `"x/a", "flux-system/b"`}},
		"two matches":            {list("v1", "List", a, a), []string{"2 of them match"}},
		"two documents match":    {toYAML(t, a) + "---\n" + toYAML(t, a), []string{"2 of them match"}},
		"JSON one after another": {a + a, []string{"after top-level value"}},
		"unknown version":        {strings.Replace(a, "io/v1", "io/v9", 1), []string{"source.toolkit.fluxcd.io/v9"}},
		"a field twice":          {strings.Replace(a, `"spec":`, `"spec":{},"spec":`, 1), []string{`duplicate field "spec"`}},
		"a deep field twice":     {strings.Replace(a, `"url":"oci://x"`, `"verify":{"provider":"a","provider":"b"}`, 1), []string{`spec.verify.provider`}},
		"a YAML field twice":     {toYAML(t, a) + "spec: {}\n", []string{`the field "spec" twice`}},
		"truncated":              {a[:len(a)-5], []string{"unexpected end of JSON input"}},
		"not UTF-8":              {strings.Replace(a, "oci://x", "oci://\xff", 1), []string{"not UTF-8"}},
		"an alias":               {"a: &x {}\nb: *x\n", []string{"line 1", "anchor or alias"}},
		"a merge":                {"a: {<<: {b: c}}\n", []string{"line 1", "not a plain string"}},
		"NaN":                    {toYAML(t, a) + "x: .nan\n", []string{`".nan"`, "JSON cannot hold"}},
		"infinity":               {toYAML(t, a) + "x: -.inf\n", []string{"JSON cannot hold"}},
		"a huge number":          {strings.Replace(a, `"name":`, `"generation":1e999,"name":`, 1), []string{"1e999"}},
		"beyond int64":           {strings.Replace(a, `"name":`, `"generation":9223372036854775808,"name":`, 1), []string{"metadata.generation: expected an integer"}},
		"an octal number":        {toYAML(t, a) + "x: 0o17\n", []string{"JSON cannot hold"}},
		"a binary":               {toYAML(t, a) + "x: !!binary aGk=\n", []string{"!!binary"}},
		"another tag":            {toYAML(t, a) + "x: !go {}\n", []string{`"!go"`}},
		"a key that is a number": {"1: a\n", []string{"line 1", "not a plain string"}},
		"deep YAML":              {"x: " + deep, []string{"levels"}},
		"a wrong type":           {strings.Replace(a, `"interval":"1m"`, `"suspend":"no"`, 1), []string{`spec.suspend: expected true or false, found the string "no"`}},
		"too long":               {strings.Repeat(" ", MaxRecording+1), []string{"at most 16 MiB"}},
		"many kinds":             {list("v1", "List", kustomization, kustomization, kustomization, kustomization, kustomization, kustomization, kustomization), []string{"and 2 more"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadRecording(strings.NewReader(test.text), "flux-system", "a")
			var failure *Error
			if !errors.As(err, &failure) || failure.Failure.Code != gate.BadInput || failure.Failure.Transient {
				t.Fatalf("got %v, want a final bad-input", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
}

// lostIn names a value of raw that kept does not have. Empty values may go.
func lostIn(raw, kept any) string {
	switch value := raw.(type) {
	case nil:
		return ""
	case map[string]any:
		other, _ := kept.(map[string]any)
		for key, entry := range value {
			if lost := lostIn(entry, other[key]); lost != "" {
				return key + "." + lost
			}
		}
	case []any:
		other, _ := kept.([]any)
		if len(value) != len(other) {
			return "an entry"
		}
		for i := range value {
			if lost := lostIn(value[i], other[i]); lost != "" {
				return lost
			}
		}
	default:
		if raw != kept && !(raw == "" && kept == nil) {
			return describe(raw)
		}
	}
	return ""
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, os.ErrPermission }

func TestReadRecordingNamesAReadError(t *testing.T) {
	t.Parallel()
	_, err := ReadRecording(brokenReader{}, "a", "b")
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

// JSON and the YAML that says the same must give the same source.
func FuzzReadRecording(f *testing.F) {
	data, err := os.ReadFile("testdata/keyless.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add(toYAML(f, string(data)))
	f.Add(list("v1", "List", source("flux-system", "a"), kustomization))
	f.Add("a: &a [*a]\n---\nb: {<<: *a}")
	f.Add(`{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"OCIRepository","spec":{"verify":{"Provider":"x","matchOIDCIdentity":[{"issuer":"i"}]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ReadRecording(strings.NewReader(text), "flux-system", "a")
		if err != nil {
			var failure *Error
			if !errors.As(err, &failure) || failure.Failure.Code != gate.BadInput {
				t.Fatalf("got %v, want a bad-input", err)
			}
			return
		}
		if got.Object.Kind != kind {
			t.Fatalf("accepted a %s", got.Object.Kind)
		}
		// Of a policy without unknown fields nothing may be lost.
		if document, err := parseJSON([]byte(text)); err == nil && len(got.UnknownVerify) == 0 && isSource(document.(map[string]any)) {
			raw, _, _ := unstructured.NestedFieldNoCopy(document.(map[string]any), "spec", "verify")
			typed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&got.Object)
			if err != nil {
				t.Fatal(err)
			}
			kept, _, _ := unstructured.NestedFieldNoCopy(typed, "spec", "verify")
			if lost := lostIn(raw, kept); lost != "" {
				t.Fatalf("lost %s of %v, kept %v", lost, raw, kept)
			}
		}
		// What was accepted must survive being written and read again.
		out, err := json.Marshal(got.Object)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadRecording(strings.NewReader(string(out)), "flux-system", "a")
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		once, _ := json.Marshal(got.Object.Spec)
		twice, _ := json.Marshal(again.Object.Spec)
		if string(once) != string(twice) {
			t.Fatalf("got %s, then %s", once, twice)
		}
	})
}

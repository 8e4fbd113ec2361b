package cluster

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"flux-verify-gate/gate"
)

// recorded is an object that source-controller 1.9.3 wrote on a real API
// server, with fields set or, by a nil value, removed.
func recorded(t testing.TB, change map[string]any) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile("testdata/keyless.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := parseJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: document.(map[string]any)}
	for path, value := range change {
		fields := strings.Split(path, ".")
		if value == nil {
			unstructured.RemoveNestedField(object.Object, fields...)
			continue
		}
		if value == "null" {
			value = nil
		}
		parent := object.Object
		for _, field := range fields[:len(fields)-1] {
			parent = parent[field].(map[string]any)
		}
		parent[fields[len(fields)-1]] = value
	}
	return object
}

func TestDecodeReadsWhatTheControllerWrote(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		source, err := Decode(recorded(t, map[string]any{
			"apiVersion":                           group + "/" + version,
			"status.sourceVerificationFingerprint": "sha256:abc",
		}))
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		object := source.Object
		if object.APIVersion != group+"/"+version || object.Name != "kl" || object.Generation != 1 || object.UID == "" {
			t.Errorf("%s: got metadata %v of %s", version, object.ObjectMeta, object.APIVersion)
		}
		if got, want := object.Spec.Interval.Duration, 10*time.Second; got != want {
			t.Errorf("%s: got the interval %s, want %s", version, got, want)
		}
		if verify := object.Spec.Verify; verify == nil || len(verify.MatchOIDCIdentity) != 1 ||
			verify.MatchOIDCIdentity[0].Issuer != `^https://token\.actions\.githubusercontent\.com$` ||
			verify.TrustedRootSecretRef == nil || verify.TrustedRootSecretRef.Name != "sigstore-root" {
			t.Errorf("%s: got spec.verify %+v", version, verify)
		}
		if len(object.Status.Conditions) != 3 || object.Status.Artifact == nil || object.Status.Artifact.Size == nil {
			t.Errorf("%s: got the status %+v", version, object.Status)
		}
		if source.Fingerprint != "sha256:abc" || source.UnknownVerify != nil {
			t.Errorf("%s: got fingerprint %q, unknown fields %q", version, source.Fingerprint, source.UnknownVerify)
		}
		want := []gate.Owner{{
			Manager:   "flux-operator",
			Operation: "Apply",
			Fields: []string{
				"spec.insecure", "spec.interval", "spec.ref.tag", "spec.timeout", "spec.url",
				"spec.verify.matchOIDCIdentity", "spec.verify.provider", "spec.verify.trustedRootSecretRef.name",
			},
			Time: time.Date(2026, 11, 30, 17, 22, 49, 0, time.UTC),
		}}
		if !reflect.DeepEqual(source.Owners, want) {
			t.Errorf("%s: got owners %+v, want %+v", version, source.Owners, want)
		}
	}
}

func TestDecodeKeepsUnknownVerifyFields(t *testing.T) {
	t.Parallel()
	entry := func(extra string, value any) []any {
		return []any{
			map[string]any{"issuer": "a", "subject": "b"},
			map[string]any{"issuer": "a", "subject": "b", extra: value},
		}
	}
	for name, test := range map[string]struct {
		path  string
		value any
		want  []string
	}{
		"nothing unknown":            {"spec.verify.provider", "notation", nil},
		"in verify":                  {"spec.verify.threshold", int64(2), []string{"threshold"}},
		"in verify, null":            {"spec.verify.threshold", "null", []string{"threshold"}},
		"in an identity":             {"spec.verify.matchOIDCIdentity", entry("not", true), []string{"matchOIDCIdentity[1].not"}},
		"in an identity, other case": {"spec.verify.matchOIDCIdentity", entry("Subject", "x"), []string{"matchOIDCIdentity[1].Subject"}},
		"in the root":                {"spec.verify.trustedRootSecretRef", map[string]any{"name": "r", "key": "k"}, []string{"trustedRootSecretRef.key"}},
		"in the secret":              {"spec.verify.secretRef", map[string]any{"name": "r", "namespace": "k"}, []string{"secretRef.namespace"}},
		"other case":                 {"spec.verify.SecretRef", map[string]any{"name": "r"}, []string{"SecretRef"}},
		"kelvin sign":                {"spec.verify.matchOIDCIdentitY", []any{}, []string{"matchOIDCIdentitY"}},
		"several, sorted": {"spec.verify", map[string]any{"provider": "cosign", "z": "", "a.b": "", "a": ""},
			[]string{`["a.b"]`, "a", "z"}},
		"beside verify": {"spec.proxy", "x", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, err := Decode(recorded(t, map[string]any{test.path: test.value}))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(source.UnknownVerify, test.want) {
				t.Errorf("got %q, want %q", source.UnknownVerify, test.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path  string
		value any
		want  []string
	}{
		"another kind":                 {"kind", "GitRepository", []string{"OCIRepository", "found kind GitRepository"}},
		"kind, other case":             {"kind", "ocirepository", []string{"found kind ocirepository"}},
		"no kind":                      {"kind", nil, []string{"found kind null"}},
		"kind, a number":               {"kind", int64(1), []string{"found kind the number 1"}},
		"another group":                {"apiVersion", "example.com/v1", []string{"found kind OCIRepository of apiVersion example.com/v1"}},
		"another version":              {"apiVersion", "source.toolkit.fluxcd.io/v2", []string{"v1beta2", "source.toolkit.fluxcd.io/v2"}},
		"spec, other case":             {"SPEC", map[string]any{}, []string{"SPEC", `"spec"`}},
		"verify, other case beside it": {"spec.Verify", map[string]any{}, []string{"spec.Verify", `"verify"`}},
		"suspend, other case":          {"spec.ſuspend", true, []string{"suspend"}},
		"spec, a string":               {"spec", "x", []string{`spec: expected an object, found the string "x"`}},
		"verify, a list":               {"spec.verify", []any{}, []string{"spec.verify: expected an object, found a list"}},
		"identities, a map": {"spec.verify.matchOIDCIdentity", map[string]any{},
			[]string{"spec.verify.matchOIDCIdentity: expected a list, found an object"}},
		"an identity, null": {"spec.verify.matchOIDCIdentity", []any{nil},
			[]string{"spec.verify.matchOIDCIdentity[0]: expected an entry, found null"}},
		"an issuer, a number": {"spec.verify.matchOIDCIdentity", []any{map[string]any{"issuer": int64(1)}},
			[]string{"spec.verify.matchOIDCIdentity[0].issuer: expected a string, found the number 1"}},
		"suspend, a string":   {"spec.suspend", "true", []string{`spec.suspend: expected true or false, found the string "true"`}},
		"interval, a number":  {"spec.interval", int64(10), []string{"spec.interval: expected a duration"}},
		"interval, no unit":   {"spec.interval", "10", []string{"spec.interval: expected a duration", `"10"`}},
		"generation, a float": {"metadata.generation", 1.5, []string{"metadata.generation: expected an integer, found the number 1.5"}},
		"generation, 1.0":     {"metadata.generation", 1.0, []string{"metadata.generation: expected an integer"}},
		"conditions, a map":   {"status.conditions", map[string]any{}, []string{"status.conditions: expected a list"}},
		"condition time":      {"status.conditions", []any{map[string]any{"lastTransitionTime": "yesterday"}}, []string{"status.conditions[0].lastTransitionTime"}},
		"fingerprint":         {"status.sourceVerificationFingerprint", true, []string{"status.sourceVerificationFingerprint: expected a string, found true"}},
		"label, a number":     {"metadata.labels", map[string]any{"a.b/c": int64(1)}, []string{`metadata.labels["a.b/c"]: expected a string`}},
		"a Go int":            {"metadata.generation", 1, []string{"Go type int"}},
		"managed fields": {"metadata.managedFields", []any{map[string]any{"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"x": map[string]any{}}}}},
			[]string{"metadata.managedFields[0].fieldsV1", "spec"}},
		"managed fields, a string": {"metadata.managedFields", []any{map[string]any{"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": "x"}}},
			[]string{"metadata.managedFields[0].fieldsV1", "expected an object"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode(recorded(t, map[string]any{test.path: test.value}))
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
	if _, err := Decode(nil); err == nil {
		t.Error("nil: got no error")
	}
	if _, err := Decode(&unstructured.Unstructured{}); err == nil {
		t.Error("empty: got no error")
	}
}

func TestDecodeNamesAtMostEightFields(t *testing.T) {
	t.Parallel()
	many := make([]any, 100)
	_, err := Decode(recorded(t, map[string]any{"status.conditions": many}))
	if err == nil || strings.Count(err.Error(), "expected an entry") != maxShapeErrors {
		t.Errorf("got %v", err)
	}
}

func TestOwnersOfSeveralManagers(t *testing.T) {
	t.Parallel()
	fields := func(text string) any {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	entry := func(manager, text string) any {
		return map[string]any{"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields(text)}
	}
	source, err := Decode(recorded(t, map[string]any{"metadata.managedFields": []any{
		entry("status only", `{"f:status":{"f:url":{}}}`),
		entry("whole", `{"f:spec":{}}`),
		entry("parent and child", `{"f:spec":{"f:verify":{".":{},"f:provider":{}}}}`),
		entry("items", `{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{"f:y":{}},"v:\"a\"":{},"i:0":{}},"f:a.b":{}}}`),
		map[string]any{"manager": "another format", "fieldsType": "FieldsV2"},
	}}))
	if err != nil {
		t.Fatal(err)
	}
	want := []gate.Owner{
		{Manager: "whole", Operation: "Update", Fields: []string{"spec"}},
		{Manager: "parent and child", Operation: "Update", Fields: []string{"spec.verify", "spec.verify.provider"}},
		{Manager: "items", Operation: "Update", Fields: []string{`spec.list[0]`, `spec.list[="a"]`, `spec.list[name="x"].y`, `spec["a.b"]`}},
	}
	if !reflect.DeepEqual(source.Owners, want) {
		t.Errorf("got %+v, want %+v", source.Owners, want)
	}
}

func TestOwnersBoundTheDepth(t *testing.T) {
	t.Parallel()
	var node any = map[string]any{}
	for range maxFieldDepth + 2 {
		node = map[string]any{"f:x": node}
	}
	_, err := Decode(recorded(t, map[string]any{"metadata.managedFields": []any{
		map[string]any{"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": node}},
	}}))
	if err == nil || !strings.Contains(err.Error(), "nested") {
		t.Errorf("got %v", err)
	}
}

package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/cluster"
	"flux-verify-gate/gate/signer"
)

// exampleObject reads a manifest of examples/canary in its untyped form.
func exampleObject(t *testing.T, name string) map[string]any {
	t.Helper()
	data, err := os.ReadFile("../examples/canary/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func exampleSource(t *testing.T, object map[string]any) *gate.Source {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	source, err := cluster.ReadRecording(bytes.NewReader(data), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return &source
}

// TestExampleCanaryIsOne gives the example manifests the status that a controller
// leaves: the shipped canary, refused, is a control of the shipped source.
func TestExampleCanaryIsOne(t *testing.T) {
	t.Parallel()
	status := func(object, recorded map[string]any) map[string]any {
		object["status"] = recorded["status"]
		for _, field := range []string{"generation", "resourceVersion", "uid"} {
			object["metadata"].(map[string]any)[field] = recorded["metadata"].(map[string]any)[field]
		}
		return object
	}
	source := exampleSource(t, status(exampleObject(t, "source.yaml"), readRecorded(t, "live/20-keyless-ok.json", "")))
	canary := exampleSource(t, status(exampleObject(t, "canary.yaml"), readRecorded(t, "live/24-keyless-unsigned.json", "")))
	p := mustPolicy(t, gate.Requirements{
		Required: []signer.Signer{{Issuer: githubActions, Subject: cdMain}}, Digest: gate.DigestAny, Signature: gate.SignatureSkip,
		Canary: gate.ObjectName{Namespace: canary.Object.Namespace, Name: canary.Object.Name},
	})
	e := gate.Evidence{Namespace: "flux-system", Name: "flux-system", Source: source, Canary: &gate.Canary{Source: canary}}
	if r := gate.Decide(context.Background(), p, e, judgedAt); r.Verdict != gate.Verified || r.Canary.State != gate.CanaryRefused {
		for _, f := range r.Findings {
			if f.Outcome != gate.Pass {
				t.Logf("%s %s: %s; found %s", f.Outcome, f.Code, f.Title, f.Found)
			}
		}
		t.Errorf("got %s (%s), and the canary %s", r.Verdict, r.Reason, r.Canary.State)
	}
	if source.Object.Name != "flux-system" || canary.Object.Name != "flux-system-canary" {
		t.Errorf("the names are not those of examples/rbac: %s, %s", source.Object.Name, canary.Object.Name)
	}
}

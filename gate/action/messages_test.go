package action

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"flux-verify-gate/gate"
)

// TestBadInputSaysWhatToDo holds that whoever writes an input wrong is told which
// one it is, and what to do next.
func TestBadInputSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for name, inputs := range map[string]map[string]string{
		"digest missing":              {inDigest: ""},
		"digest is a tag":             {inDigest: "latest"},
		"signers missing":             {inRequiredSigners: ""},
		"signers are a path":          {inRequiredSigners: "../../examples/recorded/signers.yaml"},
		"signers are misspelt":        {inRequiredSigners: "- isuer: x\n  subjekt: y"},
		"signers in no such file":     {inRequiredSigners: "@no-such.yaml"},
		"keys are no keys":            {inRequiredSigners: "", inRequiredKeys: "x"},
		"url is a web address":        {inURL: "https://ghcr.io/acme/platform"},
		"signature misspelt":          {inSignature: "verfy"},
		"mode misspelt":               {inMode: "wran"},
		"reconcile is no boolean":     {inReconcile: "yes"},
		"timeout without a unit":      {inTimeout: "5"},
		"canary is no name":           {inCanary: "unsigned"},
		"canary is a blank":           {inCanary: "  "},
		"canary of a recording":       {inCanary: "flux-system/canary"},
		"no such recording":           {inObject: "no-such.json"},
		"not a recording":             {inObject: "messages_test.go"},
		"no such layout":              {inLayout: "no-such", inSignature: "verify"},
		"no such trusted root":        {inTrustedRoot: "no-such.json"},
		"not a trusted root":          {inTrustedRoot: "messages_test.go"},
		"a user without a password":   {inRegistryUsername: "x"},
		"attestations not one a line": {inAttestations: "a b", inSignature: "verify"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := step{inputs: recorded(inputs)}.run(context.Background(), t)
			r.check(t, gate.Undecided, gate.BadInput, statusUndecided)
			var findings []gate.Finding
			if err := json.Unmarshal([]byte(r.outputs["findings"]), &findings); err != nil {
				t.Fatal(err)
			}
			for _, f := range findings {
				if f.Code != gate.BadInput {
					continue
				}
				if f.Remedy == "" {
					t.Errorf("nothing is said to do next: %+v", f)
				}
				if strings.HasPrefix(f.Found, "expected ") || strings.Contains(f.Title+f.Found, "␊") {
					t.Errorf("what was found is not one thing that was found: %+v", f)
				}
			}
		})
	}
}

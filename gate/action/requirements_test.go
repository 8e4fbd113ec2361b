package action

import (
	"maps"
	"strings"
	"testing"

	"flux-verify-gate/gate"
)

// sound are values that make a policy of a live cluster.
func soundValues(changes map[string]string) values {
	v := values{}
	for _, in := range Inputs() {
		v[in.Name] = in.Default
	}
	v[inRequiredSigners], v[inDigest] = signersYAML, gate.DigestAny
	maps.Copy(v, changes)
	return v
}

func TestPolicyOfCanary(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]gate.ObjectName{
		"":                   {},
		"flux-system/canary": {Namespace: "flux-system", Name: "canary"},
		// The name of the source in another namespace is another object.
		"other/flux-system": {Namespace: "other", Name: "flux-system"},
	} {
		p, err := policyOf(soundValues(map[string]string{inCanary: text}))
		if err != nil || p.Requirements().Canary != want {
			t.Errorf("%q: got %v, %v", text, p.Requirements().Canary, err)
		}
	}
}

// TestCanaryContradictions: one that cannot be looked at, or would be the source
// itself, is refused before anything is read.
func TestCanaryContradictions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values map[string]string
		says   []string
	}{
		"beside a recording":       {map[string]string{inCanary: "a/b", inObject: "x.json"}, []string{"input canary: expected a live cluster, found object beside it; remove one of them"}},
		"the source":               {map[string]string{inCanary: "flux-system/flux-system"}, []string{"input canary: expected another OCIRepository than the source, found flux-system/flux-system", "docs/canary.md"}},
		"the source, another name": {map[string]string{inCanary: "a/b", inNamespace: "a", inName: "b"}, []string{"input canary: expected another OCIRepository than the source"}},
		"no name":                  {map[string]string{inCanary: "a"}, []string{"input canary: expected namespace/name"}},
	} {
		p, err := policyOf(soundValues(test.values))
		if err == nil {
			t.Errorf("%s: got the policy %+v", name, p)
			continue
		}
		for _, text := range test.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q does not say %q", name, err, text)
			}
		}
	}
}

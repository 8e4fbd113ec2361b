package gate

import (
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEmulateBySeries(t *testing.T) {
	t.Parallel()
	verify, found := keylessPolicy("^main$"), []Signature{signatureBy(LayoutBundle, "main")}
	for name, want := range map[string]Opinion{
		"1.7": {Class: ClassNoSignature},
		"1.9": {Accepts: true, Layout: LayoutBundle},
	} {
		got, err := Emulate(name, verify, found)
		if err != nil || got.Why == "" {
			t.Errorf("source-controller %s: got %+v, %v", name, got, err)
		}
		got.Why = ""
		if got != want {
			t.Errorf("source-controller %s: got %+v, want %+v", name, got, want)
		}
	}
	for name, verify := range map[string]*sourcev1.OCIRepositoryVerification{"2.0": verify, "1.9": nil, "1.8": {Provider: "notation"}} {
		if got, err := Emulate(name, verify, found); err == nil {
			t.Errorf("source-controller %s with the policy %+v: got %+v, want an error", name, verify, got)
		}
	}
}

func TestWord(t *testing.T) {
	t.Parallel()
	const refusal = "failed to verify the signature using provider 'cosign keyless': no signatures found"
	accepted := serving(keylessPolicy("^main$"), metav1.ConditionTrue, "")
	if w := accepted.Word(); w == nil || !w.Accepts || w.Class != "" || w.Digest != digestA {
		t.Errorf("accepted: got %+v", w)
	}
	refused := serving(keylessPolicy("^main$"), metav1.ConditionFalse, refusal)
	if w := refused.Word(); w == nil || w.Accepts || w.Class != ClassNoSignature || w.Digest != digestA || w.Message != refusal {
		t.Errorf("refused: got %+v", w)
	}
	refused.Object.Generation++
	if w := refused.Word(); w != nil {
		t.Errorf("of an older generation: got %+v", w)
	}
	unknown := serving(keylessPolicy("^main$"), metav1.ConditionUnknown, "")
	if w := unknown.Word(); w != nil {
		t.Errorf("neither True nor False: got %+v", w)
	}
}

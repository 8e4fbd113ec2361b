package gate_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"flux-verify-gate/gate"
)

// canaryMayGo are the places of the canary without which its refusal counts all
// the same, and which may have any value.
var canaryMayGo = []struct{ place, why string }{
	{"metadata.managedFields", "who wrote what decides nothing"},
	{"metadata.creationTimestamp", "no rule has a time"},
	{"metadata.finalizers", "only a deletion timestamp deletes"},
	{"metadata.name", "only that it is not the source's"},
	{"metadata.resourceVersion", "it names the read"},
	{"metadata.uid", "only that it is not the source's"},
	{"spec.insecure", "how the controller fetches"},
	{"spec.interval", "how often the controller looks"},
	{"spec.provider", "how the controller logs in"},
	{"spec.ref", "only that it is not the source's"},
	{"spec.timeout", "how long the controller tries"},
	{"spec.url", "only that it is not the source's"},
	{"status.observedGeneration", "it lags while a verification fails; the condition's own counts"},
	{"status.conditions[Ready]", "it flaps while the controller tries again, and proves nothing about a signature"},
	{"status.conditions[Reconciling]", "it stands there for as long as the controller tries again"},
	{"status.conditions[SourceVerified].lastTransitionTime", "it does not date the verification"},
}

// TestNothingOfTheCanaryMayBeLost removes and changes every place of a refused
// canary: nothing is verified then, but for what canaryMayGo lists.
func TestNothingOfTheCanaryMayBeLost(t *testing.T) {
	t.Parallel()
	wholeOnly(t)
	used := map[string]bool{}
	for _, s := range canaryStarts(t) {
		source, err := readObject(s.object)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(s.name, ",")
		canary := readRecorded(t, variantCanaries[kind], "")
		judged := 0
		for _, place := range places("", canary) {
			if kind != "keyed" && !strings.HasPrefix(place, "spec.verify") && !strings.HasPrefix(place, "metadata.n") {
				continue // the proof takes its time, and the keyed object shows these
			}
			for _, other := range append([]any{nil}, changed(get(canary, splitPath(place)))...) {
				object := clone(t, canary)
				if err := set(object, splitPath(place), other); err != nil {
					t.Fatalf("%s: %v", place, err)
				}
				if reflect.DeepEqual(object, clone(t, canary)) {
					continue
				}
				read, err := readObject(object)
				if err != nil {
					continue // never evidence
				}
				e := s.evidence(source)
				e.Canary = &gate.Canary{Source: read}
				judged++
				r := gate.Decide(t.Context(), s.policy, e, judgedAt)
				free := slices.IndexFunc(canaryMayGo, func(m struct{ place, why string }) bool {
					return place == m.place || strings.HasPrefix(place, m.place+".") || strings.HasPrefix(place, m.place+"[")
				})
				switch {
				case r.Verdict != gate.Verified:
				case free >= 0:
					used[canaryMayGo[free].place] = true
				case harmlessInCanary(place, other):
				default:
					t.Errorf("%s: verified with a canary whose %s is %#v", s.name, place, other)
				}
			}
		}
		if judged < 30 {
			t.Errorf("%s: only %d changes", s.name, judged)
		}
	}
	for _, m := range canaryMayGo {
		if !used[m.place] {
			t.Errorf("%s is on the list and changes nothing: %s", m.place, m.why)
		}
	}
}

// harmlessInCanary: what follows the known part of the text is the registry's or
// the certificate's.
func harmlessInCanary(place string, value any) bool {
	text, ok := value.(string)
	return place == "status.conditions[SourceVerified].message" && ok &&
		strings.HasPrefix(text, "failed to verify the signature using provider 'cosign")
}

// TestOnlyOneOfTwoCanaries holds that evidence which contradicts itself is no
// refusal: a failure or a missing object beside an old read.
func TestOnlyOneOfTwoCanaries(t *testing.T) {
	t.Parallel()
	for _, s := range canaryStarts(t) {
		source, err := readObject(s.object)
		if err != nil {
			t.Fatal(err)
		}
		for name, spoil := range map[string]func(*gate.Canary){
			"a failure": func(c *gate.Canary) { c.Failure = &gate.Failure{Code: gate.NoAnswer} },
			"missing":   func(c *gate.Canary) { c.Missing = true },
			"nothing":   func(c *gate.Canary) { c.Source = nil },
		} {
			e := s.evidence(source)
			c := *e.Canary
			spoil(&c)
			e.Canary = &c
			if r := gate.Decide(t.Context(), s.policy, e, judgedAt); r.Verdict != gate.Undecided || r.Canary.State != gate.CanaryUnknown {
				t.Errorf("%s, %s: got %s and the canary %s", s.name, name, r.Verdict, r.Canary.State)
			}
		}
	}
}

// TestCanaryInTheReport holds what the report says of the canary.
func TestCanaryInTheReport(t *testing.T) {
	t.Parallel()
	const unsigned = "sha256:f665b7218aabc98cb895ca6d85f3e81838f383638a8ba1b8eeba75519fb9324e"
	for _, v := range readVariants(t) {
		if v.file != "canary" {
			continue
		}
		asked := v.Policy.Canary || v.Evidence.Canary != nil
		c := v.judge(t).Canary
		if (c != nil) != asked {
			t.Errorf("%s: asked %v, and the report has %+v", v.Name, asked, c)
			continue
		}
		if c == nil {
			continue
		}
		want := map[gate.Outcome]gate.CanaryState{gate.Pass: gate.CanaryRefused, gate.Fail: gate.CanaryWasAccepted}[worst(v.judge(t), gate.CanaryAccepted)]
		if want == "" {
			want = gate.CanaryUnknown
		}
		if c.State != want || c.Namespace != canaryName.Namespace || c.Name != canaryName.Name {
			t.Errorf("%s: got %+v, want %s", v.Name, c, want)
		}
		if v.Name == "an unsigned canary is refused" {
			got := *c
			got.UID, got.ResourceVersion = "", ""
			want := gate.CanarySummary{
				Namespace: "flux-system", Name: "canary", State: gate.CanaryRefused, Class: gate.ClassNoSignature,
				Message:    "failed to verify the signature using provider 'cosign keyless': no signatures found",
				APIVersion: "source.toolkit.fluxcd.io/v1", Generation: 1, URL: "oci://127.0.0.1:15000/acme/kl3", Digest: unsigned,
			}
			if got != want || c.UID == "" || c.ResourceVersion == "" {
				text, _ := json.Marshal(c)
				t.Errorf("got %s", text)
			}
		}
	}
}

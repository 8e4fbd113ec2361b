package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/cluster"
)

// start is an object and a policy that are verified, and what was seen beside
// the object.
type start struct {
	name     string
	object   map[string]any
	policy   gate.Policy
	evidence func(*gate.Source) gate.Evidence
}

// starts gives the verified bases: with a key and keyless, each with and without
// a signature in the registry. In all of them everything that may be asked for is
// asked for, but for a canary: it would notice much of what others must notice.
func starts(t *testing.T) []start {
	t.Helper()
	return makeStarts(t, []*variant{
		{Name: "keyed", Base: "keyed", Policy: variantPolicy{Digest: "${digest}", URL: "oci://127.0.0.1:15000/acme/signed"}},
		{Name: "keyless", Base: "keyless", Policy: variantPolicy{Digest: "${digest}", URL: "oci://127.0.0.1:15000/acme/kl", Loose: "fail"}},
		{
			Name: "keyed, with its signature", Base: "keyed",
			Policy:   variantPolicy{Digest: "${digest}", URL: "oci://127.0.0.1:15000/acme/signed", Signature: gate.SignatureVerify},
			Evidence: variantEvidence{Signatures: &variantSignatures{Found: []variantSignature{{Key: "0a1b"}}}},
		},
		{
			Name: "private, with its signature", Base: "private",
			Policy: variantPolicy{Digest: "${digest}", URL: "oci://127.0.0.1:15000/acme/kl", Signature: gate.SignatureVerify, CustomRoot: true},
			Evidence: variantEvidence{PrivateRoot: true, Signatures: &variantSignatures{
				Found: []variantSignature{{Issuer: githubActions, Subject: cdMain}},
			}},
		},
	})
}

// canaryStarts are bases with a canary.
func canaryStarts(t *testing.T) []start {
	t.Helper()
	return makeStarts(t, []*variant{
		{Name: "keyed, with a canary", Base: "keyed", Evidence: variantEvidence{Canary: &variantCanary{}}},
		{Name: "private, with a canary", Base: "private", Evidence: variantEvidence{Canary: &variantCanary{}}},
	})
}

func makeStarts(t *testing.T, of []*variant) []start {
	t.Helper()
	var all []start
	for _, v := range of {
		object, words := v.object(t)
		e := v.evidence(t, object, words)
		all = append(all, start{
			name: v.Name, object: object, policy: mustPolicy(t, v.requirements(t, words)),
			evidence: func(s *gate.Source) gate.Evidence {
				e := e
				e.Source = s
				return e
			},
		})
	}
	return all
}

// judge decides about an object in its untyped form; one that cannot be read is
// bad input.
func (s start) judge(t *testing.T, object map[string]any) gate.Report {
	t.Helper()
	source, err := readObject(object)
	if err != nil {
		return gate.CouldNotLook(gate.Evidence{Failures: []gate.Failure{{Code: gate.BadInput}}}, judgedAt)
	}
	return gate.Decide(context.Background(), s.policy, s.evidence(source), judgedAt)
}

func readObject(object map[string]any) (*gate.Source, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	source, err := cluster.ReadRecording(bytes.NewReader(data), "", "")
	return &source, err
}

func TestStartsAreVerified(t *testing.T) {
	t.Parallel()
	for _, s := range starts(t) {
		if r := s.judge(t, s.object); r.Verdict != gate.Verified {
			t.Errorf("%s: got %s (%s)", s.name, r.Verdict, r.Reason)
		}
	}
}

func TestDecideIsDeterministic(t *testing.T) {
	t.Parallel()
	for _, s := range starts(t) {
		first, second := s.judge(t, s.object), s.judge(t, s.object)
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s: two reports differ", s.name)
		}
	}
	for _, v := range readVariants(t) {
		if v.Base != "keyed" || v.Evidence.Cancelled {
			continue
		}
		ctx, policy, evidence := v.question(t)
		if again := gate.Decide(ctx, policy, evidence, judgedAt); !reflect.DeepEqual(again, v.judge(t)) {
			t.Errorf("%s: two reports differ", v.Name)
		}
	}
}

// TestDecideChangesNothing holds that the evidence is only read.
func TestDecideChangesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range starts(t) {
		source, err := readObject(s.object)
		if err != nil {
			t.Fatal(err)
		}
		untouched, err := readObject(s.object)
		if err != nil {
			t.Fatal(err)
		}
		gate.Decide(context.Background(), s.policy, s.evidence(source), judgedAt)
		if !reflect.DeepEqual(source, untouched) {
			t.Errorf("%s: the source was changed", s.name)
		}
	}
}

func TestNothingReadIsNeverVerified(t *testing.T) {
	t.Parallel()
	for _, s := range starts(t) {
		for _, missing := range []bool{false, true} {
			for _, failures := range [][]gate.Failure{nil, {{Code: gate.AccessDenied}}, {{}}} {
				e := s.evidence(nil)
				e.Missing, e.Failures = missing, failures
				r := gate.Decide(context.Background(), s.policy, e, judgedAt)
				want := gate.Undecided
				if missing {
					want = gate.Rejected
				}
				if r.Verdict != want {
					t.Errorf("%s, missing %v, failures %v: got %s, want %s", s.name, missing, failures, r.Verdict, want)
				}
				if r := gate.CouldNotLook(e, judgedAt); r.Verdict != gate.Undecided {
					t.Errorf("%s, missing %v, failures %v: could not look, and got %s", s.name, missing, failures, r.Verdict)
				}
			}
		}
	}
}

func TestCouldNotLookIsUndecidedWhateverWasSeen(t *testing.T) {
	t.Parallel()
	for _, s := range starts(t) {
		source, err := readObject(s.object)
		if err != nil {
			t.Fatal(err)
		}
		if r := gate.CouldNotLook(s.evidence(source), judgedAt); r.Verdict != gate.Undecided || r.Reason != gate.NoAnswer {
			t.Errorf("%s: got %s (%s)", s.name, r.Verdict, r.Reason)
		}
	}
}

func TestZeroPolicyIsNeverVerified(t *testing.T) {
	t.Parallel()
	for _, s := range starts(t) {
		s.policy = gate.Policy{}
		if r := s.judge(t, s.object); r.Verdict == gate.Verified || len(found(r, gate.Internal)) == 0 {
			t.Errorf("%s: got %s (%s)", s.name, r.Verdict, r.Reason)
		}
	}
}

func TestFailuresNeverHelp(t *testing.T) {
	t.Parallel()
	codes := append([]gate.Code{"", "made-up", gate.SourceMissing, gate.SignatureSkipped}, gate.LookCodes...)
	for _, s := range starts(t)[:1] {
		for _, code := range codes {
			source, err := readObject(s.object)
			if err != nil {
				t.Fatal(err)
			}
			e := s.evidence(source)
			e.Failures = []gate.Failure{{Code: code, Title: "x"}}
			if r := gate.Decide(context.Background(), s.policy, e, judgedAt); r.Verdict != gate.Undecided {
				t.Errorf("%s: a failure %q gives %s (%s)", s.name, code, r.Verdict, r.Reason)
			}
		}
	}
	for _, v := range readVariants(t) {
		if v.Base != "keyed" {
			continue
		}
		ctx, policy, evidence := v.question(t)
		evidence.Failures = append(evidence.Failures, gate.Failure{Code: gate.NoAnswer, Title: "x"})
		r, before := gate.Decide(ctx, policy, evidence, judgedAt), v.judge(t)
		if r.Verdict == gate.Verified || before.Verdict == gate.Rejected && r.Verdict != gate.Rejected {
			t.Errorf("%s: a failure turns %s into %s", v.Name, before.Verdict, r.Verdict)
		}
	}
}

// mayGo are the places of the object without which it is verified all the same,
// and which may have any value: nothing in the rules rests on them. A place
// covers what is below it.
var mayGo = []struct{ place, why string }{
	{"metadata.managedFields", "who wrote what explains a policy and decides nothing"},
	{"metadata.creationTimestamp", "no rule has a time"},
	{"metadata.finalizers", "only a deletion timestamp deletes"},
	{"metadata.name", "which object to read is the reader's business"},
	{"metadata.namespace", "which object to read is the reader's business"},
	{"metadata.resourceVersion", "it names the read"},
	{"metadata.uid", "the waiting compares it between two reads"},
	{"spec.insecure", "a note: the signature is bound to the digest"},
	{"spec.interval", "how often the controller looks"},
	{"spec.provider", "how the controller logs in"},
	{"spec.ref", "what is served is in the status, and is compared with the digest"},
	{"spec.timeout", "how long the controller tries"},
	{"status.artifact.digest", "it is the tarball's, and never compared"},
	{"status.artifact.lastUpdateTime", "no rule has a time"},
	{"status.artifact.metadata", "the publisher's words"},
	{"status.artifact.path", "where the tarball lies"},
	{"status.artifact.size", "how large the tarball is"},
	{"status.artifact.url", "where the tarball lies"},
	{"status.url", "where the tarball lies"},
	{"status.conditions[Ready].message", "Ready proves nothing about a signature"},
	{"status.conditions[Ready].reason", "Ready proves nothing about a signature"},
	{"status.conditions[Ready].lastTransitionTime", "no rule has a time"},
	{"status.conditions[ArtifactInStorage].reason", "True for this revision says it"},
	{"status.conditions[ArtifactInStorage].lastTransitionTime", "no rule has a time"},
	{"status.conditions[SourceVerified].lastTransitionTime", "it does not date the verification"},
}

func mayBeLost(place string) bool {
	for _, m := range mayGo {
		if place == m.place || strings.HasPrefix(place, m.place+".") || strings.HasPrefix(place, m.place+"[") {
			return true
		}
	}
	return false
}

// places lists every place in an object: each field and entry, leaves and what
// holds them.
func places(prefix string, value any) []string {
	var all []string
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			place := key
			if prefix != "" {
				place = prefix + "." + key
			}
			if strings.ContainsAny(key, ".[]") {
				continue // annotations of the artifact; their map is a place
			}
			all = append(append(all, place), places(place, child)...)
		}
	case []any:
		for i, child := range v {
			index := fmt.Sprint(i)
			if condition, ok := child.(map[string]any); ok && condition["type"] != nil {
				index = condition["type"].(string)
			}
			place := prefix + "[" + index + "]"
			all = append(append(all, place), places(place, child)...)
		}
	}
	slices.Sort(all)
	return all
}

// clone copies an object through JSON.
func clone(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var copied map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&copied); err != nil {
		t.Fatal(err)
	}
	return copied
}

// get gives the value at a place.
func get(object any, path []string) any {
	for _, part := range path {
		switch v := object.(type) {
		case map[string]any:
			object = v[part]
		case []any:
			index := strings.Trim(part, "[]")
			object = nil
			for i, entry := range v {
				condition, ok := entry.(map[string]any)
				if fmt.Sprint(i) == index || ok && condition["type"] == index {
					object = entry
				}
			}
		}
	}
	return object
}

// changed gives other values of the same type.
func changed(value any) []any {
	switch v := value.(type) {
	case string:
		return []any{v + "x", v + " ", "", "x" + v, strings.ToUpper(v) + "X"}
	case json.Number:
		n, _ := v.Int64()
		return []any{n + 1, n - 1, 0, -1}
	case bool:
		return []any{!v}
	case map[string]any:
		return []any{map[string]any{}}
	case []any:
		return []any{[]any{}}
	}
	return nil
}

// TestNothingMayBeLost removes every place of the verified objects, and changes
// every one of the keyed object and of every policy: nothing is verified then,
// but for what mayGo lists.
func TestNothingMayBeLost(t *testing.T) {
	t.Parallel()
	wholeOnly(t)
	used := map[string]bool{}
	for _, s := range starts(t) {
		all := places("", s.object)
		if len(all) < 60 {
			t.Fatalf("%s: only %d places", s.name, len(all))
		}
		for _, place := range all {
			others := []any{nil}
			if s.name == "keyed" || strings.HasPrefix(place, "spec.verify") {
				others = append(others, changed(get(s.object, splitPath(place)))...)
			}
			if s.name != "keyed" && mayBeLost(place) {
				continue // the proof takes its time, and the keyed object shows these
			}
			for _, other := range others {
				object := clone(t, s.object)
				if err := set(object, splitPath(place), other); err != nil {
					t.Fatalf("%s: %v", place, err)
				}
				if reflect.DeepEqual(object, clone(t, s.object)) {
					continue
				}
				r := s.judge(t, object)
				switch {
				case r.Verdict != gate.Verified:
				case mayBeLost(place):
					used[place] = true
				case harmless(s, place, other):
				default:
					t.Errorf("%s: verified with %s = %#v", s.name, place, other)
				}
			}
		}
	}
	for _, m := range mayGo {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(used)), func(place string) bool { return strings.HasPrefix(place, m.place) }) {
			t.Errorf("%s is on the list and changes nothing: %s", m.place, m.why)
		}
	}
}

// harmless says whether a change leaves the object as good as it was, although
// the place matters: the name of the policy's private root says nothing to the
// gate, which reads no Secrets.
func harmless(s start, place string, value any) bool {
	return s.name == "private, with its signature" && strings.HasPrefix(place, "spec.verify.trustedRootSecretRef") &&
		(value != nil || strings.HasSuffix(place, ".name"))
}

// TestReportsAreWhole holds what every report keeps, over all variants.
func TestReportsAreWhole(t *testing.T) {
	t.Parallel()
	for _, v := range readVariants(t) {
		checkReport(t, v.Name, v.judge(t))
	}
	failed := gate.Failure{Code: gate.BadInput, Title: "a", Expected: "b", Found: "c", Remedy: "d"}
	checkReport(t, "could not look", gate.CouldNotLook(gate.Evidence{Failures: []gate.Failure{failed}}, judgedAt))
	checkReport(t, "could not look, for no reason", gate.CouldNotLook(gate.Evidence{}, judgedAt))
	checkReport(t, "no policy", gate.Decide(context.Background(), gate.Policy{}, gate.Evidence{}, judgedAt))
}

func checkReport(t *testing.T, name string, r gate.Report) {
	t.Helper()
	worstOf := map[gate.Outcome]bool{}
	last := -1
	for _, f := range r.Findings {
		worstOf[f.Outcome] = true
		place := slices.Index(gate.AllCodes, f.Code)
		if place < 0 {
			t.Errorf("%s: a finding with the code %q", name, f.Code)
		}
		if place < last {
			t.Errorf("%s: %s stands before its place in the document", name, f.Code)
		}
		last = place
		if f.Title == "" {
			t.Errorf("%s: %s has no title", name, f.Code)
		}
		switch f.Outcome {
		case gate.Pass:
			// The class of a refused canary says what it was refused for.
			if f.Wait != gate.WaitNone || f.Class != "" && f.Code != gate.CanaryAccepted {
				t.Errorf("%s: %s passes and waits or has a class", name, f.Code)
			}
		case gate.Note:
			if f.Remedy == "" {
				t.Errorf("%s: the note %s has no remedy", name, f.Code)
			}
			if f.Wait != gate.WaitNone {
				t.Errorf("%s: the note %s waits", name, f.Code)
			}
		case gate.Fail, gate.Unknown:
			if f.Expected == "" || f.Found == "" || f.Remedy == "" {
				t.Errorf("%s: %s lacks expected, found or remedy: %+v", name, f.Code, f)
			}
			if f.Outcome == gate.Fail && slices.Contains(gate.LookCodes, f.Code) {
				t.Errorf("%s: %s is never a fail", name, f.Code)
			}
		default:
			t.Errorf("%s: %s has the outcome %q", name, f.Code, f.Outcome)
		}
		if f.Class != "" && f.Code != gate.VerificationFailed && f.Code != gate.CanaryAccepted {
			t.Errorf("%s: %s has a class", name, f.Code)
		}
	}
	want := gate.Verified
	switch {
	case worstOf[gate.Fail]:
		want = gate.Rejected
	case worstOf[gate.Unknown]:
		want = gate.Undecided
	}
	if r.Verdict != want {
		t.Errorf("%s: the findings make it %s, and it is %s", name, want, r.Verdict)
	}
	outcome := map[gate.Verdict]gate.Outcome{gate.Rejected: gate.Fail, gate.Undecided: gate.Unknown}[r.Verdict]
	switch {
	case r.Verdict == gate.Verified && r.Reason != gate.ReasonVerified:
		t.Errorf("%s: verified for the reason %s", name, r.Reason)
	case r.Verdict != gate.Verified && worst(r, r.Reason) != outcome:
		t.Errorf("%s: %s for the reason %s, which is no %s", name, r.Verdict, r.Reason, outcome)
	case r.Verdict != gate.Verified:
		for _, code := range gate.ReasonOrder {
			if code == r.Reason {
				break
			}
			for _, f := range found(r, code) {
				if f.Outcome == outcome {
					t.Errorf("%s: the reason is %s, and %s comes before it", name, r.Reason, code)
				}
			}
		}
	}
	if r.Source.Digest == "" && r.Source.Reference != "" {
		t.Errorf("%s: a reference without a digest: %s", name, r.Source.Reference)
	}
	noNulls(t, name, r)
}

// noNulls holds that a report in JSON has a list where there is one, and never
// null.
func noNulls(t *testing.T, name string, r gate.Report) {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var report map[string]any
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"findings", "signers", "owners", "policy.required", "policy.allowed", "policy.witnesses"} {
		if _, ok := get(report, strings.Split(list, ".")).([]any); !ok {
			t.Errorf("%s: %s is no list", name, list)
		}
	}
	var walk func(place string, value any)
	walk = func(place string, value any) {
		switch v := value.(type) {
		case nil:
			t.Errorf("%s: %s is null", name, place)
		case map[string]any:
			for key, child := range v {
				walk(place+"."+key, child)
			}
		case []any:
			for _, child := range v {
				walk(place+"[]", child)
			}
		}
	}
	walk("", report)
}

// TestDecideAgreesWithThePredicate compares Decide with the predicate of the
// facts about Flux, written out here over the untyped object, on objects of
// which several places were changed at once.
func TestDecideAgreesWithThePredicate(t *testing.T) {
	t.Parallel()
	s := starts(t)[0]
	revision := get(s.object, []string{"status", "artifact", "revision"}).(string)
	digest := revision[strings.LastIndex(revision, "@")+1:]
	other := "sha256:" + hexA
	revisions := []any{revision, revision, "v1@" + other, "v2@" + digest, digest, "v1", ""}
	named := func(before, after string) []any {
		var messages []any
		for _, r := range revisions {
			messages = append(messages, before+r.(string)+after)
		}
		return append(messages, "something else")
	}
	generations := []any{1, 1, 1, 2, 2, 0}
	statuses := []any{"True", "True", "True", "False", "Unknown", ""}
	domain := []struct {
		place  string
		values []any
	}{
		{"metadata.generation", generations},
		{"status.observedGeneration", generations},
		{"status.artifact.revision", revisions},
		{"status.conditions[Ready].status", statuses},
		{"status.conditions[Ready].observedGeneration", generations},
		{"status.conditions[ArtifactInStorage].status", statuses},
		{"status.conditions[ArtifactInStorage].observedGeneration", generations},
		{"status.conditions[ArtifactInStorage].message", named("stored artifact for digest '", "'")},
		{"status.conditions[SourceVerified].status", statuses},
		{"status.conditions[SourceVerified].observedGeneration", generations},
		{"status.conditions[SourceVerified].reason", []any{"Succeeded", "Succeeded", "VerificationError", ""}},
		{"status.conditions[SourceVerified].message", named("verified signature of revision ", "")},
		{"spec.suspend", []any{false, false, true}},
		{"spec.url", []any{"oci://127.0.0.1:15000/acme/signed", "oci://127.0.0.1:15000/acme/other"}},
		{"spec.verify.provider", []any{"cosign", "cosign", "notation", ""}},
		{"spec.verify.secretRef.name", []any{"cosign-a", "cosign-a", "cosign-b"}},
		{"spec.ignore", []any{"/a", "/a", "/b"}},
		{"status.observedIgnore", []any{"/a", "/a", "/b"}},
	}
	badNews := []string{"Reconciling", "Stalled", "FetchFailed", "ArtifactOutdated", "StorageOperationFailed"}

	random := rand.New(rand.NewPCG(2, 2026))
	verified := 0
	for range 4000 / slower {
		object := clone(t, s.object)
		// Everything moves to one state first, so that good objects are met too.
		bare := random.IntN(2) == 0
		if bare {
			must(t, set(object, splitPath("status.artifact.revision"), digest))
			must(t, set(object, splitPath("status.conditions[ArtifactInStorage].message"), "stored artifact for digest '"+digest+"'"))
			must(t, set(object, splitPath("status.conditions[SourceVerified].message"), "verified signature of revision "+digest))
		}
		if random.IntN(2) == 0 {
			for _, place := range []string{"metadata.generation", "status.observedGeneration", "status.conditions[Ready].observedGeneration",
				"status.conditions[ArtifactInStorage].observedGeneration", "status.conditions[SourceVerified].observedGeneration"} {
				must(t, set(object, splitPath(place), 2))
			}
		}
		if random.IntN(3) == 0 {
			must(t, set(object, splitPath("spec.ignore"), "/a"))
			must(t, set(object, splitPath("status.observedIgnore"), "/a"))
		}
		var done []string
		for range random.IntN(4) {
			d := domain[random.IntN(len(domain))]
			value := d.values[random.IntN(len(d.values))]
			must(t, set(object, splitPath(d.place), value))
			done = append(done, fmt.Sprintf("%s = %v", d.place, value))
		}
		if random.IntN(6) == 0 {
			condition := map[string]any{
				"type": badNews[random.IntN(len(badNews))], "status": statuses[random.IntN(len(statuses))], "message": "x",
			}
			must(t, set(object, splitPath("status.conditions[+]"), condition))
			done = append(done, fmt.Sprint(condition))
		}
		r := s.judge(t, object)
		want := predicate(clone(t, object), digest)
		if want {
			verified++
		}
		if (r.Verdict == gate.Verified) != want {
			t.Errorf("the predicate says %v, Decide %s (%s): %s", want, r.Verdict, r.Reason, strings.Join(done, "; "))
		}
	}
	if verified < 400/slower {
		t.Errorf("only %d objects were good", verified)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// predicate is the proof predicate for the keyed object: it reads the untyped
// JSON and shares nothing with package gate.
func predicate(object map[string]any, digest string) bool {
	at := func(path ...string) any { return get(object, path) }
	number := func(path ...string) string { return fmt.Sprint(at(path...)) }
	text := func(path ...string) string {
		s, _ := at(path...).(string)
		return s
	}
	generation, revision := number("metadata", "generation"), text("status", "artifact", "revision")
	condition := func(kind, field string) string { return fmt.Sprint(at("status", "conditions", "["+kind+"]", field)) }
	for _, kind := range []string{"Reconciling", "Stalled", "FetchFailed", "ArtifactOutdated", "StorageOperationFailed"} {
		if status := at("status", "conditions", "["+kind+"]", "status"); status != nil && status != "False" {
			return false
		}
	}
	for _, kind := range []string{"Ready", "ArtifactInStorage", "SourceVerified"} {
		if condition(kind, "status") != "True" || condition(kind, "observedGeneration") != generation {
			return false
		}
	}
	return generation != "0" &&
		at("spec", "suspend") != true &&
		text("spec", "url") == "oci://127.0.0.1:15000/acme/signed" &&
		text("spec", "verify", "provider") == "cosign" &&
		text("spec", "verify", "secretRef", "name") == "cosign-a" &&
		condition("SourceVerified", "reason") == "Succeeded" &&
		condition("SourceVerified", "message") == "verified signature of revision "+revision &&
		condition("ArtifactInStorage", "message") == "stored artifact for digest '"+revision+"'" &&
		number("status", "observedGeneration") == generation &&
		(revision == digest || strings.HasSuffix(revision, "@"+digest)) &&
		fmt.Sprint(at("spec", "ignore")) == fmt.Sprint(at("status", "observedIgnore"))
}

// wholeOnly leaves a test out that cannot be made smaller under the race
// detector.
func wholeOnly(t *testing.T) {
	t.Helper()
	if slower > 1 {
		t.Skip("run without the race detector")
	}
}

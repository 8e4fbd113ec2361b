package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/cluster"
	"flux-verify-gate/gate/signer"
)

// variant is one entry of testdata/variants/*.yaml: a recorded object, what is
// changed in it, what is asked for, and what must come of it. testdata/variants
// has a README that describes the form.
type variant struct {
	Name string `yaml:"name"`
	Base string `yaml:"base"`
	// Fails and Nearly say what the variant is about: this code is found (as
	// Outcome says), or this code stays fine although it nearly is not.
	Fails   gate.Code    `yaml:"fails"`
	Nearly  gate.Code    `yaml:"nearly"`
	Outcome gate.Outcome `yaml:"outcome"`

	Edits    yaml.Node       `yaml:"edits"`
	Policy   variantPolicy   `yaml:"policy"`
	Evidence variantEvidence `yaml:"evidence"`

	Verdict gate.Verdict               `yaml:"verdict"`
	Reason  gate.Code                  `yaml:"reason"`
	Also    map[gate.Code]gate.Outcome `yaml:"also"`
	Without []gate.Code                `yaml:"without"`
	Class   gate.Class                 `yaml:"class"`
	Wait    *gate.Wait                 `yaml:"wait"`
	Found   string                     `yaml:"found"`

	file   string
	once   sync.Once
	report gate.Report
}

type variantPolicy struct {
	Keys struct {
		Secret string `yaml:"secret"`
		PEM    bool   `yaml:"pem"`
	} `yaml:"keys"`
	Signers      yaml.Node          `yaml:"signers"`
	Allowed      yaml.Node          `yaml:"allowed"`
	RequireAll   bool               `yaml:"require-all"`
	Attestations []string           `yaml:"attestations"`
	Digest       string             `yaml:"digest"`
	URL          string             `yaml:"url"`
	Signature    gate.SignatureMode `yaml:"signature"`
	Loose        string             `yaml:"policy-loose"`
	CustomRoot   bool               `yaml:"custom-root"`
	Canary       bool               `yaml:"canary"`
}

type variantEvidence struct {
	Live           bool               `yaml:"live"`
	Timeout        time.Duration      `yaml:"timeout"`
	ReconcileToken string             `yaml:"reconcile-token"`
	Missing        bool               `yaml:"missing"`
	Nothing        bool               `yaml:"nothing"`
	PrivateRoot    bool               `yaml:"private-root"`
	EarlierFailure string             `yaml:"earlier-failure"`
	Failures       []variantFailure   `yaml:"failures"`
	Signatures     *variantSignatures `yaml:"signatures"`
	Canary         *variantCanary     `yaml:"canary"`
	Cancelled      bool               `yaml:"cancelled"`
	Expired        bool               `yaml:"expired"`
}

type variantFailure struct {
	Code      gate.Code `yaml:"code"`
	Transient bool      `yaml:"transient"`
}

// variantCanary is what was read of the canary: a refused one that carries the
// policy of the base, with edits.
type variantCanary struct {
	Base    string          `yaml:"base"`
	Edits   yaml.Node       `yaml:"edits"`
	Missing bool            `yaml:"missing"`
	Nothing bool            `yaml:"nothing"`
	Failure *variantFailure `yaml:"failure"`
}

type variantSignatures struct {
	Digest     string             `yaml:"digest"`
	Incomplete bool               `yaml:"incomplete"`
	Found      []variantSignature `yaml:"found"`
	SelfTest   string             `yaml:"self-test"` // digest accepted, identity accepted, none; empty is good
	Failures   []variantFailure   `yaml:"failures"`
}

type variantSignature struct {
	Issuer       string      `yaml:"issuer"`
	Subject      string      `yaml:"subject"`
	Key          string      `yaml:"key"`
	Refused      gate.Step   `yaml:"refused"`
	Attestation  string      `yaml:"attestation"`
	Layout       gate.Layout `yaml:"layout"`
	Repository   string      `yaml:"repository"`
	RepositoryID string      `yaml:"repository-id"`
	RunnerEnv    string      `yaml:"runner-environment"`
	MediaType    string      `yaml:"media-type"`
	Entries      []string    `yaml:"entries"`
}

// The bases that most variants start from.
var variantBases = map[string]struct {
	path  string
	edits string
}{
	// keyed: verified with a key of the Secret cosign-a.
	"keyed": {path: "live/01-signed-bundle.json"},
	// keyless: verified with the identity below, under the public-good root.
	"keyless": {path: "live/20-keyless-ok.json", edits: "spec.verify.trustedRootSecretRef: null"},
	// private: the same as it was recorded, under a private root.
	"private": {path: "live/20-keyless-ok.json"},
}

// The canaries that are refused under the policy of a base.
var variantCanaries = map[string]string{
	"keyed":   "live/04-otherkey-bundle.json",
	"keyless": "live/24-keyless-unsigned.json",
	"private": "live/24-keyless-unsigned.json",
}

// canaryName is the canary that variants ask for.
var canaryName = gate.ObjectName{Namespace: "flux-system", Name: "canary"}

const (
	githubActions = "https://token.actions.githubusercontent.com"
	cdMain        = "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main"
)

// publicKeyPEM is a P-256 public key that signed nothing.
const publicKeyPEM = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEswsuUCZhrJ/gvXWsmKUh0+/zS8Jc
FDSz/o/o5s6Khp3WeTEOxC9gXZPouS7YvdD6hnN1vqnSjhmK1xsAFyNUDQ==
-----END PUBLIC KEY-----
`

// wordsOf is what a variant may write as ${word}; revision, digest and hex are
// those that the base serves.
func wordsOf(object map[string]any) map[string]string {
	words := map[string]string{
		"issuer": githubActions, "subject": cdMain,
		"issuer-pattern":  `^https://token\.actions\.githubusercontent\.com$`,
		"subject-pattern": `^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$`,
		"other":           "sha256:" + strings.Repeat("0123456789abcdef", 4),
		"failed":          "failed to verify the signature using provider 'cosign keyless'",
		"failed-keyed":    "failed to verify the signature using provider 'cosign'",
	}
	status, _ := object["status"].(map[string]any)
	if artifact, ok := status["artifact"].(map[string]any); ok {
		revision, _ := artifact["revision"].(string)
		words["revision"] = revision
		words["digest"] = revision[strings.LastIndex(revision, "@")+1:]
		words["hex"] = strings.TrimPrefix(words["digest"], "sha256:")
		words["HEX"] = strings.ToUpper(words["hex"])
		words["tarball"], _ = artifact["digest"].(string)
	}
	return words
}

var variantWord = regexp.MustCompile(`\$\{[A-Za-z-]+\}`)

func expand(t *testing.T, words map[string]string, text string) string {
	t.Helper()
	return variantWord.ReplaceAllStringFunc(text, func(word string) string {
		value, ok := words[word[2:len(word)-1]]
		if !ok {
			t.Fatalf("no such word: %s", word)
		}
		return value
	})
}

// expandNode gives a copy of a node with the words in every scalar expanded.
func expandNode(t *testing.T, words map[string]string, node *yaml.Node) *yaml.Node {
	t.Helper()
	expanded := *node
	if node.Kind == yaml.ScalarNode {
		expanded.Value = expand(t, words, node.Value)
	}
	expanded.Content = nil
	for _, child := range node.Content {
		expanded.Content = append(expanded.Content, expandNode(t, words, child))
	}
	return &expanded
}

// loadVariants reads every variant once; they are judged by several tests.
var loadVariants = sync.OnceValues(func() ([]*variant, error) {
	files, err := filepath.Glob(filepath.Join("testdata", "variants", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no variants: %w", err)
	}
	var all []*variant
	names := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		decoder := yaml.NewDecoder(bytes.NewReader(data))
		decoder.KnownFields(true)
		var variants []*variant
		if err := decoder.Decode(&variants); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, v := range variants {
			v.file = strings.TrimSuffix(filepath.Base(file), ".yaml")
			if where, twice := names[v.Name]; twice {
				return nil, fmt.Errorf("%s: the name %q is taken in %s", v.file, v.Name, where)
			}
			names[v.Name] = v.file
		}
		all = append(all, variants...)
	}
	return all, nil
})

func readVariants(t *testing.T) []*variant {
	t.Helper()
	all, err := loadVariants()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// object is the base with the edits of the variant, and the words that stand for
// what the base serves.
func (v *variant) object(t *testing.T) (map[string]any, map[string]string) {
	t.Helper()
	path, first := v.Base, ""
	if base, ok := variantBases[v.Base]; ok {
		path, first = base.path, base.edits
	}
	object := readRecorded(t, path, first)
	words := wordsOf(object)
	if v.Edits.Kind != 0 {
		edit(t, object, &v.Edits, words)
	}
	return object, words
}

// readRecorded reads a recorded object in its untyped form and edits it.
func readRecorded(t *testing.T, path, first string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "cases", path))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	if first != "" {
		var node yaml.Node
		if err := yaml.Unmarshal([]byte(first), &node); err != nil {
			t.Fatal(err)
		}
		edit(t, object, node.Content[0], nil)
	}
	return object
}

// edit applies a mapping from dotted paths to values, in its order. A null
// deletes; [Type] picks the condition of that type, [0] an entry by place; [+],
// [+2], … append one entry each.
func edit(t *testing.T, object map[string]any, edits *yaml.Node, words map[string]string) {
	t.Helper()
	for i := 0; i+1 < len(edits.Content); i += 2 {
		path := edits.Content[i].Value
		var value any
		node := expandNode(t, words, edits.Content[i+1])
		if err := node.Decode(&value); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := set(object, splitPath(path), value); err != nil {
			t.Fatalf("edit %s: %v", path, err)
		}
	}
}

// splitPath cuts a.b[c].d into a, b, [c], d.
func splitPath(path string) []string {
	var parts []string
	for _, part := range strings.Split(path, ".") {
		name, rest, found := strings.Cut(part, "[")
		if name != "" {
			parts = append(parts, name)
		}
		for found {
			var index string
			index, rest, _ = strings.Cut(rest, "]")
			parts = append(parts, "["+index+"]")
			_, rest, found = strings.Cut(rest, "[")
		}
	}
	return parts
}

// set changes one place below a map.
func set(object map[string]any, path []string, value any) error {
	name := path[0]
	if len(path) == 1 {
		if value == nil {
			if _, there := object[name]; !there {
				return fmt.Errorf("nothing to delete at %s", name)
			}
			delete(object, name)
		} else {
			object[name] = value
		}
		return nil
	}
	if !strings.HasPrefix(path[1], "[") {
		child, ok := object[name].(map[string]any)
		if !ok {
			child = map[string]any{}
			object[name] = child
		}
		return set(child, path[1:], value)
	}
	list, ok := object[name].([]any)
	if !ok && !strings.HasPrefix(path[1], "[+") {
		return fmt.Errorf("%s is no list", name)
	}
	list = slices.Clone(list)
	object[name] = list
	index := strings.Trim(path[1], "[]")
	if strings.HasPrefix(index, "+") {
		if len(path) != 2 || value == nil {
			return fmt.Errorf("[+] is the end of a path, and has a value")
		}
		object[name] = append(list, value)
		return nil
	}
	at, err := strconv.Atoi(index)
	if err != nil {
		at = slices.IndexFunc(list, func(entry any) bool {
			condition, ok := entry.(map[string]any)
			return ok && condition["type"] == index
		})
	}
	if at < 0 || at >= len(list) {
		return fmt.Errorf("%s has no entry %s", name, index)
	}
	if len(path) == 2 {
		if value == nil {
			object[name] = slices.Delete(list, at, at+1)
		} else {
			list[at] = value
		}
		return nil
	}
	child, ok := list[at].(map[string]any)
	if !ok {
		return fmt.Errorf("%s[%s] is no object", name, index)
	}
	child = maps.Clone(child)
	list[at] = child
	return set(child, path[2:], value)
}

func (v *variant) requirements(t *testing.T, words map[string]string) gate.Requirements {
	t.Helper()
	p := v.Policy
	want := gate.Requirements{
		Digest: expand(t, words, p.Digest), URL: p.URL, Signature: p.Signature, RequireAll: p.RequireAll,
		Attestations: p.Attestations, LooseFails: p.Loose == "fail", CustomRoot: p.CustomRoot,
	}
	if want.Digest == "" {
		want.Digest = gate.DigestAny
	}
	if want.Signature == "" {
		want.Signature = gate.SignatureSkip
	}
	if p.Canary || v.Evidence.Canary != nil {
		want.Canary = canaryName
	}
	want.Required = parseSigners(t, words, p.Signers)
	want.Allowed = parseSigners(t, words, p.Allowed)
	switch {
	case p.Keys.Secret != "":
		want.Keys = &gate.Keys{Secret: p.Keys.Secret}
		if p.Keys.PEM {
			want.Keys.PEM = []string{publicKeyPEM}
		}
	case len(want.Required) > 0:
	case v.Base == "keyless" || v.Base == "private":
		want.Required = []signer.Signer{{Issuer: githubActions, Subject: cdMain}}
	case v.Base == "keyed":
		want.Keys = &gate.Keys{Secret: "cosign-a"}
		if want.Signature == gate.SignatureVerify {
			want.Keys.PEM = []string{publicKeyPEM}
		}
	default:
		t.Fatal("the variant says nothing about who is required")
	}
	return want
}

func parseSigners(t *testing.T, words map[string]string, node yaml.Node) []signer.Signer {
	t.Helper()
	if node.Kind == 0 {
		return nil
	}
	data, err := yaml.Marshal(expandNode(t, words, &node))
	if err != nil {
		t.Fatal(err)
	}
	signers, err := signer.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return signers
}

func (v *variant) evidence(t *testing.T, object map[string]any, words map[string]string) gate.Evidence {
	t.Helper()
	e := gate.Evidence{
		Namespace: "flux-system", Name: "flux-system",
		Live: v.Evidence.Live, Timeout: v.Evidence.Timeout, ReconcileToken: v.Evidence.ReconcileToken,
		Missing: v.Evidence.Missing, PrivateRoot: v.Evidence.PrivateRoot, EarlierFailure: v.Evidence.EarlierFailure,
		Failures: makeFailures(v.Evidence.Failures),
	}
	if !v.Evidence.Missing && !v.Evidence.Nothing {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		source, err := cluster.ReadRecording(bytes.NewReader(data), "", "")
		if err != nil {
			t.Fatal(err)
		}
		e.Source = &source
	}
	if c := v.Evidence.Canary; c != nil {
		e.Canary = c.make(t, v.Base, words)
	}
	if s := v.Evidence.Signatures; s != nil {
		e.Signatures = s.make(t, words, v.Base == "keyed")
	}
	return e
}

func (c *variantCanary) make(t *testing.T, base string, words map[string]string) *gate.Canary {
	t.Helper()
	switch {
	case c.Failure != nil:
		return &gate.Canary{Failure: &makeFailures([]variantFailure{*c.Failure})[0]}
	case c.Missing, c.Nothing:
		return &gate.Canary{Missing: c.Missing}
	}
	path, first := c.Base, ""
	if path == "" {
		path, first = variantCanaries[base], variantBases[base].edits
	}
	object := readRecorded(t, path, first)
	if c.Edits.Kind != 0 {
		edit(t, object, &c.Edits, words)
	}
	source, err := readObject(object)
	if err != nil {
		t.Fatal(err)
	}
	return &gate.Canary{Source: source}
}

func makeFailures(of []variantFailure) []gate.Failure {
	var failures []gate.Failure
	for _, f := range of {
		failures = append(failures, gate.Failure{Code: f.Code, Transient: f.Transient,
			Title: "could not look", Expected: "a look", Found: "none", Remedy: "look again"})
	}
	return failures
}

func (s *variantSignatures) make(t *testing.T, words map[string]string, keyed bool) *gate.Signatures {
	t.Helper()
	digest := s.Digest
	if digest == "" {
		digest = "${digest}"
	}
	made := &gate.Signatures{
		Digest: expand(t, words, digest), ManifestRead: true, Complete: !s.Incomplete && len(s.Failures) == 0,
		PublicGood: true, RootSource: "tuf", Failures: makeFailures(s.Failures),
	}
	made.Reference = "127.0.0.1:15000/acme/kl@" + made.Digest
	verified := false
	for _, f := range s.Found {
		one := gate.Signature{Layout: gate.LayoutBundle, Kind: gate.KindSignature, Verified: f.Refused == "", Step: f.Refused,
			Identity: signer.Identity{Issuer: expand(t, words, f.Issuer), Subject: expand(t, words, f.Subject)}, Key: f.Key}
		if f.Layout != "" {
			one.Layout = f.Layout
		}
		if f.Attestation != "" {
			one.Kind, one.PredicateType = gate.KindAttestation, f.Attestation
		}
		one.Claims.SourceRepository, one.Claims.SourceRepositoryID = f.Repository, f.RepositoryID
		one.Claims.RunnerEnvironment = f.RunnerEnv
		one.MediaType, one.EntryKinds = f.MediaType, f.Entries
		verified = verified || one.Verified
		made.Found = append(made.Found, one)
	}
	identity := gate.StepIdentity
	if keyed {
		identity = gate.StepSignature
	}
	switch s.SelfTest {
	case "":
		if verified {
			made.SelfTest = &gate.VerifierTest{DigestRefusedAt: gate.StepBinding, IdentityRefusedAt: identity}
		}
	case "none":
	case "digest accepted":
		made.SelfTest = &gate.VerifierTest{IdentityRefusedAt: identity}
	case "identity accepted":
		made.SelfTest = &gate.VerifierTest{DigestRefusedAt: gate.StepBinding}
	default:
		t.Fatalf("no such self-test: %s", s.SelfTest)
	}
	return made
}

// question is what Decide is asked for a variant.
func (v *variant) question(t *testing.T) (context.Context, gate.Policy, gate.Evidence) {
	t.Helper()
	object, words := v.object(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	switch {
	case v.Evidence.Cancelled:
		cancel()
	case v.Evidence.Expired:
		ctx, cancel = context.WithDeadline(ctx, time.Time{})
		t.Cleanup(cancel)
	}
	return ctx, mustPolicy(t, v.requirements(t, words)), v.evidence(t, object, words)
}

// judge makes the report of a variant, once.
func (v *variant) judge(t *testing.T) gate.Report {
	t.Helper()
	v.once.Do(func() {
		ctx, policy, evidence := v.question(t)
		v.report = gate.Decide(ctx, policy, evidence, judgedAt)
	})
	return v.report
}

// found gives the findings of a code.
func found(r gate.Report, code gate.Code) []gate.Finding {
	var all []gate.Finding
	for _, f := range r.Findings {
		if f.Code == code {
			all = append(all, f)
		}
	}
	return all
}

// worst is what the findings of a code come to; empty if there is none.
func worst(r gate.Report, code gate.Code) gate.Outcome {
	for _, outcome := range []gate.Outcome{gate.Fail, gate.Unknown, gate.Note, gate.Pass} {
		for _, f := range found(r, code) {
			if f.Outcome == outcome {
				return outcome
			}
		}
	}
	return ""
}

func TestVariants(t *testing.T) {
	t.Parallel()
	for _, v := range readVariants(t) {
		t.Run(v.file+"/"+v.Name, func(t *testing.T) {
			t.Parallel()
			v.check(t, v.judge(t))
		})
	}
}

func (v *variant) check(t *testing.T, r gate.Report) {
	t.Helper()
	defer func() {
		if t.Failed() {
			for _, f := range r.Findings {
				if f.Outcome != gate.Pass {
					t.Logf("%s %s (class %q, wait %q): %s; found %s", f.Outcome, f.Code, f.Class, f.Wait, f.Title, f.Found)
				}
			}
		}
	}()
	verdict, reason := v.Verdict, v.Reason
	switch {
	case v.Fails == "" == (v.Nearly == ""):
		t.Fatal("a variant has one of fails and nearly")
	case !v.namesCodes():
		t.Fatal("the variant names a code that is none")
	case v.Fails != "":
		outcome := v.Outcome
		if outcome == "" {
			outcome = gate.Fail
		}
		if got := worst(r, v.Fails); got != outcome {
			t.Errorf("%s: got %q, want %q", v.Fails, got, outcome)
		}
		if reason == "" && outcome != gate.Note {
			reason = v.Fails
		}
		if verdict == "" {
			verdict = map[gate.Outcome]gate.Verdict{gate.Fail: gate.Rejected, gate.Unknown: gate.Undecided, gate.Note: gate.Verified}[outcome]
		}
	default:
		if got := worst(r, v.Nearly); got != "" && got != gate.Pass && got != v.Outcome {
			t.Errorf("%s: got %q, want it to be fine", v.Nearly, got)
		}
		if verdict == "" {
			verdict = gate.Verified
		}
	}
	if verdict == gate.Verified {
		reason = gate.ReasonVerified
	}
	if r.Verdict != verdict {
		t.Errorf("got the verdict %s, want %s", r.Verdict, verdict)
	}
	if reason == "" {
		t.Error("the variant says no reason")
	} else if r.Reason != reason {
		t.Errorf("got the reason %s, want %s", r.Reason, reason)
	}
	for code, outcome := range v.Also {
		if got := worst(r, code); got != outcome {
			t.Errorf("%s: got %q, want %q", code, got, outcome)
		}
	}
	for _, code := range v.Without {
		if got := worst(r, code); got != "" {
			t.Errorf("%s: got %q, want no finding", code, got)
		}
	}
	about := found(r, v.Fails)
	if (v.Class != "" || v.Wait != nil || v.Found != "") && len(about) == 0 {
		t.Fatal("the variant says class, wait or found of nothing")
	}
	if v.Class != "" && about[0].Class != v.Class {
		t.Errorf("got the class %q, want %q", about[0].Class, v.Class)
	}
	if v.Wait != nil && about[0].Wait != *v.Wait {
		t.Errorf("got the wait %q, want %q", about[0].Wait, *v.Wait)
	}
	if !strings.Contains(foundText(about), v.Found) {
		t.Errorf("found %q does not hold %q", foundText(about), v.Found)
	}
}

// namesCodes says whether every code in the variant is one.
func (v *variant) namesCodes() bool {
	named := append([]gate.Code{v.Fails + v.Nearly}, v.Without...)
	if v.Reason != "" && v.Reason != gate.ReasonVerified {
		named = append(named, v.Reason)
	}
	named = slices.AppendSeq(named, maps.Keys(v.Also))
	return !slices.ContainsFunc(named, func(code gate.Code) bool { return !slices.Contains(gate.AllCodes, code) })
}

func foundText(about []gate.Finding) string {
	if len(about) == 0 {
		return ""
	}
	return about[0].Found
}

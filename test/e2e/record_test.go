package e2e

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
)

// recordings is where the recordings of every line lie, in a directory for each,
// to be replayed by `go test ./...` (gate/action, TestRecordings).
var recordings = filepath.Join("..", "..", "gate", "action", "testdata", "recordings")

var record = flag.Bool("record", false, "store what every run of the gate saw below "+recordings+", and print what has changed there")

// recording is one run of the gate, stored so that it can be replayed without
// the stack: object.json, layout, trusted_root.json, and this as
// recording.yaml.
type recording struct {
	// Controller is the version of source-controller.
	Controller string `json:"controller"`
	// Inputs are the gate's, without those that only a live run has. File names
	// are relative to the recording.
	Inputs in `json:"inputs"`
	// Live is what the live run came to.
	Live outcome `json:"live"`
	// Replay is what the recording comes to. Its verdict is the same; codes are
	// not always, because a recording is judged as at the deadline.
	Replay outcome `json:"replay"`
	// Facts is the object's status in a form in which two recordings of one
	// scenario are the same: what differs is what the controller does.
	Facts []string `json:"facts"`
}

type outcome struct {
	Verdict gate.Verdict `json:"verdict"`
	Reason  gate.Code    `json:"reason"`
	// Findings are those that are not passes, as "code outcome".
	Findings []string `json:"findings"`
}

func outcomeOf(r gate.Report) outcome {
	o := outcome{Verdict: r.Verdict, Reason: r.Reason}
	for _, f := range r.Findings {
		if f.Outcome != gate.Pass {
			o.Findings = append(o.Findings, fmt.Sprintf("%s %s", f.Code, f.Outcome))
		}
	}
	slices.Sort(o.Findings)
	o.Findings = slices.Compact(o.Findings)
	return o
}

// recorder collects what a recording session has to say at its end.
type recorder struct {
	mu       sync.Mutex
	runs     map[string]int // by scenario
	stored   int
	left     []string
	changed  []string
	scenario map[string]bool
}

var theRecorder = recorder{runs: map[string]int{}, scenario: map[string]bool{}}

// next names the next run of a scenario: its name, and -2, -3 and so on.
func (r *recorder) next(scenario string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[scenario]++
	r.scenario[scenario] = true
	if n := r.runs[scenario]; n > 1 {
		return fmt.Sprintf("%s-%d", scenario, n)
	}
	return scenario
}

func (r *recorder) leave(name, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, name+": "+why)
}

// liveOnly are the inputs that a recording cannot have.
var liveOnly = []string{
	"kubeconfig", "kubeconfig-data", "context", "server", "in-cluster", "namespace", "name", "timeout", "reconcile", "canary",
	"registry-username", "registry-password", "registry-ca", "mode", "report",
}

// record stores the run, and replays it at once: a recording that does not come
// to the same verdict is of no use.
func (r *run) record(live actiontest.Result) {
	s := r.s
	s.t.Helper()
	if !*record {
		return
	}
	name := theRecorder.next(s.name)
	if judged := live.Report.Source; judged.Namespace != s.namespace || judged.Name != sourceName {
		theRecorder.leave(name, "another source than the scenario's was judged")
		return
	}
	if r.inputs["canary"] != "" {
		// The verdict rests on an object that a recording does not have.
		theRecorder.leave(name, "a recording has no canary")
		return
	}
	object := s.version(live.Report.Source.ResourceVersion)
	if object == nil {
		theRecorder.leave(name, "no object was judged")
		return
	}
	if live.Report.Reason == gate.Cancelled {
		theRecorder.leave(name, "a recording is judged to its end")
		return
	}
	dir := filepath.Join(recordings, *line, name)
	old, oldErr := readRecording(dir)
	s.check(os.RemoveAll(dir))
	s.check(os.MkdirAll(dir, 0o755))
	writeJSON(s, filepath.Join(dir, "object.json"), object.Object)

	made := recording{
		Controller: s.stack.Line.Release.Version, Inputs: maps.Clone(r.inputs), Live: outcomeOf(live.Report), Facts: facts(object, s),
	}
	for _, input := range liveOnly {
		delete(made.Inputs, input)
	}
	if path := made.Inputs["trusted-root"]; path != "" {
		content, err := os.ReadFile(path)
		s.check(err)
		s.check(os.WriteFile(filepath.Join(dir, "trusted_root.json"), content, 0o644))
		made.Inputs["trusted-root"] = "trusted_root.json"
	}
	if err := s.saveLayout(filepath.Join(dir, "layout")); err == nil {
		made.Inputs["layout"] = "layout"
	} else {
		theRecorder.leave(name, "recorded without signatures: "+err.Error())
		made.Inputs["signature"] = "skip"
		for _, input := range []string{"require-all", "attestations", "trusted-root"} {
			delete(made.Inputs, input)
		}
	}
	made.Inputs["object"] = "object.json"
	made.Replay = r.replay(dir, made.Inputs)
	if made.Replay.Verdict != made.Live.Verdict {
		s.t.Errorf("the recording %s comes to %s (%s), the live run to %s (%s)",
			name, made.Replay.Verdict, made.Replay.Reason, made.Live.Verdict, made.Live.Reason)
	}
	text, err := yaml.Marshal(made)
	s.check(err)
	s.check(os.WriteFile(filepath.Join(dir, "recording.yaml"), text, 0o644))

	theRecorder.mu.Lock()
	defer theRecorder.mu.Unlock()
	theRecorder.stored++
	if oldErr != nil {
		theRecorder.changed = append(theRecorder.changed, name+": new")
		return
	}
	for _, change := range changes(old, made) {
		theRecorder.changed = append(theRecorder.changed, name+": "+change)
	}
}

// replay runs the gate on the recording.
func (r *run) replay(dir string, inputs in) outcome {
	s := r.s
	s.t.Helper()
	absolute := maps.Clone(inputs)
	for _, input := range []string{"object", "layout", "trusted-root"} {
		if absolute[input] != "" {
			path, err := filepath.Abs(filepath.Join(dir, absolute[input]))
			s.check(err)
			absolute[input] = path
		}
	}
	p := actiontest.Start(s.t, s.world.gate, absolute)
	got, err := p.Finish()
	// Outputs say "not verified" of a recording that is; what else End holds of
	// outputs is held by the live run.
	if got.Report.Verdict == "" {
		s.check(errors.Join(errors.New("the replay wrote no report"), err))
	}
	return outcomeOf(got.Report)
}

func readRecording(dir string) (recording, error) {
	text, err := os.ReadFile(filepath.Join(dir, "recording.yaml"))
	if err != nil {
		return recording{}, err
	}
	var r recording
	return r, yaml.UnmarshalStrict(text, &r)
}

// changes lists what is different in a new recording.
func changes(old, made recording) []string {
	var list []string
	compare := func(what string, before, after []string) {
		for _, line := range before {
			if !slices.Contains(after, line) {
				list = append(list, "- "+what+line)
			}
		}
		for _, line := range after {
			if !slices.Contains(before, line) {
				list = append(list, "+ "+what+line)
			}
		}
	}
	if old.Controller != made.Controller {
		list = append(list, fmt.Sprintf("source-controller %s, was %s", made.Controller, old.Controller))
	}
	compare("", old.Facts, made.Facts)
	compare("the live run: ", old.Live.lines(), made.Live.lines())
	compare("the replay: ", old.Replay.lines(), made.Replay.lines())
	return list
}

func (o outcome) lines() []string {
	return append([]string{fmt.Sprintf("%s, %s", o.Verdict, o.Reason)}, o.Findings...)
}

// unstable is what differs between two recordings of one scenario.
var unstable = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "sha256:…"},
	{regexp.MustCompile(`sha256-[0-9a-f]{64}`), "sha256-…"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "…"},
	{regexp.MustCompile(`127\.0\.0\.1:[0-9]+(->127\.0\.0\.1:[0-9]+)?`), "127.0.0.1:…"},
	{regexp.MustCompile(`requestID: [0-9a-f-]+`), "requestID: …"},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`), "…"},
}

// facts are the lines of an object's status that say what the controller did,
// without times, addresses and digests.
func facts(object *unstructured.Unstructured, s *stage) []string {
	content := object.Object
	generation, _, _ := unstructured.NestedInt64(content, "metadata", "generation")
	observed, _, _ := unstructured.NestedInt64(content, "status", "observedGeneration")
	lines := []string{fmt.Sprintf("generation %d, observed %d", generation, observed)}
	revision, found, _ := unstructured.NestedString(content, "status", "artifact", "revision")
	if !found {
		revision = "none"
	}
	lines = append(lines, "serving "+revision)
	conditions, _, _ := unstructured.NestedSlice(content, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		lines = append(lines, fmt.Sprintf("%v %v %v at %v: %v", c["type"], c["status"], c["reason"], c["observedGeneration"], c["message"]))
	}
	status, _, _ := unstructured.NestedMap(content, "status")
	lines = append(lines, "status has "+strings.Join(slices.Sorted(maps.Keys(status)), " "))
	slices.Sort(lines[2 : len(lines)-1])
	for i, line := range lines {
		line = strings.ReplaceAll(line, s.namespace, s.name)
		for _, u := range unstable {
			line = u.pattern.ReplaceAllString(line, u.with)
		}
		lines[i] = line
	}
	return lines
}

func writeJSON(s *stage, path string, value any) {
	s.t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	s.check(err)
	s.check(os.WriteFile(path, append(text, '\n'), 0o644))
}

// tell prints what a recording session has done, and removes the recordings of
// scenarios that there are no more.
func (r *recorder) tell(t *testing.T) {
	if !*record {
		return
	}
	entries, err := os.ReadDir(filepath.Join(recordings, *line))
	if err != nil {
		t.Error(err)
		return
	}
	known := func(name string) bool {
		return slices.ContainsFunc(scenarios(), func(sc scenario) bool {
			return name == sc.name || strings.HasPrefix(name, sc.name+"-")
		})
	}
	for _, entry := range entries {
		if !known(entry.Name()) {
			r.changed = append(r.changed, entry.Name()+": its scenario is gone")
			if err := os.RemoveAll(filepath.Join(recordings, *line, entry.Name())); err != nil {
				t.Error(err)
			}
		}
	}
	if err := copyExample(); err != nil {
		t.Error(err)
	}
	slices.Sort(r.changed)
	slices.Sort(r.left)
	t.Logf("recorded %d runs of %d scenarios; left out or recorded in part:\n%s", r.stored, len(r.scenario), strings.Join(r.left, "\n"))
	if len(r.changed) == 0 {
		t.Log("nothing has changed since the last recording")
		return
	}
	t.Logf("changed since the last recording:\n%s", strings.Join(r.changed, "\n"))
}

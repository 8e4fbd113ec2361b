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

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
	"flux-verify-gate/gate/action/recordingtest"
)

// recordings is where the recordings of every line lie, to be replayed by
// go test ./... (gate/action, TestRecordings).
var recordings = filepath.Join("..", "..", "gate", "action", "testdata", "recordings")

var record = flag.Bool("record", false, "store what every run of the gate saw below "+recordings+", and print what has changed there")

// recorder collects what a recording session has to say at its end.
type recorder struct {
	mu       sync.Mutex
	runs     map[string]int // by scenario
	old, new *recordingtest.Recordings
	stored   int
	left     []string
	done     map[string]bool // runs that were stored
	changed  []string
	scenario map[string]bool
}

var theRecorder = recorder{runs: map[string]int{}, scenario: map[string]bool{}, done: map[string]bool{}}

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
	"kubeconfig", "kubeconfig-data", "context", "server", "in-cluster", "namespace", "name", "timeout", "reconcile",
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
	if r.inputs["reconcile"] == "true" && live.Report.Verdict != gate.Verified {
		theRecorder.leave(name, "the reconciliation that was asked for is the live run's own")
		return
	}
	if live.Report.Reason == gate.Cancelled {
		theRecorder.leave(name, "a recording is judged to its end")
		return
	}
	if s.twoFaced {
		theRecorder.leave(name, "the registry shows the gate something else than others")
		return
	}
	if r.inputs["trusted-root"] == "tuf" {
		theRecorder.leave(name, "it asks for the public Sigstore's trusted root, over the internet")
		return
	}
	dir := s.t.TempDir()
	writeJSON(s, filepath.Join(dir, "object.json"), object.Object)

	made := recordingtest.Recording{
		Controller: s.stack.Line.Release.Version, Inputs: maps.Clone(r.inputs), Live: recordingtest.OutcomeOf(live.Report), Facts: facts(object, s),
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
	var untagged []string
	if digest := live.Report.Source.Digest; digest != "" {
		untagged = append(untagged, digest)
	}
	if made.Inputs["signature"] == "skip" {
		// Nobody looks for signatures.
	} else if err := s.saveLayout(filepath.Join(dir, "layout"), untagged...); err == nil {
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
		if made.Inputs["layout"] == "" {
			theRecorder.leave(name, "not recorded: without signatures it comes to "+string(made.Replay.Verdict))
			return
		}
		s.t.Errorf("the recording %s comes to %s (%s), the live run to %s (%s)",
			name, made.Replay.Verdict, made.Replay.Reason, made.Live.Verdict, made.Live.Reason)
	}
	s.check(theRecorder.store(name, made, dir))
}

// store puts a recording beside the others, and notes what has changed.
func (r *recorder) store(name string, made recordingtest.Recording, dir string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		return err
	}
	r.stored++
	r.done[name] = true
	old, known := r.old.Runs[name]
	if !known {
		r.changed = append(r.changed, name+": new")
	} else {
		for _, change := range changes(old, made) {
			r.changed = append(r.changed, name+": "+change)
		}
	}
	return r.new.Put(name, made, dir)
}

// load reads the last recordings, once.
func (r *recorder) load() error {
	if r.old != nil {
		return nil
	}
	var err error
	if r.old, err = recordingtest.LoadRecordings(filepath.Join(recordings, *line)); err != nil {
		return err
	}
	r.new, err = recordingtest.LoadRecordings(filepath.Join(recordings, *line))
	return err
}

// replay runs the gate on the recording.
func (r *run) replay(dir string, inputs in) recordingtest.Outcome {
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
	return recordingtest.OutcomeOf(got.Report)
}

// changes lists what is different in a new recording.
func changes(old, made recordingtest.Recording) []string {
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
	compare("the live run: ", old.Live.Lines(), made.Live.Lines())
	compare("the replay: ", old.Replay.Lines(), made.Replay.Lines())
	return list
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

// save writes the recordings without those that no run makes any more.
func (r *recorder) save() error {
	known := map[string]bool{}
	for _, sc := range scenarios() {
		known[sc.name] = true
	}
	for name := range r.old.Runs {
		scenario := name
		if i := strings.LastIndexByte(name, '-'); i > 0 && !known[name] && strings.Trim(name[i+1:], "0123456789") == "" {
			scenario = name[:i]
		}
		if !known[scenario] || r.scenario[scenario] && !r.done[name] {
			r.changed = append(r.changed, name+": gone")
			r.new.Remove(name)
		}
	}
	if err := os.MkdirAll(recordings, 0o755); err != nil {
		return err
	}
	return r.new.Save(filepath.Join(recordings, *line))
}

// tell prints what a recording session has done, and removes the recordings of
// scenarios that there are no more.
func (r *recorder) tell(t *testing.T) {
	if !*record {
		return
	}
	if err := r.load(); err != nil {
		t.Error(err)
		return
	}
	if err := r.save(); err != nil {
		t.Error(err)
	}
	if err := copyExample(r.new); err != nil {
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

package action

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"flux-verify-gate/gate/action/recordingtest"
)

// recordedLines loads the recordings of every line of source-controller.
func recordedLines(t *testing.T) map[string]*recordingtest.Recordings {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "recordings", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]*recordingtest.Recordings{}
	for _, path := range paths {
		base := strings.TrimSuffix(path, ".yaml")
		if lines[filepath.Base(base)], err = recordingtest.LoadRecordings(base); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// TestRecordings replays every run of the gate that make record has stored: the
// object that a real controller wrote, the registry's content, and the trusted
// root. What each comes to stands beside it.
func TestRecordings(t *testing.T) {
	t.Parallel()
	runs := 0
	for line, recordings := range recordedLines(t) {
		for name := range recordings.Runs {
			runs++
			t.Run(line+"/"+name, func(t *testing.T) {
				t.Parallel()
				replay(t, recordings, name)
			})
		}
	}
	if runs < 60 {
		t.Errorf("expected at least 60 recordings, found %d: make record", runs)
	}
}

func replay(t *testing.T, recordings *recordingtest.Recordings, name string) {
	t.Helper()
	dir := t.TempDir()
	if err := recordings.Unpack(name, dir); err != nil {
		t.Fatal(err)
	}
	recording := recordings.Runs[name]
	inputs := maps.Clone(recording.Inputs)
	for _, input := range []string{inObject, inLayout, inTrustedRoot} {
		if inputs[input] != "" {
			inputs[input] = filepath.Join(dir, inputs[input])
		}
	}
	r := step{inputs: inputs}.run(context.Background(), t)
	if r.report == nil {
		t.Fatalf("the replay wrote no report:\n%s", r.stdout)
	}
	if got, want := recordingtest.OutcomeOf(*r.report).Lines(), recording.Replay.Lines(); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if r.outputs["verified"] != "false" || r.outputs["reference"] != "" {
		t.Errorf("a recording lets a promotion through: %v", r.outputs)
	}
}

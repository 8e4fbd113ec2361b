package recordingtest

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"flux-verify-gate/gate"
)

// TestRecordings stores, loads and unpacks recordings, and stores them again to
// the same bytes.
func TestRecordings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	if err := os.MkdirAll(filepath.Join(seen, "layout"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{"object.json": "{}", "layout/index.json": "{}", "layout/oci-layout": "v"} {
		if err := os.WriteFile(filepath.Join(seen, path), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	base := filepath.Join(dir, "1.9")
	r, err := LoadRecordings(base)
	if err != nil || len(r.Runs) != 0 {
		t.Fatalf("nothing was recorded: got %v, %v", r, err)
	}
	want := Recording{
		Controller: "v1.9.3", Inputs: map[string]string{"object": "object.json"}, Facts: []string{"serving none"},
		Live:   Outcome{Verdict: gate.Rejected, Reason: gate.VerifyAbsent, Findings: []string{"verify-absent fail"}},
		Replay: Outcome{Verdict: gate.Rejected, Reason: gate.VerifyAbsent, Findings: []string{"verify-absent fail"}},
	}
	for _, name := range []string{"kept", "dropped"} {
		if err := r.Put(name, want, seen); err != nil {
			t.Fatal(err)
		}
	}
	r.Remove("dropped")
	if err := r.Save(base); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(base + ".zip")
	if err != nil {
		t.Fatal(err)
	}

	loaded, err := LoadRecordings(base)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(loaded.Runs, map[string]Recording{"kept": want}) {
		t.Errorf("got %+v", loaded.Runs)
	}
	unpacked := filepath.Join(dir, "unpacked")
	if err := loaded.Unpack("kept", unpacked); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"object.json": "{}", "layout/index.json": "{}", "layout/oci-layout": "v"} {
		if got, err := os.ReadFile(filepath.Join(unpacked, path)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
	if err := loaded.Save(base); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(base + ".zip"); err != nil || string(second) != string(first) {
		t.Errorf("stored again, the recordings are other bytes (%v)", err)
	}
}

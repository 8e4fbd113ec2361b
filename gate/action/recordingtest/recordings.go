// Package recordingtest keeps what the gate saw on the real stack, to be replayed
// without it. It is for tests.
package recordingtest

import (
	"archive/zip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"flux-verify-gate/gate"
)

// Recording says what one run of the gate on the real stack was and came to.
// What it saw lies beside it, in files: object.json, the directory layout,
// trusted_root.json.
type Recording struct {
	// Controller is the version of source-controller.
	Controller string `json:"controller"`
	// Inputs are the gate's, without those that only a live run has. Names of
	// files are those of the recording.
	Inputs map[string]string `json:"inputs"`
	// Live is what the live run came to.
	Live Outcome `json:"live"`
	// Replay is what the recording comes to. Its verdict is the same; codes are
	// not always, because a recording is judged as at the deadline.
	Replay Outcome `json:"replay"`
	// Facts is the object's status in a form in which two recordings of one
	// scenario are the same: what differs is what the controller does.
	Facts []string `json:"facts"`
}

// Outcome is what a run came to.
type Outcome struct {
	Verdict gate.Verdict `json:"verdict"`
	Reason  gate.Code    `json:"reason"`
	// Findings are those that are not passes, as "code outcome", sorted.
	Findings []string `json:"findings"`
}

// OutcomeOf gives the outcome of a report.
func OutcomeOf(r gate.Report) Outcome {
	o := Outcome{Verdict: r.Verdict, Reason: r.Reason}
	for _, f := range r.Findings {
		if f.Outcome != gate.Pass {
			o.Findings = append(o.Findings, fmt.Sprintf("%s %s", f.Code, f.Outcome))
		}
	}
	slices.Sort(o.Findings)
	o.Findings = slices.Compact(o.Findings)
	return o
}

// Lines gives the outcome as a list to compare: verdict and reason, then the
// findings.
func (o Outcome) Lines() []string {
	return append([]string{fmt.Sprintf("%s, %s", o.Verdict, o.Reason)}, o.Findings...)
}

// Recordings are the recordings of one line of source-controller. They are kept
// in two files: a YAML that people read and compare, and a ZIP with what the
// gate saw, in which equal files are stored once.
type Recordings struct {
	// Runs is what was recorded, by the name of the run.
	Runs  map[string]Recording
	files map[string]map[string][]byte
}

// The entries of the ZIP: contents by their hash, and for each run a list of
// hashes and paths.
const (
	contentDir = "content/"
	runDir     = "run/"
)

// LoadRecordings reads base.yaml and base.zip. It is no error if neither is
// there.
func LoadRecordings(base string) (*Recordings, error) {
	r := &Recordings{Runs: map[string]Recording{}, files: map[string]map[string][]byte{}}
	text, err := os.ReadFile(base + ".yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the recordings: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &r.Runs); err != nil {
		return nil, fmt.Errorf("cannot parse the recordings in %s.yaml: %w", base, err)
	}
	archive, err := zip.OpenReader(base + ".zip")
	if err != nil {
		return nil, fmt.Errorf("cannot open what was recorded: %w", err)
	}
	defer archive.Close()
	for name := range r.Runs {
		list, err := fs.ReadFile(archive, runDir+name)
		if err != nil {
			return nil, fmt.Errorf("the recording %s has no files: %w", name, err)
		}
		files := map[string][]byte{}
		for line := range strings.Lines(string(list)) {
			hash, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if files[path], err = fs.ReadFile(archive, contentDir+hash); err != nil {
				return nil, fmt.Errorf("the file %s of the recording %s is missing: %w", path, name, err)
			}
		}
		r.files[name] = files
	}
	return r, nil
}

// Put stores a recording with the files below a directory, in place of one that
// has the name.
func (r *Recordings) Put(name string, recording Recording, dir string) error {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(relative)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot read what was recorded of %s: %w", name, err)
	}
	r.Runs[name], r.files[name] = recording, files
	return nil
}

// Remove drops a recording.
func (r *Recordings) Remove(name string) {
	delete(r.Runs, name)
	delete(r.files, name)
}

// Unpack writes the files of a recording below a directory.
func (r *Recordings) Unpack(name, dir string) error {
	for path, content := range r.files[name] {
		target := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("cannot unpack the recording %s: %w", name, err)
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return fmt.Errorf("cannot unpack the recording %s: %w", name, err)
		}
	}
	return nil
}

// Save writes base.yaml and base.zip. Equal recordings give equal bytes.
func (r *Recordings) Save(base string) error {
	text, err := yaml.Marshal(r.Runs)
	if err != nil {
		return fmt.Errorf("cannot encode the recordings: %w", err)
	}
	file, err := os.Create(base + ".zip")
	if err != nil {
		return fmt.Errorf("cannot write what was recorded: %w", err)
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	contents := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		var list strings.Builder
		for _, path := range slices.Sorted(maps.Keys(r.files[name])) {
			content := r.files[name][path]
			hash := fmt.Sprintf("%x", sha256.Sum256(content))
			contents[hash] = content
			fmt.Fprintf(&list, "%s %s\n", hash, path)
		}
		if err := add(archive, runDir+name, []byte(list.String())); err != nil {
			return err
		}
	}
	for _, hash := range slices.Sorted(maps.Keys(contents)) {
		if err := add(archive, contentDir+hash, contents[hash]); err != nil {
			return err
		}
	}
	if err := errors.Join(archive.Close(), file.Close(), os.WriteFile(base+".yaml", text, 0o644)); err != nil {
		return fmt.Errorf("cannot write the recordings: %w", err)
	}
	return nil
}

func add(archive *zip.Writer, name string, content []byte) error {
	w, err := archive.Create(name)
	if err == nil {
		_, err = io.Writer.Write(w, content)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s of what was recorded: %w", name, err)
	}
	return nil
}

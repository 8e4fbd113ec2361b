package action

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
)

// tell writes the report everywhere it goes and gives the exit status. Files
// come first: the runner reads them even if the step is killed while it prints.
func (c Command) tell(v values, r gate.Report) int {
	r.Gate.Version = c.Version
	if v[inMode] == string(gate.Warn) {
		r.Mode = gate.Warn
	}
	path, err := c.writeReport(v, r)
	faults := []error{err}
	style := c.style(path)
	faults = append(faults, c.inActions(report.AppendOutputs(c.getenv, report.Outputs(r, path))))
	faults = append(faults, c.inActions(report.AppendSummary(c.getenv, report.Summary(r, style))))
	faults = append(faults, report.WriteLog(c.Stdout, r, style))
	status := exitStatus(r)
	if c.getenv("GITHUB_ACTIONS") == "true" {
		for _, command := range report.Annotations([]gate.Report{r}, status != statusVerified, style) {
			_, err := fmt.Fprintln(c.Stdout, command)
			faults = append(faults, err)
		}
	}
	if err := errors.Join(faults...); err != nil {
		// What a later step reads is not what was found: no verdict counts.
		fmt.Fprintln(c.Stderr, report.Line(report.Failed, "the verdict could not be written: "+err.Error()))
		return statusUndecided
	}
	return status
}

// inActions forgives a missing file where there is no runner to name one.
func (c Command) inActions(err error) error {
	if errors.Is(err, report.ErrNoFile) && c.getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	return err
}

func exitStatus(r gate.Report) int {
	switch {
	case r.Verdict == gate.Verified || r.Forgiven():
		return statusVerified
	case r.Verdict == gate.Rejected:
		return statusRejected
	}
	return statusUndecided
}

// writeReport writes the JSON report into the workspace, whole or not at all,
// and owned as the workspace is, because the container runs as root and a later
// step does not. It gives the path relative to the workspace.
func (c Command) writeReport(v values, r gate.Report) (string, error) {
	path := v[inReport]
	if path == "" {
		// The inputs were not understood, so nobody said where.
		return "", nil
	}
	workspace := c.getenv("GITHUB_WORKSPACE")
	full := path
	if !filepath.IsAbs(path) && workspace != "" {
		full = filepath.Join(workspace, path)
	}
	var content bytes.Buffer
	if err := report.WriteJSON(&content, r); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	if err := replaceFile(full, content.Bytes()); err != nil {
		return "", fmt.Errorf("report: expected a path that can be written: %w", err)
	}
	if relative, err := filepath.Rel(workspace, full); workspace != "" && err == nil {
		path = relative
	}
	return path, nil
}

// replaceFile writes a file beside its final place and moves it there, with the
// owner of the folder.
func replaceFile(path string, content []byte) error {
	folder := filepath.Dir(path)
	temporary, err := os.CreateTemp(folder, ".flux-verify-gate-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(content)
	if err = errors.Join(err, temporary.Chmod(0o644), ownAs(folder, temporary), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// ownAs gives an open file the owner of the folder. Whoever may not give files away
// owns the folder already, or has a report of his own there. The file is not asked
// for by its name, which by now may lead elsewhere: the folder is not root's.
func ownAs(folder string, file *os.File) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	uid, gid, ok := ownerOf(info)
	if !ok {
		return nil
	}
	if err := file.Chown(uid, gid); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

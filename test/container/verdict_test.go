package container_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// recorded is a step that judges one of the example recordings, with changes to
// its inputs.
func recorded(t *testing.T, recording string, changes map[string]string) step {
	t.Helper()
	s := step{
		with: map[string]string{
			"object": recording, "required-signers": "@signers.yaml", "digest": "any", "signature": "skip",
		},
		files: map[string]string{},
	}
	for _, name := range []string{recording, "signers.yaml"} {
		content, err := os.ReadFile(filepath.Join(repository, "examples/recorded", name))
		if err != nil {
			t.Fatal(err)
		}
		s.files[hostWorkspace+"/"+name] = string(content)
	}
	maps.Copy(s.with, changes)
	return s
}

func TestVerified(t *testing.T) {
	r := recorded(t, "verified.json", nil).run(t)
	r.want("verified", "verified", 0)
	r.wantReport("flux-verify-gate-report.json", "verified")
}

func TestRejected(t *testing.T) {
	r := recorded(t, "removed.json", nil).run(t)
	r.want("rejected", "verify-absent", 1)
	r.says("::error")
	r.wantReport("flux-verify-gate-report.json", "rejected")
}

func TestRejectedInWarnMode(t *testing.T) {
	r := recorded(t, "removed.json", map[string]string{"mode": "warn", "report": "reports/gate.json"})
	r.files[hostWorkspace+"/reports/.keep"] = ""
	got := r.run(t)
	got.want("rejected", "verify-absent", 0)
	got.wantReport("reports/gate.json", "rejected")
}

// wantReport checks the report in the workspace: that a later step can read,
// change and remove it, as its owner.
func (r result) wantReport(path, verdict string) {
	t := r.t
	t.Helper()
	if got := r.outputs["report"]; got != path {
		t.Errorf("the output report is %q, want %q", got, path)
	}
	full := filepath.Join(r.workspace, path)
	info, err := os.Stat(full)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != runnerUID || stat.Gid != runnerGID || info.Mode().Perm() != 0o644 {
		t.Errorf("the report has the owner %d:%d and the mode %v, want %d:%d and 0644", stat.Uid, stat.Gid, info.Mode(), runnerUID, runnerGID)
	}
	data, err := os.ReadFile(full)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Verdict string `json:"verdict"`
		Gate    struct {
			Version string `json:"version"`
		} `json:"gate"`
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	if report.Verdict != verdict || report.Gate.Version != buildVersion {
		t.Errorf("the report says %q by %q, want %q by %q", report.Verdict, report.Gate.Version, verdict, buildVersion)
	}
}

func TestRefused(t *testing.T) {
	theImage(t)
	tests := []struct {
		name    string
		changes map[string]string
		says    string
	}{
		// action.yml's entrypoint wins over this one, and so the gate sees it.
		{"with entrypoint", map[string]string{"entrypoint": "/bin/true"}, "entrypoint"},
		{"with args", map[string]string{"args": "--signature skip"}, "expected: no args"},
		{"with args that print the version", map[string]string{"args": "version"}, "expected: no args"},
		{"with args that print the help", map[string]string{"args": "--help"}, "expected: no args"},
		{"an input that is not declared", map[string]string{"required-signer": "x"}, "required-signer"},
		{"a blank word", map[string]string{"signature": ""}, "verify or skip"},
		{"no digest", map[string]string{"digest": ""}, "digest"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := recorded(t, "verified.json", tt.changes).run(t)
			r.want("undecided", "bad-input", 2)
			r.says(tt.says)
		})
	}
	for _, argument := range []string{"version", "--help", "suggest", "--signature=skip"} {
		t.Run("the argument "+argument, func(t *testing.T) {
			s := recorded(t, "verified.json", nil)
			s.arguments = []string{argument}
			r := s.run(t)
			r.want("undecided", "bad-input", 2)
			r.says("arguments", "1 on the command line")
		})
	}
}

func TestOutputsThatCannotBeWritten(t *testing.T) {
	s := recorded(t, "verified.json", nil)
	s.readOnly = true
	r := s.run(t)
	if r.status != 2 || len(r.outputs) > 0 || r.summary != "" {
		t.Errorf("exit status %d, want 2; outputs %v and summary %q, want none", r.status, r.outputs, r.summary)
	}
	r.says("cannot be written", "read-only file system")
	if strings.Contains(r.log, "::stop-commands") {
		t.Error("the log stops commands")
	}
}

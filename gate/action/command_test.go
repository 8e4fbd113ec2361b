package action

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report/runnertest"
)

// step is one run of the action as the runner makes it: inputs as variables,
// files for outputs and summary, a workspace.
type step struct {
	inputs map[string]string
	env    map[string]string
	args   []string
	stdin  io.Reader
	// outside leaves the runner's variables out, as on a laptop.
	outside bool
}

// result is what the runner would see of it.
type result struct {
	status  int
	stdout  string
	stderr  string
	outputs map[string]string
	summary string
	report  *gate.Report
}

const (
	signersYAML = `- issuer: https://token.actions.githubusercontent.com
  subject: https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main
`
	verifiedObject = "../testdata/cases/live/20-keyless-ok.json"
	absentObject   = "../testdata/cases/operator/53-verify-removed-by-hand.json"
)

// recorded are the inputs of a run that verifies a recording.
func recorded(changes map[string]string) map[string]string {
	inputs := map[string]string{}
	for _, in := range Inputs() {
		// The runner exports every declared input, with its default.
		inputs[in.Name] = in.Default
	}
	for name, value := range map[string]string{
		inObject: verifiedObject, inRequiredSigners: signersYAML, inDigest: gate.DigestAny, inSignature: "skip",
	} {
		inputs[name] = value
	}
	for name, value := range changes {
		if value == absent {
			delete(inputs, name)
			continue
		}
		inputs[name] = value
	}
	return inputs
}

// absent, as the value of an input, leaves its variable out.
const absent = "\x00absent"

func (s step) run(ctx context.Context, t *testing.T) result {
	t.Helper()
	folder := t.TempDir()
	files := map[string]string{"GITHUB_OUTPUT": filepath.Join(folder, "output"), "GITHUB_STEP_SUMMARY": filepath.Join(folder, "summary")}
	workspace := filepath.Join(folder, "workspace")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	var environ []string
	for name, value := range s.inputs {
		environ = append(environ, envName(name)+"="+value)
	}
	if !s.outside {
		environ = append(environ, "GITHUB_ACTIONS=true", "GITHUB_WORKSPACE="+workspace)
		for name, path := range files {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			environ = append(environ, name+"="+path)
		}
	}
	for name, value := range s.env {
		environ = append(environ, name+"="+value)
	}
	var stdout, stderr bytes.Buffer
	clock := time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)
	r := result{status: Command{
		Args: s.args, Environ: environ, Stdin: s.stdin, Stdout: &stdout, Stderr: &stderr,
		Now: func() time.Time { return clock }, Version: "test",
	}.Run(ctx)}
	r.stdout, r.stderr = stdout.String(), stderr.String()
	if s.outside {
		return r
	}
	output, err := os.ReadFile(files["GITHUB_OUTPUT"])
	if err != nil {
		t.Fatal(err)
	}
	if r.outputs, err = runnertest.Outputs(string(output)); err != nil {
		t.Errorf("the runner would refuse the outputs: %v", err)
	}
	summary, err := os.ReadFile(files["GITHUB_STEP_SUMMARY"])
	if err != nil {
		t.Fatal(err)
	}
	r.summary = string(summary)
	if path := r.outputs["report"]; path != "" {
		data, err := os.ReadFile(filepath.Join(workspace, path))
		if err != nil {
			t.Fatalf("the output report names a file that is not there: %v", err)
		}
		r.report = new(gate.Report)
		if err := json.Unmarshal(data, r.report); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// declaredOutputs are the outputs that action.yml declares; each is written on
// every exit path.
var declaredOutputs = []string{"verdict", "verified", "reason", "digest", "reference", "revision", "findings", "report"}

// check holds what every run owes, whatever its verdict.
func (r result) check(t *testing.T, verdict gate.Verdict, reason gate.Code, status int) {
	t.Helper()
	for _, name := range declaredOutputs {
		if _, ok := r.outputs[name]; !ok {
			t.Errorf("output %s was not written", name)
		}
	}
	if got := r.outputs["verdict"]; got != string(verdict) {
		t.Errorf("output verdict %q, want %q", got, verdict)
	}
	if got := r.outputs["reason"]; got != string(reason) {
		t.Errorf("output reason %q, want %q", got, reason)
	}
	if r.status != status {
		t.Errorf("exit status %d, want %d", r.status, status)
	}
	if r.outputs["verified"] != "false" || r.outputs["digest"] != "" || r.outputs["reference"] != "" {
		t.Errorf("a run that verified nothing live gives verified=%q digest=%q reference=%q",
			r.outputs["verified"], r.outputs["digest"], r.outputs["reference"])
	}
	if !strings.Contains(strings.ToLower(r.summary), string(verdict)) {
		t.Errorf("the summary does not say %s: %q", verdict, r.summary)
	}
	annotations := 0
	for _, c := range runnertest.Commands(r.stdout + r.stderr) {
		switch c.Name {
		case "error", "warning", "notice":
			annotations++
		case "debug", "group", "endgroup":
		default:
			t.Errorf("the runner would obey %q", c.Line)
		}
	}
	if annotations > 1 {
		t.Errorf("%d annotations, want at most one for a source", annotations)
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.stdout, r.stderr)
	}
}

func TestRecordingVerdicts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		changes map[string]string
		verdict gate.Verdict
		reason  gate.Code
		status  int
	}{
		{"verified", nil, gate.Verified, gate.ReasonVerified, 0},
		{"verified in warn mode", map[string]string{inMode: "warn"}, gate.Verified, gate.ReasonVerified, 0},
		{"rejected", map[string]string{inObject: absentObject}, gate.Rejected, gate.VerifyAbsent, 1},
		{"rejected in warn mode", map[string]string{inObject: absentObject, inMode: "warn"}, gate.Rejected, gate.VerifyAbsent, 0},
		{"the digest is not the one", map[string]string{inDigest: "sha256:" + strings.Repeat("0", 64)}, gate.Rejected, gate.DigestMismatch, 1},
		{"the digest is the one", map[string]string{inDigest: "sha256:e8d7f448604e253343398bc99be904cfe6d8f00570cc26b337eefd7b3b740bef"}, gate.Verified, gate.ReasonVerified, 0},
		{"the address is not the one", map[string]string{inURL: "oci://ghcr.io/acme/kl"}, gate.Rejected, gate.SourceURL, 1},
		{"the address is the one", map[string]string{inURL: "oci://127.0.0.1:15000/acme/kl"}, gate.Verified, gate.ReasonVerified, 0},
		{"bad input", map[string]string{inDigest: ""}, gate.Undecided, gate.BadInput, 2},
		{"bad input in warn mode", map[string]string{inDigest: "", inMode: "warn"}, gate.Undecided, gate.BadInput, 2},
		{"no such recording", map[string]string{inObject: "no-such.json"}, gate.Undecided, gate.BadInput, 2},
		{"not a recording", map[string]string{inObject: "command_test.go"}, gate.Undecided, gate.BadInput, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := step{inputs: recorded(tt.changes)}.run(context.Background(), t)
			r.check(t, tt.verdict, tt.reason, tt.status)
			if r.report != nil && (r.report.Verdict != tt.verdict || r.report.Live) {
				t.Errorf("the report says %s, live %v", r.report.Verdict, r.report.Live)
			}
		})
	}
}

// brokenReader breaks the gate from within, or only fails.
type brokenReader struct{ panics bool }

func (r brokenReader) Read([]byte) (int, error) {
	if r.panics {
		panic("::set-output name=verdict::verified\n##[set-output name=verdict]verified")
	}
	return 0, errors.New("##[set-output name=verdict]verified")
}

func TestEveryExitPathWritesEveryOutput(t *testing.T) {
	t.Parallel()
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		r := step{inputs: recorded(map[string]string{inObject: "-"}), stdin: brokenReader{panics: true}}.run(context.Background(), t)
		r.check(t, gate.Undecided, gate.Internal, 2)
	})
	t.Run("unreadable input", func(t *testing.T) {
		t.Parallel()
		r := step{inputs: recorded(map[string]string{inObject: "-"}), stdin: brokenReader{}}.run(context.Background(), t)
		r.check(t, gate.Undecided, gate.BadInput, 2)
	})
	t.Run("undeclared input", func(t *testing.T) {
		t.Parallel()
		r := step{inputs: recorded(map[string]string{"required-signer": "x"})}.run(context.Background(), t)
		r.check(t, gate.Undecided, gate.BadInput, 2)
		if !strings.Contains(r.stdout, "required-signer") {
			t.Errorf("the log does not name the input:\n%s", r.stdout)
		}
	})
	t.Run("arguments beside inputs", func(t *testing.T) {
		t.Parallel()
		for _, args := range [][]string{{"--signature", "skip"}, {"version"}, {"--version"}, {"help"}, {"-h"}} {
			r := step{inputs: recorded(nil), args: args}.run(context.Background(), t)
			r.check(t, gate.Undecided, gate.BadInput, 2)
		}
	})
	t.Run("version and help without inputs", func(t *testing.T) {
		t.Parallel()
		for _, arg := range []string{"version", "help"} {
			r := step{args: []string{arg}, outside: true}.run(context.Background(), t)
			if r.status != 0 || !strings.Contains(r.stdout, "flux-verify-gate") {
				t.Errorf("%s: exit status %d, want 0, and the name of the program in %q", arg, r.status, r.stdout)
			}
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r := step{inputs: recorded(nil)}.run(ctx, t)
		r.check(t, gate.Undecided, gate.Cancelled, 2)
	})
}

func TestOutputsThatCannotBeWrittenAreNoVerdict(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		env  map[string]string
	}{
		{"no output file", map[string]string{"GITHUB_OUTPUT": ""}},
		{"output file in a missing folder", map[string]string{"GITHUB_OUTPUT": "/nonexistent/output"}},
		{"summary file in a missing folder", map[string]string{"GITHUB_STEP_SUMMARY": "/nonexistent/summary"}},
		{"workspace missing", map[string]string{"GITHUB_WORKSPACE": "/nonexistent"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := step{inputs: recorded(nil), env: tt.env}
			r := s.run(context.Background(), t)
			if r.status != statusUndecided {
				t.Errorf("exit status %d, want %d\n%s", r.status, statusUndecided, r.stdout)
			}
			if !strings.Contains(r.stderr, "be written") {
				t.Errorf("stderr does not say why: %q", r.stderr)
			}
		})
	}
}

func TestFlagsAreTheSameInputs(t *testing.T) {
	t.Parallel()
	signers := filepath.Join(t.TempDir(), "signers.yaml")
	if err := os.WriteFile(signers, []byte(signersYAML), 0o644); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	args := []string{"--object", verifiedObject, "--required-signers", "@" + signers, "--digest", "any", "--report", report}
	tests := []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"verified", append(args, "--signature", "skip"), 0, "verified"},
		{"a flag twice", append(args, "--signature", "skip", "--digest", "any"), 2, "given twice"},
		{"an unknown flag", append(args, "--signatures", "skip"), 2, "signatures"},
		{"an argument", append(args, "skip"), 2, "flags only"},
		{"a file that is not there", append(args, "--url", "@nowhere"), 2, "nowhere"},
		{"blank is not skip", append(args, "--signature", ""), 2, "verify or skip"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := step{args: tt.args, outside: true}.run(context.Background(), t)
			if r.status != tt.status || !strings.Contains(r.stdout, tt.says) {
				t.Errorf("exit status %d, want %d with %q in\n%s%s", r.status, tt.status, tt.says, r.stdout, r.stderr)
			}
			if runnertest.Commands(r.stdout) != nil {
				t.Errorf("commands to a runner outside of one:\n%s", r.stdout)
			}
		})
	}
}

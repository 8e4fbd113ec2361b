// Package actiontest runs the gate's real binary as the runner runs an action,
// and holds together what it leaves behind: outputs, summary, report, commands
// and exit status. It is for tests.
package actiontest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action"
	"flux-verify-gate/gate/report/runnertest"
)

// Process is the gate, running as the runner starts an action.
type Process struct {
	t         *testing.T
	cmd       *exec.Cmd
	stdout    *output
	stderr    *output
	inputs    map[string]string
	workspace string
	files     string
	done      chan struct{}
	err       error // of Wait, once done is closed
}

// Result is what the runner sees of a run that has ended.
type Result struct {
	// Status is the exit status.
	Status int
	// Stdout and Stderr are what was printed.
	Stdout, Stderr string
	// Outputs are the step's, as the runner parses them.
	Outputs map[string]string
	// Summary is the job summary, in Markdown.
	Summary string
	// Report is the JSON report; the zero one where none was written.
	Report gate.Report
	// CPU is the time that the process used.
	CPU time.Duration
}

// Want is what a run must come to.
type Want struct {
	Verdict gate.Verdict
	Reason  gate.Code
}

// allInputs completes inputs: the runner exports every declared one, with its
// default.
func allInputs(changes map[string]string) map[string]string {
	inputs := map[string]string{}
	for _, in := range action.Inputs() {
		inputs[in.Name] = in.Default
	}
	inputs["github-token"] = "ghs_of_the_workflow"
	maps.Copy(inputs, changes)
	return inputs
}

// Build builds the gate at path, with the race detector if race is set. The
// module's root is found from the working directory.
func Build(ctx context.Context, path string, race bool) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	args := []string{"build", "-ldflags", "-X main.version=test", "-o", path}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the gate: %w: %s", err, output)
	}
	return nil
}

// moduleRoot looks upwards for the directory of the gate's action.yml.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "action.yml")); missing == nil {
			return dir, nil
		}
	}
	return "", errors.Join(errors.New("expected to run below the directory of action.yml"), err)
}

// Start starts the binary at path with inputs, and variables of the form
// NAME=value. Inputs that are not given have the defaults of action.yml. The
// process is killed at the end of the test, and when the test binary is killed.
func Start(t *testing.T, path string, inputs map[string]string, env ...string) *Process {
	t.Helper()
	p := &Process{
		t: t, stdout: newOutput(), stderr: newOutput(), inputs: allInputs(inputs),
		workspace: t.TempDir(), files: t.TempDir(), done: make(chan struct{}),
	}
	p.cmd = exec.Command(path)
	p.cmd.Dir = p.workspace
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.cmd.Env = append([]string{
		"GITHUB_ACTIONS=true", "CI=true", "HOME=" + t.TempDir(),
		"GITHUB_WORKSPACE=" + p.workspace,
		"GITHUB_OUTPUT=" + filepath.Join(p.files, "output"),
		"GITHUB_STEP_SUMMARY=" + filepath.Join(p.files, "summary"),
		"GITHUB_REPOSITORY=acme/platform", "GITHUB_EVENT_NAME=push", "GITHUB_ACTOR=somebody",
		"GORACE=halt_on_error=1 exitcode=66",
	}, env...)
	for name, value := range p.inputs {
		p.cmd.Env = append(p.cmd.Env, "INPUT_"+strings.ToUpper(strings.ReplaceAll(name, " ", "_"))+"="+value)
	}
	for _, name := range []string{"output", "summary"} {
		if err := os.WriteFile(filepath.Join(p.files, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// The gate must not outlive a test binary that is killed.
	p.cmd.SysProcAttr = tied()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		p.stdout.close()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("the gate's log:\n%s%s", p.stdout, p.stderr)
		}
	})
	return p
}

// Done is closed when the gate has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Status returns the exit status of a gate that has ended, -1 if by a signal.
func (p *Process) Status() int { return p.cmd.ProcessState.ExitCode() }

// Signal sends a signal to the gate, as the runner does to the container's
// first process.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Saw returns when the gate has printed a text, and fails the test if the gate
// ends without it.
func (p *Process) Saw(text string) {
	p.t.Helper()
	if err := p.stdout.wait(text, 2*time.Minute); err != nil {
		p.t.Fatal(err)
	}
}

// End waits for the gate and checks everything that must hold of any run.
func (p *Process) End() Result {
	p.t.Helper()
	r, err := p.Finish()
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// Finish is End for a goroutine that must not end the test.
func (p *Process) Finish() (Result, error) {
	// The gate ends by itself soon after its time-out; this is for a gate that
	// does not.
	stuck := time.AfterFunc(5*time.Minute, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) })
	<-p.done
	stuck.Stop()
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		return Result{}, p.err
	}
	r := Result{
		Status: p.cmd.ProcessState.ExitCode(), Stdout: p.stdout.String(), Stderr: p.stderr.String(),
		CPU: p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(),
	}
	return r, p.read(&r)
}

// read reads what the runner reads, and holds it together.
func (p *Process) read(r *Result) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	output, err := os.ReadFile(filepath.Join(p.files, "output"))
	if err != nil {
		return err
	}
	if r.Outputs, err = runnertest.Outputs(string(output)); err != nil {
		return err
	}
	for _, o := range action.OutputTable() {
		if _, written := r.Outputs[o.Name]; !written {
			fault("the output %s was not written", o.Name)
		}
	}
	summary, err := os.ReadFile(filepath.Join(p.files, "summary"))
	if err != nil {
		return err
	}
	r.Summary = string(summary)
	verdict := gate.Verdict(r.Outputs["verdict"])
	if !strings.Contains(strings.ToLower(r.Summary), string(verdict)) {
		fault("the summary does not name the verdict %q:\n%s", verdict, r.Summary)
	}
	if verified := verdict == gate.Verified; r.Outputs["verified"] != fmt.Sprint(verified) ||
		verified != (r.Outputs["digest"] != "") || verified != (r.Outputs["reference"] != "") ||
		verified != (r.Outputs["reason"] == string(gate.ReasonVerified)) {
		fault("the outputs contradict each other: %v", r.Outputs)
	}
	code, known := map[gate.Verdict]int{gate.Verified: 0, gate.Rejected: 1, gate.Undecided: 2}[verdict]
	switch {
	case !known:
		fault("the output verdict is %q, which is none", verdict)
	case p.inputs["mode"] == "warn" && r.Status == 0: // forgiven
	case r.Status != code:
		fault("got exit status %d for %s", r.Status, verdict)
	}
	for _, c := range runnertest.Commands(r.Stdout + "\n" + r.Stderr) {
		if !slices.Contains([]string{"error", "warning", "notice", "group", "endgroup"}, c.Name) {
			fault("the runner would take %q for a command", c.Line)
		}
	}
	if strings.Contains(r.Stderr, "DATA RACE") || strings.Contains(r.Stderr, "panic:") {
		fault("stderr: %s", r.Stderr)
	}
	if path := r.Outputs["report"]; path != "" {
		content, err := os.ReadFile(filepath.Join(p.workspace, path))
		if err == nil {
			err = json.Unmarshal(content, &r.Report)
		}
		if err != nil {
			fault("the report: %w", err)
		} else if r.Report.Verdict != verdict || string(r.Report.Reason) != r.Outputs["reason"] ||
			r.Report.Source.Revision != r.Outputs["revision"] {
			fault("report and outputs differ: %s %s %s, %v", r.Report.Verdict, r.Report.Reason, r.Report.Source.Revision, r.Outputs)
		}
	}
	for name, value := range p.inputs {
		if secret := name == "kubeconfig-data" || name == "registry-password"; secret && strings.TrimSpace(value) != "" &&
			strings.Contains(r.Stdout+r.Stderr+r.Summary+string(output), value) {
			fault("the value of %s is shown", name)
		}
	}
	return errors.Join(faults...)
}

// Is ends the run and compares what it came to.
func (p *Process) Is(w Want) Result {
	p.t.Helper()
	r := p.End()
	if r.Outputs["verdict"] != string(w.Verdict) || r.Outputs["reason"] != string(w.Reason) {
		p.t.Errorf("got %s, %s, want %s, %s", r.Outputs["verdict"], r.Outputs["reason"], w.Verdict, w.Reason)
	}
	return r
}

// Finding returns the first finding with a code, or fails the test.
func (r Result) Finding(t *testing.T, code gate.Code) gate.Finding {
	t.Helper()
	for _, f := range r.Report.Findings {
		if f.Code == code {
			return f
		}
	}
	t.Fatalf("there is no finding %s", code)
	return gate.Finding{}
}

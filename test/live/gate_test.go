package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action"
	"flux-verify-gate/gate/report/runnertest"
)

// process is the gate, running as the runner starts an action.
type process struct {
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

// result is what the runner sees of a run that has ended.
type result struct {
	status         int
	stdout, stderr string
	outputs        map[string]string
	summary        string
	report         gate.Report
	cpu            time.Duration
}

// want is what a run must come to.
type want struct {
	verdict gate.Verdict
	reason  gate.Code
}

// The inputs that are not given are those of action.yml: the runner exports
// every declared input, with its default.
func allInputs(changes map[string]string) map[string]string {
	inputs := map[string]string{}
	for _, in := range action.Inputs() {
		inputs[in.Name] = in.Default
	}
	inputs["github-token"] = "ghs_of_the_workflow"
	maps.Copy(inputs, changes)
	return inputs
}

// startGate starts the binary with inputs and further variables.
func startGate(t *testing.T, inputs map[string]string, env ...string) *process {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
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

// signal sends a signal to the gate, as the runner does to the container's
// first process.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// saw returns when the gate has printed a text, and fails the test if the gate
// ends without it.
func (p *process) saw(text string) {
	p.t.Helper()
	if err := p.stdout.wait(text, 2*time.Minute); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the gate and checks everything that must hold of any run.
func (p *process) end() result {
	p.t.Helper()
	r, err := p.finish()
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func (p *process) finish() (result, error) {
	// The gate ends by itself soon after its time-out; this is for a gate that
	// does not.
	stuck := time.AfterFunc(5*time.Minute, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) })
	<-p.done
	stuck.Stop()
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		return result{}, p.err
	}
	r := result{
		status: p.cmd.ProcessState.ExitCode(), stdout: p.stdout.String(), stderr: p.stderr.String(),
		cpu: p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(),
	}
	return r, p.read(&r)
}

// read reads what the runner reads, and holds it together.
func (p *process) read(r *result) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	output, err := os.ReadFile(filepath.Join(p.files, "output"))
	if err != nil {
		return err
	}
	if r.outputs, err = runnertest.Outputs(string(output)); err != nil {
		return err
	}
	for _, o := range action.OutputTable() {
		if _, written := r.outputs[o.Name]; !written {
			fault("the output %s was not written", o.Name)
		}
	}
	summary, err := os.ReadFile(filepath.Join(p.files, "summary"))
	if err != nil {
		return err
	}
	r.summary = string(summary)
	verdict := gate.Verdict(r.outputs["verdict"])
	if !strings.Contains(strings.ToLower(r.summary), string(verdict)) {
		fault("the summary does not name the verdict %q:\n%s", verdict, r.summary)
	}
	if verified := verdict == gate.Verified; r.outputs["verified"] != fmt.Sprint(verified) ||
		verified != (r.outputs["digest"] != "") || verified != (r.outputs["reference"] != "") ||
		verified != (r.outputs["reason"] == string(gate.ReasonVerified)) {
		fault("the outputs contradict each other: %v", r.outputs)
	}
	if p.inputs["mode"] != "warn" {
		if codes := map[gate.Verdict]int{gate.Verified: 0, gate.Rejected: 1, gate.Undecided: 2}; r.status != codes[verdict] {
			fault("got exit status %d for %s", r.status, verdict)
		}
	}
	for _, c := range runnertest.Commands(r.stdout + "\n" + r.stderr) {
		if !slices.Contains([]string{"error", "warning", "notice", "group", "endgroup"}, c.Name) {
			fault("the runner would take %q for a command", c.Line)
		}
	}
	if strings.Contains(r.stderr, "DATA RACE") || strings.Contains(r.stderr, "panic:") {
		fault("stderr: %s", r.stderr)
	}
	if path := r.outputs["report"]; path != "" {
		content, err := os.ReadFile(filepath.Join(p.workspace, path))
		if err == nil {
			err = json.Unmarshal(content, &r.report)
		}
		if err != nil {
			fault("the report: %w", err)
		} else if r.report.Verdict != verdict || string(r.report.Reason) != r.outputs["reason"] ||
			r.report.Source.Revision != r.outputs["revision"] {
			fault("report and outputs differ: %s %s %s, %v", r.report.Verdict, r.report.Reason, r.report.Source.Revision, r.outputs)
		}
	}
	for name, value := range p.inputs {
		if secret := name == "kubeconfig-data" || name == "registry-password"; secret && strings.TrimSpace(value) != "" &&
			strings.Contains(r.stdout+r.stderr+r.summary+string(output), value) {
			fault("the value of %s is shown", name)
		}
	}
	return errors.Join(faults...)
}

// is ends the run and compares what it came to.
func (p *process) is(w want) result {
	p.t.Helper()
	r := p.end()
	if r.outputs["verdict"] != string(w.verdict) || r.outputs["reason"] != string(w.reason) {
		p.t.Errorf("got %s, %s, want %s, %s", r.outputs["verdict"], r.outputs["reason"], w.verdict, w.reason)
	}
	return r
}

// finding returns the first finding with a code, or fails the test.
func (r result) finding(t *testing.T, code gate.Code) gate.Finding {
	t.Helper()
	for _, f := range r.report.Findings {
		if f.Code == code {
			return f
		}
	}
	t.Fatalf("there is no finding %s", code)
	return gate.Finding{}
}

// output collects what a process prints.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	closed  bool
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.signal()
	return o.text.Write(p)
}

func (o *output) signal() {
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.signal()
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// wait returns when a text is there.
func (o *output) wait(text string, atMost time.Duration) error {
	deadline := time.After(atMost)
	for {
		o.mu.Lock()
		found, closed, changed := strings.Contains(o.text.String(), text), o.closed, o.changed
		o.mu.Unlock()
		switch {
		case found:
			return nil
		case closed:
			return fmt.Errorf("the gate ended without printing %q", text)
		}
		select {
		case <-changed:
		case <-deadline:
			return fmt.Errorf("the gate did not print %q within %s", text, atMost)
		}
	}
}

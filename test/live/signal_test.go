package live

import (
	"syscall"
	"testing"
	"time"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
)

// The runner cancels a step with SIGINT and, 7.5 s later, SIGTERM: what was
// pending then is neither a pass nor a fail, and the outputs say so.
func TestSignals(t *testing.T) {
	t.Parallel()
	for name, signals := range map[string][]syscall.Signal{
		"SIGINT":                   {syscall.SIGINT},
		"SIGTERM":                  {syscall.SIGTERM},
		"SIGINT, SIGTERM 7.5 s on": {syscall.SIGINT, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := steadyPlace(t)
			p.create()
			g := p.gate(map[string]string{"timeout": "10m"})
			g.Saw(waiting)
			g.Signal(signals[0])
			for _, s := range signals[1:] {
				select {
				case <-g.Done():
				case <-time.After(7500 * time.Millisecond):
					g.Signal(s)
				}
			}
			r := g.Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.Cancelled})
			if f := r.Finding(t, gate.VerificationMissing); f.Outcome != gate.Note {
				t.Errorf("what was pending is %s", f.Outcome)
			}
		})
	}
}

// A run that is killed leaves outputs behind that let nothing pass.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	p.create()
	g := p.gate(map[string]string{"timeout": "10m"})
	g.Saw(waiting)
	g.Signal(syscall.SIGKILL)
	// There is no summary and no report; the error says so.
	if r, err := g.Finish(); r.Outputs["verdict"] != string(gate.Undecided) || r.Outputs["verified"] != "false" || r.Outputs["reference"] != "" {
		t.Errorf("a killed run leaves %v (%v)", r.Outputs, err)
	}
}

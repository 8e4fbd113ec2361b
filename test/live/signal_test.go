package live

import (
	"syscall"
	"testing"
	"time"

	"flux-verify-gate/gate"
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
			g.saw(waiting)
			g.signal(signals[0])
			for _, s := range signals[1:] {
				select {
				case <-g.done:
				case <-time.After(7500 * time.Millisecond):
					g.signal(s)
				}
			}
			r := g.is(want{gate.Undecided, gate.Cancelled})
			if f := r.finding(t, gate.VerificationMissing); f.Outcome != gate.Note {
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
	g.saw(waiting)
	g.signal(syscall.SIGKILL)
	<-g.done
	r := result{status: g.cmd.ProcessState.ExitCode()}
	// There is no summary and no report; the error says so.
	if err := g.read(&r); r.outputs["verdict"] != string(gate.Undecided) || r.outputs["verified"] != "false" || r.outputs["reference"] != "" {
		t.Errorf("a killed run leaves %v (%v)", r.outputs, err)
	}
}

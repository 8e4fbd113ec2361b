package e2e

import (
	"maps"
	"slices"
	"strings"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
)

// run is one run of the gate in a scenario.
type run struct {
	*actiontest.Process
	s      *stage
	inputs in
	// differs and incomparable are what apart and uncompared were told.
	differs, incomparable string
}

// gate starts the gate with the scenario's inputs and changes.
func (s *stage) gate(changes ...in) *run {
	s.t.Helper()
	inputs := in{
		"kubeconfig": s.kubeconfig, "namespace": s.namespace, "name": sourceName, "digest": gate.DigestAny,
		"url": s.url(), "timeout": "60s",
	}
	for _, more := range append([]in{s.required}, changes...) {
		maps.Copy(inputs, more)
	}
	return &run{Process: actiontest.Start(s.t, s.world.gate, inputs), s: s, inputs: inputs}
}

// waits holds that the gate waits for something to mend itself, and returns when
// it has said so.
func (r *run) waits(code gate.Code) {
	r.s.t.Helper()
	r.Saw("waiting while " + string(code) + ":")
}

// is waits for the gate's end and holds what it came to: the verdict, its
// reason, the exit status and outputs that go with them, and codes that must be
// among the findings that are not passes. Then it compares the gate's rules with
// the real condition.
func (r *run) is(verdict gate.Verdict, reason gate.Code, codes ...gate.Code) actiontest.Result {
	t := r.s.t
	t.Helper()
	got := r.Is(actiontest.Want{Verdict: verdict, Reason: reason})
	codesSeen.add(got.Report.Findings)
	for _, code := range codes {
		if !slices.ContainsFunc(got.Report.Findings, func(f gate.Finding) bool { return f.Code == code && f.Outcome != gate.Pass }) {
			t.Errorf("there is no finding %s", code)
		}
	}
	if verdict == gate.Verified {
		if want := r.s.served() + "@" + got.Outputs["digest"]; got.Outputs["reference"] != want {
			t.Errorf("got the reference %s, want %s", got.Outputs["reference"], want)
		}
	}
	r.agree()
	r.record(got)
	return got
}

// verified is is for a good deployment of a digest.
func (r *run) verified(digest string, codes ...gate.Code) actiontest.Result {
	r.s.t.Helper()
	got := r.is(gate.Verified, gate.ReasonVerified, codes...)
	if got.Outputs["digest"] != digest {
		r.s.t.Errorf("verified %s, want %s", got.Outputs["digest"], digest)
	}
	return got
}

// rejected is is for a deployment that is wrong.
func (r *run) rejected(reason gate.Code, codes ...gate.Code) actiontest.Result {
	r.s.t.Helper()
	return r.is(gate.Rejected, reason, codes...)
}

// undecided is is for a deployment that could not be looked at.
func (r *run) undecided(reason gate.Code, codes ...gate.Code) actiontest.Result {
	r.s.t.Helper()
	return r.is(gate.Undecided, reason, codes...)
}

// says holds that a finding tells in its words each of these.
func (s *stage) says(got actiontest.Result, code gate.Code, texts ...string) {
	s.t.Helper()
	f := got.Finding(s.t, code)
	told := f.Title + " | " + f.Found + " | " + f.Remedy
	for _, text := range texts {
		if !strings.Contains(told, text) {
			s.t.Errorf("%s does not say %q: %s", code, text, told)
		}
	}
}

// without holds that there is no finding of a code but a pass.
func (s *stage) without(got actiontest.Result, code gate.Code) {
	s.t.Helper()
	for _, f := range got.Report.Findings {
		if f.Code == code && f.Outcome != gate.Pass {
			s.t.Errorf("got %s %s: %s", code, f.Outcome, f.Found)
		}
	}
}

// classed holds that verification-failed has a class.
func (s *stage) classed(got actiontest.Result, class gate.Class) {
	s.t.Helper()
	if failed := got.Finding(s.t, gate.VerificationFailed); failed.Class != class {
		s.t.Errorf("got the class %s, want %s: %s", failed.Class, class, failed.Found)
	}
}

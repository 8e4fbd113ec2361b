package action

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/cluster"
	"flux-verify-gate/gate/report"
)

// The exit statuses. GitHub knows only 0 and failure; elsewhere the difference
// between wrong and could not look is worth having.
const (
	statusVerified  = 0
	statusRejected  = 1
	statusUndecided = 2
)

// Command is one run of the program, with everything that it takes from the
// outside passed in.
type Command struct {
	Args    []string
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	Version string
}

// Run does what the arguments or the inputs ask for and gives the exit status.
// It ends soon after ctx is done, and still writes every output.
func (c Command) Run(ctx context.Context) int {
	// Where the inputs come from the runner, `with: args: version` must not
	// pass for a verdict; readValues refuses it.
	if len(c.Args) > 0 && !inputsFromEnvironment(c.Environ) {
		switch {
		case c.Args[0] == "help", asksForHelp(c.Args[0]):
			return c.help()
		case c.Args[0] == "suggest":
			if slices.ContainsFunc(c.Args[1:], asksForHelp) {
				return c.help()
			}
			return c.suggest(ctx, c.Args[1:])
		case slices.Contains([]string{"version", "-version", "--version"}, c.Args[0]):
			fmt.Fprintln(c.Stdout, "flux-verify-gate "+c.Version)
			return statusVerified
		}
	}
	return c.gate(ctx)
}

func asksForHelp(arg string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, arg) }

// gate judges one source and says what it found. Whatever happens while it
// judges, it says something: a panic is a fault of the gate, and undecided.
func (c Command) gate(ctx context.Context) int {
	// What a run that is killed leaves behind; the runner takes the last value.
	if err := c.inActions(report.AppendOutputs(c.getenv, report.NothingKnown())); err != nil {
		fmt.Fprintln(c.Stderr, report.Line(report.Failed, "the outputs cannot be written: "+err.Error()))
		return statusUndecided
	}
	v, err := readValues(Inputs(), c.Environ, c.Args)
	if err != nil {
		return c.tell(v, gate.CouldNotLook(gate.Evidence{Failures: failuresOf(err)}, c.Now()))
	}
	return c.tell(v, c.judge(ctx, v))
}

func (c Command) judge(ctx context.Context, v values) (r gate.Report) {
	started := c.Now()
	e := gate.Evidence{Namespace: v[inNamespace], Name: v[inName]}
	defer func() {
		if p := recover(); p != nil {
			e.Failures = append(e.Failures, gate.Failure{
				Code: gate.Internal, Title: "the gate broke while it judged", Expected: "no panic", Found: fmt.Sprint(p),
				Remedy: "report this: it is a fault of the gate",
			})
			r = gate.CouldNotLook(e, c.Now())
		}
		r.Timings.StartedAt = started
		r.Timings.Waited = gate.Seconds(c.Now().Sub(started).Seconds())
	}()
	policy, err := policyOf(v)
	if err != nil {
		e.Failures = failuresOf(err)
		return gate.CouldNotLook(e, c.Now())
	}
	if v[inObject] != "" {
		return c.judgeRecording(ctx, v, policy, e)
	}
	return c.judgeLive(ctx, v, policy, e)
}

// decide is gate.Decide for a run that may be cancelled: what was seen until then
// is still judged, and the run is never verified.
func decide(ctx context.Context, p gate.Policy, e gate.Evidence, at time.Time) gate.Report {
	r := gate.Decide(ctx, p, e, at)
	if ctx.Err() == nil {
		return r
	}
	e.Failures = append(slices.Clone(e.Failures), gate.Failure{
		Code: gate.Cancelled, Title: "the run was cancelled before it was done", Found: ctx.Err().Error(),
		Remedy: "run it again; if it was timeout-minutes, set that above the input timeout",
	})
	return gate.Decide(context.WithoutCancel(ctx), p, e, at)
}

// failuresOf gives one failure for each fault that an error joins.
func failuresOf(err error) []gate.Failure {
	var failures []gate.Failure
	for _, fault := range parts(err) {
		failures = append(failures, failureOf(fault))
	}
	return failures
}

func failureOf(err error) gate.Failure {
	var cannotLook *cluster.Error
	if errors.As(err, &cannotLook) {
		return cannotLook.Failure
	}
	var input *gate.InputError
	if errors.As(err, &input) {
		failure := gate.Failure{Code: gate.BadInput, Title: "the input " + input.Input + " cannot be used",
			Expected: input.Expected, Found: input.Found, Remedy: input.Remedy}
		switch {
		case input.Err == nil:
		case input.Expected == "":
			// The cause says itself what was expected and what was found.
			failure.Title += ": " + input.Err.Error()
		default:
			failure.Found = strings.TrimPrefix(input.Found+": "+input.Err.Error(), ": ")
		}
		return failure
	}
	return gate.Failure{Code: gate.Internal, Title: "the gate could not go on", Found: err.Error(), Remedy: "report this: it is a fault of the gate"}
}

// getenv looks a variable up in the environment that was passed in.
func (c Command) getenv(name string) string {
	value := ""
	for _, variable := range c.Environ {
		if v, ok := strings.CutPrefix(variable, name+"="); ok {
			value = v
		}
	}
	return value
}

// style is how this run renders its report.
func (c Command) style(reportPath string) report.Style {
	return report.Style{DocsURL: report.DocsURL(c.getenv), ReportPath: reportPath}
}

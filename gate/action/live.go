package action

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/cluster"
	"flux-verify-gate/gate/report"
)

const (
	// progressEvery is the longest silence of the log while the gate waits.
	progressEvery = 15 * time.Second
	// relookEvery is the pause between two looks for a signature that may still
	// arrive.
	relookEvery = 10 * time.Second
)

// live is one run against a cluster: it reads, judges and waits until the rule
// of package gate says that the verdict is final, or the deadline has come.
type live struct {
	Command
	values   values
	policy   gate.Policy
	client   *cluster.Client
	registry *registry

	started  time.Time
	deadline time.Time
	evidence gate.Evidence
	history  gate.History
	report   gate.Report
	// final is a failure after which there is nothing more to read.
	final bool
	// lookedAt and lookedIn are when and in which repository signatures were
	// looked for last.
	lookedAt time.Time
	lookedIn string
	// explainedIn is the repository that evidence.Refused is of.
	explainedIn string
	// requestedOf is the object that a reconciliation was requested of, and
	// handledBefore the request that had been handled then.
	requestedOf   types.UID
	handledBefore string

	// canary is what is asked for beside the source, and canaryEvents tells its
	// changes while the run waits.
	canary       gate.ObjectName
	canaryEvents <-chan cluster.Event
	// canaryFinal is a failure after which there is nothing more to read of it.
	canaryFinal bool
	// canaryDenied says that a denial was explained.
	canaryDenied bool

	said   string
	saidAt time.Time
}

func (c Command) judgeLive(ctx context.Context, v values, policy gate.Policy, e gate.Evidence) gate.Report {
	client, err := cluster.Connect(clusterOptions(v, c))
	if err != nil {
		e.Failures = failuresOf(err)
		return gate.CouldNotLook(e, c.Now())
	}
	e.Live, e.Cluster = true, gate.Cluster{Server: client.Server, Context: client.Context}
	e.Timeout = v.duration(inTimeout)
	l := &live{Command: c, values: v, policy: policy, client: client, started: c.Now(), evidence: e}
	l.deadline = l.started.Add(e.Timeout)
	l.canary = policy.Requirements().Canary
	client.CanaryIs(l.canary.Namespace, l.canary.Name)
	l.registry, l.evidence.PrivateRoot, err = c.registryOf(v, policy)
	if err != nil {
		l.evidence.Failures = failuresOf(err)
		return gate.CouldNotLook(l.evidence, c.Now())
	}
	l.say(report.Doing, fmt.Sprintf("reading OCIRepository %s/%s from %s (context %s)", e.Namespace, e.Name, client.Server, client.Context))
	return l.run(ctx)
}

// run is the waiting loop. Everything that it waits for ends at the deadline.
func (l *live) run(ctx context.Context) gate.Report {
	waiting, cancel := context.WithTimeout(ctx, l.evidence.Timeout)
	defer cancel()
	if l.values.bool(inReconcile) {
		l.requestReconcile(ctx, waiting)
	} else {
		l.observe(ctx, l.read(ctx))
	}
	var events <-chan cluster.Event
	for {
		if l.requestLost() && waiting.Err() == nil {
			l.requestReconcile(ctx, waiting)
		}
		l.meetCanary(ctx)
		settled, next := l.history.Settled(l.policy, l.report, l.Now())
		switch {
		case ctx.Err() != nil:
			return l.end(ctx)
		case !settled && l.report.AwaitsSignatures():
			l.look(ctx)
			continue
		case settled || l.final || waiting.Err() != nil:
			if l.conclude(ctx, waiting.Err() == nil && !l.final) {
				return l.end(ctx)
			}
			continue
		}
		if events == nil {
			events = l.client.Watch(waiting, l.evidence.Namespace, l.evidence.Name, l.seen())
		}
		l.watchCanary(waiting)
		l.progress()
		l.wait(ctx, waiting, events, next)
	}
}

// wait returns at the next thing that may change the verdict.
func (l *live) wait(ctx, waiting context.Context, events <-chan cluster.Event, next time.Time) {
	pause := progressEvery - l.Now().Sub(l.saidAt)
	if l.mayStillBeSigned() {
		next = earlier(next, l.lookedAt.Add(relookEvery))
	}
	if !next.IsZero() {
		pause = min(pause, next.Sub(l.Now()))
	}
	timer := time.NewTimer(max(pause, 0))
	defer timer.Stop()
	select {
	case <-waiting.Done():
	case event, open := <-events:
		if !open {
			// Only a final failure closes it before the deadline.
			l.final = waiting.Err() == nil
			return
		}
		l.take(ctx, event)
	case event, open := <-l.canaryEvents:
		l.takeCanary(ctx, waiting, event, open)
	case <-timer.C:
		if l.mayStillBeSigned() && !l.Now().Before(l.lookedAt.Add(relookEvery)) {
			l.look(ctx)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// mayStillBeSigned says that the registry was asked, and that asking again may
// find more.
func (l *live) mayStillBeSigned() bool {
	s := l.evidence.Signatures
	return s != nil && !l.policy.Requirements().SignedBy(s.Found)
}

// take adds what the watch has seen.
func (l *live) take(ctx context.Context, event cluster.Event) {
	switch {
	case event.Seen != nil:
		l.observe(ctx, reading{seen: event.Seen})
	case event.Failure != nil:
		if l.history.Reads == 0 || !event.Failure.Failure.Transient {
			l.observe(ctx, reading{failure: event.Failure})
			return
		}
		// From the first completed read on, the last one decides; trouble in
		// between is only told.
		l.say(report.Waits, event.Failure.Error())
	case event.Note != nil:
		l.say(report.Noted, event.Note.Error())
		l.showRole(event.Note)
	}
}

// reading is one try to read the object: what was seen, or why not.
type reading struct {
	seen    *cluster.Observation
	failure *cluster.Error
}

func (l *live) read(ctx context.Context) reading {
	seen, err := l.client.Read(ctx, l.evidence.Namespace, l.evidence.Name)
	if err != nil {
		return failed(err)
	}
	return reading{seen: &seen}
}

// readAgain reads with patience for one passing failure: a single 429 or 5xx is
// no answer yet.
func (l *live) readAgain(ctx context.Context) reading {
	ctx, cancel := context.WithTimeout(ctx, lookAtLeast)
	defer cancel()
	seen, err := l.client.ReadRetrying(ctx, l.evidence.Namespace, l.evidence.Name, nil)
	if err != nil {
		return failed(err)
	}
	return reading{seen: &seen}
}

func failed(err error) reading {
	var failure *cluster.Error
	if !errors.As(err, &failure) {
		failure = &cluster.Error{Err: err, Failure: failuresOf(err)[0]}
	}
	return reading{failure: failure}
}

// observe judges a reading.
func (l *live) observe(ctx context.Context, r reading) {
	if r.seen != nil {
		l.setSeen(*r.seen)
		l.evidence.Failures = nil
	} else {
		l.evidence.Failures = []gate.Failure{r.failure.Failure}
		if l.final = !r.failure.Failure.Transient; l.final {
			l.showRole(r.failure)
		}
	}
	l.evidence.EarlierFailure = l.history.LastFailure
	l.report = decide(ctx, l.policy, l.evidence, l.Now())
	l.history = l.history.Observe(l.evidence, l.report, l.Now())
}

// setSeen makes an observation the one that everything is judged by.
func (l *live) setSeen(o cluster.Observation) {
	l.evidence.Missing, l.evidence.Source = o.Missing, nil
	if !o.Missing {
		l.evidence.Source = &o.Source
		l.followRequest(&o.Source)
	}
	// A look holds for one digest in one repository.
	if o.Missing || !l.evidence.Signatures.IsOf(&o.Source) || l.lookedIn != o.Source.Object.Spec.URL {
		l.evidence.Signatures = nil
	}
	if o.Missing || l.explainedIn != o.Source.Object.Spec.URL {
		l.evidence.Refused = nil
	}
}

// seen is the last observation, from which a watch goes on; nil before there is
// one.
func (l *live) seen() *cluster.Observation {
	switch {
	case l.evidence.Missing:
		return &cluster.Observation{Missing: true}
	case l.evidence.Source != nil:
		return &cluster.Observation{Source: *l.evidence.Source}
	}
	return nil
}

// look asks the registry for the signatures of what is serving now.
func (l *live) look(ctx context.Context) {
	l.say(report.Doing, "looking for signatures of "+l.report.Source.Reference)
	signatures := l.registry.look(ctx, l.evidence.Source, l.deadline.Sub(l.Now()))
	l.evidence.Signatures, l.lookedAt, l.lookedIn = &signatures, l.Now(), l.evidence.Source.Object.Spec.URL
	l.evidence.PrivateRoot = l.evidence.PrivateRoot || privateRoot(signatures)
	l.report = decide(ctx, l.policy, l.evidence, l.Now())
	l.history = l.history.Note(l.report, l.Now())
}

// explain asks the registry for the signatures of what the controller refused and
// does not serve, so that the report says who did sign that.
func (l *live) explain(ctx context.Context) {
	refused := l.registry.explain(ctx, l.policy, l.evidence)
	if refused == nil {
		return
	}
	l.evidence.Refused, l.explainedIn = refused, l.evidence.Source.Object.Spec.URL
	l.report = decide(ctx, l.policy, l.evidence, l.Now())
}

// conclude does what a verdict needs: a look at the signatures, whatever the
// verdict, so that the report says who did sign (unless the input url rules the
// registry out); and one more read, on which the verdict is given, with one of
// the canary behind it. It says whether the run is over; if the object has
// changed and there is time, it is not.
func (l *live) conclude(ctx context.Context, timeLeft bool) bool {
	if l.history.Reads == 0 || l.final {
		return true
	}
	if l.evidence.Signatures == nil && l.registry.asks(l.evidence.Source, l.report.Source.Digest) {
		l.look(ctx)
	}
	l.explain(ctx)
	before, missing := l.evidence.Source, l.evidence.Missing
	again := l.readAgain(ctx)
	if again.failure != nil {
		l.addFailure(ctx, gate.Failure{
			Code: gate.NoAnswer, Title: "the source could not be read once more before the verdict",
			Expected: "the same object", Found: again.failure.Error(), Remedy: "run it again",
		})
		return true
	}
	l.observe(ctx, again)
	if missing != l.evidence.Missing || !gate.SameSubject(before, l.evidence.Source) {
		if timeLeft {
			return false
		}
		l.addFailure(ctx, gate.Failure{
			Code: gate.NoAnswer, Title: "the source changed just before the verdict, and no time was left to start over",
			Expected: "the same object, generation and artifact revision", Found: "another one", Remedy: "run it again, with a longer timeout",
		})
		return true
	}
	l.readCanaryAgain(ctx)
	settled, _ := l.history.Settled(l.policy, l.report, l.Now())
	return settled || !timeLeft
}

func (l *live) addFailure(ctx context.Context, f gate.Failure) {
	l.evidence.Failures = append(l.evidence.Failures, f)
	l.report = decide(ctx, l.policy, l.evidence, l.Now())
}

// end gives the report of the run.
func (l *live) end(ctx context.Context) gate.Report {
	r := l.report
	if ctx.Err() != nil || r.SchemaVersion == 0 {
		r = decide(ctx, l.policy, l.evidence, l.Now())
	}
	if ctx.Err() != nil {
		r = l.history.Stopped(l.policy, r, l.Now())
	}
	r.Timings.Reads = l.history.Reads
	return r
}

// progress says what is waited for, when that changes and every progressEvery.
func (l *live) progress() {
	text := l.awaited()
	now := l.Now()
	if text == l.said && now.Sub(l.saidAt) < progressEvery {
		return
	}
	l.said, l.saidAt = text, now
	fmt.Fprintln(l.Stdout, report.Progress(report.Waiting{While: text, Since: l.started, Now: now, Until: l.deadline}))
}

// awaited is the finding that would explain the verdict now.
func (l *live) awaited() string {
	for _, f := range l.report.Findings {
		if f.Wait == gate.WaitLook {
			continue // nobody was asked yet: that is not what is wrong
		}
		if f.Code == l.report.Reason && f.Outcome != gate.Pass && f.Outcome != gate.Note {
			return string(f.Code) + ": " + f.Title
		}
	}
	return "the source"
}

func (l *live) say(symbol report.Symbol, text string) {
	fmt.Fprintln(l.Stdout, report.Line(symbol, text))
}

// showRole prints the Role that would allow what was denied, without the prefix
// of other lines, so that it can be copied.
func (l *live) showRole(e *cluster.Error) {
	if e.Role == "" {
		return
	}
	l.say(report.Doing, "whoever administers the cluster can allow it with this:")
	for line := range strings.Lines(e.Role) {
		fmt.Fprintln(l.Stdout, report.Escape(strings.TrimRight(line, "\n")))
	}
}

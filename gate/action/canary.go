package action

import (
	"context"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/cluster"
	"flux-verify-gate/gate/report"
)

// seeksCanary says that a canary is asked for and may still be read. Without a
// source there is nothing that it could be the control of.
func (l *live) seeksCanary() bool {
	return l.canary != gate.ObjectName{} && l.evidence.Source != nil && !l.final && !l.canaryFinal
}

// meetCanary reads the canary for the first time, once the source was read.
func (l *live) meetCanary(ctx context.Context) {
	if !l.seeksCanary() || l.evidence.Canary != nil || ctx.Err() != nil {
		return
	}
	l.say(report.Doing, "reading the canary, OCIRepository "+l.canary.String())
	seen, err := l.client.Read(ctx, l.canary.Namespace, l.canary.Name)
	if err != nil {
		l.canaryFailed(ctx, failed(err).failure)
		return
	}
	l.canarySeen(ctx, seen)
}

// watchCanary follows the canary while the run waits: in steady failure its
// conditions come and go, so one read may show nothing.
func (l *live) watchCanary(waiting context.Context) {
	if !l.seeksCanary() || l.canaryEvents != nil {
		return
	}
	l.canaryEvents = l.client.Watch(waiting, l.canary.Namespace, l.canary.Name, seenOf(l.evidence.Canary))
}

// seenOf is what a read of the canary saw; nil if there was none.
func seenOf(c *gate.Canary) *cluster.Observation {
	switch {
	case c == nil || c.Failure != nil:
		return nil
	case c.Missing:
		return &cluster.Observation{Missing: true}
	}
	return &cluster.Observation{Source: *c.Source}
}

// takeCanary adds what the watch of the canary has seen. From the first
// completed read on the last one decides; passing trouble in between is only
// told, as with the source.
func (l *live) takeCanary(ctx, waiting context.Context, event cluster.Event, open bool) {
	switch {
	case !open:
		// Only a final failure closes it before the deadline. A closed channel
		// would be ready for ever.
		l.canaryEvents, l.canaryFinal = nil, l.canaryFinal || waiting.Err() == nil
	case event.Seen != nil:
		l.canarySeen(ctx, *event.Seen)
	case event.Failure != nil:
		if event.Failure.Failure.Transient && seenOf(l.evidence.Canary) != nil {
			l.say(report.Waits, "the canary: "+event.Failure.Error())
			return
		}
		l.canaryFailed(ctx, event.Failure)
	case event.Note != nil:
		l.say(report.Noted, "the canary: "+event.Note.Error())
		l.showRole(event.Note)
	}
}

// readCanaryAgain reads the canary behind the last read of the source, so that
// the verdict does not rest on an older word about it than about the source.
func (l *live) readCanaryAgain(ctx context.Context) {
	if !l.seeksCanary() {
		return
	}
	patient, cancel := context.WithTimeout(ctx, lookAtLeast)
	defer cancel()
	seen, err := l.client.ReadRetrying(patient, l.canary.Namespace, l.canary.Name, nil)
	if err != nil {
		l.canaryFailed(ctx, failed(err).failure)
		return
	}
	l.canarySeen(ctx, seen)
}

func (l *live) canarySeen(ctx context.Context, o cluster.Observation) {
	l.evidence.Canary = &gate.Canary{Missing: o.Missing}
	if !o.Missing {
		l.evidence.Canary.Source = &o.Source
	}
	l.judgeCanary(ctx)
}

// canaryFailed keeps why the canary could not be read. A denial is explained
// once with the Role that would allow it, even where it may pass: the deadline
// may come before it is known to stay.
func (l *live) canaryFailed(ctx context.Context, e *cluster.Error) {
	l.evidence.Canary = &gate.Canary{Failure: &e.Failure}
	l.canaryFinal = l.canaryFinal || !e.Failure.Transient
	l.judgeCanary(ctx)
	if e.Role != "" && !l.canaryDenied {
		l.canaryDenied = true
		l.say(report.Waits, "the canary: "+e.Error())
		l.showRole(e)
	}
}

// judgeCanary judges anew with the same read of the source.
func (l *live) judgeCanary(ctx context.Context) {
	l.report = decide(ctx, l.policy, l.evidence, l.Now())
	l.history = l.history.Note(l.report, l.Now())
}

package action

import (
	"context"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
)

// requestReconcile asks the controller for a run now. It tries until it is
// answered or there is no more waiting: a run that was told to ask and could not
// is not one that need not. It asks once even where there is no time to wait.
// The answer is the object, and counts as a read of it.
func (l *live) requestReconcile(ctx, waiting context.Context) {
	for pause := time.Second; ; pause = min(2*pause, relookEvery) {
		token, seen, err := l.client.RequestReconcile(ctx, l.evidence.Namespace, l.evidence.Name)
		if err == nil {
			l.evidence.ReconcileToken, l.requestedOf = token, seen.Source.Object.UID
			l.handledBefore = seen.Source.Object.Status.GetLastHandledReconcileRequest()
			if token != "" {
				l.say(report.Doing, "requested a reconciliation ("+token+")")
			}
			l.observe(ctx, reading{seen: &seen})
			return
		}
		l.observe(ctx, failed(err))
		if l.final {
			return
		}
		l.progress()
		select {
		case <-waiting.Done():
			l.final = true
			return
		case <-time.After(pause):
		}
	}
}

// followRequest keeps the request to what the controller can still answer. Every
// run on an object that was made since began after the request, and so did one
// that handles a later request; nobody will ever answer ours then.
func (l *live) followRequest(s *gate.Source) {
	token := l.evidence.ReconcileToken
	if token == "" || s.Object.Status.GetLastHandledReconcileRequest() == token {
		return
	}
	switch {
	case s.Object.UID != l.requestedOf:
		l.evidence.ReconcileToken = ""
	case !l.forgotten(s):
		l.evidence.ReconcileToken = s.Object.Annotations[meta.ReconcileRequestAnnotation]
	}
}

// forgotten says that the object carries no request that came since ours: none,
// or one that had been handled before.
func (l *live) forgotten(s *gate.Source) bool {
	request := s.Object.Annotations[meta.ReconcileRequestAnnotation]
	return request == "" || request == l.handledBefore
}

// requestLost says that somebody removed the request, for example by replacing
// the whole object, before the controller has handled it.
func (l *live) requestLost() bool {
	s, token := l.evidence.Source, l.evidence.ReconcileToken
	return token != "" && s != nil && !l.final && s.Object.Status.GetLastHandledReconcileRequest() != token && l.forgotten(s)
}

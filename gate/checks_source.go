package gate

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

// sourceChecks is section A: is this the object, and is its controller done
// with it?
var sourceChecks = []check{
	{[]Code{SourceURL}, checkURL},
	{[]Code{SourceSuspended}, checkSuspended},
	{[]Code{SourceDeleting}, checkDeleting},
	{[]Code{SourceUnobserved}, checkObserved},
	{[]Code{SourceReconciling}, checkReconciling},
	{[]Code{SourceStalled}, checkStalled},
	{[]Code{SourceInsecure}, checkInsecure},
	{[]Code{TimeoutShort}, checkTimeout},
}

// sourceMissing is the one check that is asked where there is no source. Only
// an answered read that says so counts as missing.
func sourceMissing(e Evidence) Finding {
	object := e.Namespace + "/" + e.Name
	if !e.Missing {
		return Finding{Code: SourceMissing, Outcome: Pass, Title: "the source " + object + " exists"}
	}
	return Finding{
		Code: SourceMissing, Outcome: Fail, Wait: WaitMinute,
		Title:    "there is no OCIRepository " + object,
		Expected: "an OCIRepository named " + object,
		Found:    "the API server answers that it does not exist",
		Remedy:   "correct namespace and name, or deploy the source; under flux-operator its name is spec.sync.name or the namespace",
	}
}

// checkURL: spec.url is exactly the expected one. What points elsewhere serves
// something else, however well it is signed.
func checkURL(f *facts) []Finding {
	url := f.source.Object.Spec.URL
	switch {
	case f.want.URL == "":
		return nil
	case url == f.want.URL:
		return pass(SourceURL, "the source points at "+url)
	}
	return one(Finding{
		Code: SourceURL, Outcome: Fail,
		Title: "the source points at another repository", Expected: f.want.URL, Found: orNothing(url),
		Remedy: "correct spec.url of the source, or the input url",
	})
}

// checkSuspended: a suspended source is not reconciled. Suspending bumps
// status.observedGeneration and Ready's without verifying anything, so nothing
// else in the status would show it.
func checkSuspended(f *facts) []Finding {
	if !f.source.Object.Spec.Suspend {
		return pass(SourceSuspended, "the source is not suspended")
	}
	return one(Finding{
		Code: SourceSuspended, Outcome: Fail,
		Title: "the source is suspended", Expected: "spec.suspend false", Found: "spec.suspend true",
		Remedy: "resume it (flux resume source oci " + f.source.Object.Name + "); a suspended source verifies nothing and still looks Ready",
	})
}

// checkDeleting: an object with a deletion timestamp is on its way out.
func checkDeleting(f *facts) []Finding {
	at := f.source.Object.DeletionTimestamp
	if at == nil {
		return pass(SourceDeleting, "the source is not being deleted")
	}
	return one(Finding{
		Code: SourceDeleting, Outcome: Fail,
		Title: "the source is being deleted", Expected: "no metadata.deletionTimestamp", Found: "deleted at " + at.UTC().Format(time.RFC3339),
		Remedy: "find out who deleted it (its finalizers, the inventory of its Kustomization or FluxInstance), then deploy it again",
	})
}

// checkObserved: the controller has finished a run on this generation, and has
// handled the reconciliation that this run asked for, if it did. The API server
// counts generations from 1; an object that has none compares equal to
// conditions that have none, and nothing would be known.
func checkObserved(f *facts) []Finding {
	generation, observed := f.source.Object.Generation, f.source.Object.Status.ObservedGeneration
	token, handled := f.evidence.ReconcileToken, f.source.Object.Status.GetLastHandledReconcileRequest()
	switch {
	case generation < 1:
		return one(Finding{
			Code: SourceUnobserved, Outcome: Fail, Wait: WaitDeadline,
			Title:    "the object has no generation, so nothing shows that the controller has seen it",
			Expected: "metadata.generation of 1 or more", Found: fmt.Sprintf("metadata.generation %d", generation),
			Remedy: "read the object from the API server, whole: a recording that was cut down cannot be judged",
		})
	case observed == generation && token != "" && handled != token:
		return one(Finding{
			Code: SourceUnobserved, Outcome: Fail, Wait: WaitDeadline,
			Title:    "the controller has not handled the reconciliation that was requested",
			Expected: "status.lastHandledReconcileAt " + token, Found: orNothing(handled),
			Remedy: "see whether source-controller runs, and raise timeout",
		})
	case observed == generation:
		return pass(SourceUnobserved, fmt.Sprintf("the controller has observed generation %d", generation))
	}
	return one(Finding{
		Code: SourceUnobserved, Outcome: Fail, Wait: WaitDeadline,
		Title:    "the controller has not finished a run on the newest generation",
		Expected: fmt.Sprintf("status.observedGeneration %d", generation), Found: fmt.Sprintf("status.observedGeneration %d", observed),
		Remedy: "see whether source-controller runs, and what the Ready condition says",
	})
}

// checkReconciling: Reconciling that is not False means that what is served may be about to
// change.
func checkReconciling(f *facts) []Finding {
	c := f.source.anyButFalse(meta.ReconcilingCondition)
	if c == nil {
		return pass(SourceReconciling, "no reconciliation is under way")
	}
	return one(Finding{
		Code: SourceReconciling, Outcome: Fail, Wait: WaitDeadline,
		Title: "the controller is still reconciling the source", Expected: "no Reconciling condition", Found: describeCondition(c),
		Remedy: "wait (raise timeout), or repair what the message names",
	})
}

// checkStalled: Stalled that is not False is the controller's word that it will not try
// again by itself.
func checkStalled(f *facts) []Finding {
	c := f.source.anyButFalse(meta.StalledCondition)
	if c == nil {
		return pass(SourceStalled, "the source is not stalled")
	}
	return one(Finding{
		Code: SourceStalled, Outcome: Fail,
		Title: "the source is stalled", Expected: "no Stalled condition", Found: describeCondition(c),
		Remedy: "repair the spec as the message says; the controller does not try again before the object changes",
	})
}

// checkInsecure: plain HTTP to the registry is no hole by itself, because the
// signature is bound to the digest; it is worth knowing.
func checkInsecure(f *facts) []Finding {
	if !f.source.Object.Spec.Insecure {
		return nil
	}
	return note(SourceInsecure, "the source may fetch over plain HTTP (spec.insecure)", "use a registry with TLS")
}

// retryCeiling is the longest pause between two tries after a failure
// (source-controller's --max-retry-delay, default in v1.9).
const retryCeiling = 15 * time.Minute

// checkTimeout: a source that is polled less often than the gate waits cannot
// be seen to change. It is a note, and only where there is something to wait
// for.
func checkTimeout(f *facts) []Finding {
	if !f.evidence.Live || f.evidence.Timeout <= 0 || f.evidence.ReconcileToken != "" {
		return nil
	}
	pause, why := f.source.Object.Spec.Interval.Duration, "polls every"
	if f.source.anyWith(meta.ReadyCondition, metav1.ConditionFalse) != nil && pause < retryCeiling {
		pause, why = retryCeiling, "has failed and backs off up to"
	}
	if pause <= f.evidence.Timeout {
		return nil
	}
	return note(TimeoutShort,
		fmt.Sprintf("the source %s %s, and the gate waits %s", why, pause, f.evidence.Timeout),
		"set reconcile: true, or raise timeout")
}

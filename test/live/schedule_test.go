package live

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
	gatecluster "flux-verify-gate/gate/cluster"
	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/testcontroller"
)

var (
	schedules = flag.Int("schedules", 50, "how many random schedules to run")
	seed      = flag.Uint64("seed", 0, "the seed of the first schedule; 0 means a new one")
)

// abreast is how many schedules run at once: each has a gate, a controller and
// a writer.
const abreast = 8

// TestSchedules lets the test controller and somebody who edits, pushes, signs,
// suspends and breaks things run against the gate, by seeds, at random moments.
// Whatever comes of it, the gate's verdict must be the pure decision on the
// state that its report names.
func TestSchedules(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = rand.Uint64N(1 << 32)
	}
	t.Logf("-seed %d", first)
	slots := make(chan struct{}, abreast)
	verdicts := make(chan string, *schedules)
	t.Run("schedule", func(t *testing.T) {
		for n := range uint64(*schedules) {
			t.Run(fmt.Sprint(first+n), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				verdicts <- playSchedule(t, first+n)
			})
		}
	})
	close(verdicts)
	counts := map[string]int{}
	for v := range verdicts {
		counts[v]++
	}
	t.Logf("the verdicts: %v", counts)
	if len(counts) < 3 && *schedules >= 50 {
		t.Errorf("all schedules end alike, so they show little: %v", counts)
	}
}

func playSchedule(t *testing.T, seed uint64) string {
	p := steadyPlace(t)
	random := rand.New(rand.NewPCG(seed, 7))
	registry := testcontroller.NewRegistry()
	controller, err := testcontroller.New(testcontroller.Options{
		Config: p.cluster.RESTConfig(p.cluster.Admin()), Namespace: p.namespace, Name: object, Registry: registry,
		Seed: seed, MaxDelay: 150 * time.Millisecond,
	})
	check(t, err)
	scene := &testcontroller.Scene{
		Client: p.cluster.Dynamic(), Manager: "flux-operator", Namespace: p.namespace, Name: object, Tag: "v1",
		Registry: registry, Controller: controller,
	}
	history, err := p.cluster.Record(t.Context(), p.resource, p.namespace, object)
	check(t, err)

	verified := random.IntN(3) > 0
	steps := testcontroller.RandomSchedule(seed, 3+random.IntN(6), 700*time.Millisecond, verified)
	// Deletion and suspension are final at once: in all schedules, they would be
	// what most end with.
	if random.IntN(3) > 0 {
		steps = slices.DeleteFunc(steps, func(s testcontroller.Step) bool { return s.Event == testcontroller.Recreate })
	}
	if random.IntN(2) == 0 {
		steps = slices.DeleteFunc(steps, func(s testcontroller.Step) bool {
			return s.Event == testcontroller.Suspend || s.Event == testcontroller.Resume
		})
	}
	// A third ends well, as most deployments do.
	if random.IntN(3) == 0 {
		for _, e := range []testcontroller.Event{
			testcontroller.Repair, testcontroller.Resume, testcontroller.RequireVerification, testcontroller.PushSigned,
		} {
			steps = append(steps, testcontroller.Step{After: 200 * time.Millisecond, Event: e})
		}
	}
	// Half of the runs wait for a digest that the schedule pushes; its name says
	// at which step.
	digest, signed := gate.DigestAny, map[string]bool{}
	pushed := testcontroller.Digest(fmt.Sprintf("%s/%s 0", p.namespace, object))
	for n, s := range steps {
		if s.Event == testcontroller.PushSigned || s.Event == testcontroller.PushUnsigned {
			pushed = testcontroller.Digest(fmt.Sprintf("%s/%s %d", p.namespace, object, n+1))
		}
		if s.Event == testcontroller.PushSigned || s.Event == testcontroller.Sign {
			signed[pushed] = true
		}
	}
	if random.IntN(2) == 0 {
		digest = pushed
	}
	t.Logf("verify at first: %t, digest %s, steps %v", verified, digest, steps)

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 2)
	check(t, scene.Create(ctx, verified))
	go func() { done <- controller.Run(ctx) }()
	go func() { done <- scene.Play(ctx, steps) }()
	g := p.gate(map[string]string{"digest": digest, "timeout": fmt.Sprintf("%dms", 2000+random.IntN(6000))})
	r := g.End()
	stop()
	for range 2 {
		if err := <-done; err != nil && !strings.Contains(err.Error(), "context canceled") {
			t.Error(err)
		}
	}

	if r.Report.Verdict == gate.Verified && !signed[r.Outputs["digest"]] {
		t.Errorf("verified %s, which nobody signed", r.Outputs["digest"])
	}
	judgedAgain(t, p, r, digest, history)
	return r.Outputs["verdict"] + " " + r.Outputs["reason"]
}

// judgedAgain decides on the state that the report names, as it was recorded
// beside the gate, and compares.
func judgedAgain(t *testing.T, p *place, r actiontest.Result, digest string, history *cluster.History) {
	t.Helper()
	evidence := gate.Evidence{Namespace: p.namespace, Name: object, Live: true, Timeout: time.Minute}
	version := r.Report.Source.ResourceVersion
	if version == "" {
		// The gate says that there was none; there must have been a moment so.
		evidence.Missing = true
		find(t, history, func(v cluster.Version) bool { return v.Event == watch.Deleted })
	} else {
		source, err := gatecluster.Decode(find(t, history, func(v cluster.Version) bool {
			return v.Event != watch.Deleted && v.Object.GetResourceVersion() == version
		}))
		check(t, err)
		evidence.Source = &source
	}
	policy, err := gate.NewPolicy(gate.Requirements{
		Keys: &gate.Keys{Secret: "cosign"}, Digest: digest, Signature: gate.SignatureSkip,
	})
	check(t, err)
	again := gate.Decide(t.Context(), policy, evidence, r.Report.JudgedAt)
	got, wanted := outcomes(r.Report), outcomes(again)
	if moved := slices.ContainsFunc(r.Report.Findings, func(f gate.Finding) bool { return f.Code == gate.NoAnswer }); moved {
		// It changed at the last moment, which only the run knows; that never
		// makes a verdict better.
		if r.Report.Verdict == gate.Verified {
			t.Errorf("verified without an answer")
		}
		if again.Verdict == gate.Rejected && r.Report.Verdict != gate.Rejected {
			t.Errorf("got %s, want rejected for %s", r.Report.Verdict, again.Reason)
		}
		return
	}
	if r.Report.Verdict != again.Verdict || r.Report.Reason != again.Reason || got != wanted {
		t.Errorf("got %s, %s, want %s, %s\ngot  %s\nwant %s", r.Report.Verdict, r.Report.Reason, again.Verdict, again.Reason, got, wanted)
	}
}

// outcomes are the findings in short, without the notes on the time-out, which
// depend on how long it was.
func outcomes(r gate.Report) string {
	var all []string
	for _, f := range r.Findings {
		if f.Code != gate.TimeoutShort {
			all = append(all, string(f.Code)+"="+string(f.Outcome))
		}
	}
	return strings.Join(all, " ")
}

// find gives the recorded state that a report speaks of; the recording may lag
// behind the gate.
func find(t *testing.T, history *cluster.History, is func(cluster.Version) bool) *unstructured.Unstructured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	v, err := history.Wait(ctx, is)
	if err != nil {
		t.Fatalf("the report names a state that was never there: %v", err)
	}
	return v.Object
}

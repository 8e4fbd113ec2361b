package testcontroller_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/clustertest"
	"flux-verify-gate/test/stack/crd"
	"flux-verify-gate/test/stack/testcontroller"
)

var shared clustertest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// fixture is a scene in a new namespace with everything that was stored of it.
type fixture struct {
	*testcontroller.Scene
	history *cluster.History
}

func newFixture(t *testing.T, seed uint64, delay time.Duration) *fixture {
	t.Helper()
	c := shared.Get(t)
	definition, err := crd.Flux29().OCIRepository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(t.Context(), "flux", strings.NewReader(string(definition))); err != nil {
		t.Fatal(err)
	}
	namespace, err := c.Namespace(t.Context(), "scene")
	if err != nil {
		t.Fatal(err)
	}
	registry := testcontroller.NewRegistry()
	controller, err := testcontroller.New(testcontroller.Options{
		Config: c.RESTConfig(c.Admin()), Namespace: namespace, Name: "app", Registry: registry,
		Seed: seed, MaxDelay: delay, MinRetry: 10 * time.Millisecond, MaxRetry: 50 * time.Millisecond, Poll: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	history, err := c.Record(t.Context(), testcontroller.Resource(), namespace, "app")
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{
		Scene: &testcontroller.Scene{
			Client: c.Dynamic(), Manager: "flux-operator", Namespace: namespace, Name: "app", Tag: "v1",
			Registry: registry, Controller: controller,
		},
		history: history,
	}
}

// do lets somebody act and then the controller reconcile, until it succeeds or
// has failed once.
func (f *fixture) do(t *testing.T, events ...testcontroller.Event) {
	t.Helper()
	for _, event := range events {
		if err := f.Do(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	f.reconcile(t)
}

func (f *fixture) reconcile(t *testing.T) {
	t.Helper()
	for {
		after, err := f.Controller.Reconcile(t.Context())
		if err != nil {
			t.Logf("the controller: %v", err)
			return
		}
		if after > 0 { // zero: once more, it has only set its finalizer
			return
		}
	}
}

// state describes a status in one line: generation and observed generation,
// the digests by their order of appearance, the conditions.
func (f *fixture) state(t *testing.T) string {
	t.Helper()
	object, err := f.Client.Resource(testcontroller.Resource()).Namespace(f.Namespace).Get(t.Context(), f.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return describe(t, object)
}

func source(t *testing.T, object *unstructured.Unstructured) *sourcev1.OCIRepository {
	t.Helper()
	s := &sourcev1.OCIRepository{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func describe(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	s := source(t, object)
	text := fmt.Sprintf("%d/%d", s.Generation, s.Status.ObservedGeneration)
	if s.Status.Artifact == nil {
		text += " no artifact"
	}
	for _, c := range s.Status.Conditions {
		text += fmt.Sprintf(" %s=%s/%s/%d", c.Type, c.Status, c.Reason, c.ObservedGeneration)
		for _, revision := range []string{"stored artifact for digest '", "verified signature of revision "} {
			if s.Status.Artifact != nil && strings.HasPrefix(c.Message, revision) && !strings.Contains(c.Message, s.Status.Artifact.Revision) {
				text += " (of another revision)"
			}
		}
	}
	return text
}

// TestSituations holds the controller's last words against those of the real
// one: shared/stack/README.md of the project's design, "What was seen on the
// live controller (v1.9.3)", and the objects recorded there.
func TestSituations(t *testing.T) {
	t.Parallel()
	const (
		verified  = "Ready=True/Succeeded/%[1]d ArtifactInStorage=True/Succeeded/%[1]d SourceVerified=True/Succeeded/%[1]d"
		unchecked = "Ready=True/Succeeded/%[1]d ArtifactInStorage=True/Succeeded/%[1]d"
	)
	at := func(status, format string, generation int) string {
		return status + " " + fmt.Sprintf(format, generation)
	}
	tests := map[string]struct {
		verified bool
		play     func(*testing.T, *fixture)
		want     string
	}{
		"signed": {
			true, func(t *testing.T, f *fixture) { f.do(t, testcontroller.Sign) }, at("1/1", verified, 1),
		},
		"unsigned": {
			true, func(t *testing.T, f *fixture) { f.do(t) },
			"1/-1 no artifact Reconciling=True/ProgressingWithRetry/1 Ready=False/VerificationError/1 SourceVerified=False/VerificationError/1",
		},
		"verify added to a stored unsigned artifact": {
			false, func(t *testing.T, f *fixture) { f.do(t); f.do(t, testcontroller.RequireVerification) },
			"2/1 Reconciling=True/ProgressingWithRetry/2 Ready=False/VerificationError/2 SourceVerified=False/VerificationError/2 ArtifactInStorage=True/Succeeded/1",
		},
		"verify added to a stored signed artifact": {
			false, func(t *testing.T, f *fixture) {
				f.do(t)
				f.do(t, testcontroller.Sign, testcontroller.RequireVerification)
			}, at("2/2", verified, 2),
		},
		"verify removed": {
			true, func(t *testing.T, f *fixture) { f.do(t, testcontroller.Sign); f.do(t, testcontroller.DropVerification) },
			at("2/2", unchecked, 2),
		},
		"verified, then suspended": {
			true, func(t *testing.T, f *fixture) { f.do(t, testcontroller.Sign); f.do(t, testcontroller.Suspend) },
			"2/2 Ready=True/Succeeded/2 ArtifactInStorage=True/Succeeded/1 SourceVerified=True/Succeeded/1",
		},
		"stored unverified, then verify and suspend": {
			false, func(t *testing.T, f *fixture) {
				f.do(t)
				f.do(t, testcontroller.RequireVerification, testcontroller.Suspend)
			},
			"3/3 Ready=True/Succeeded/3 ArtifactInStorage=True/Succeeded/1",
		},
		"created suspended": {
			true, func(t *testing.T, f *fixture) { f.do(t, testcontroller.Suspend) },
			"2/-1 no artifact",
		},
		"tag moved to an unsigned artifact": {
			true, func(t *testing.T, f *fixture) { f.do(t, testcontroller.Sign); f.do(t, testcontroller.PushUnsigned) },
			"1/1 Reconciling=True/ProgressingWithRetry/1 Ready=False/VerificationError/1 ArtifactInStorage=True/Succeeded/1 ArtifactOutdated=True/NewRevision/1 SourceVerified=False/VerificationError/1",
		},
		"verified, registry down": {
			true, func(t *testing.T, f *fixture) { f.do(t, testcontroller.Sign); f.do(t, testcontroller.Break) },
			"1/1 Reconciling=True/ProgressingWithRetry/1 Ready=False/OCIArtifactPullFailed/1 ArtifactInStorage=True/Succeeded/1 FetchFailed=True/OCIArtifactPullFailed/1 SourceVerified=True/Succeeded/1",
		},
		"verify added while the registry is down": {
			false, func(t *testing.T, f *fixture) {
				f.do(t)
				f.do(t, testcontroller.Break, testcontroller.RequireVerification)
			},
			"2/1 Reconciling=True/ProgressingWithRetry/2 Ready=False/OCIArtifactPullFailed/2 FetchFailed=True/OCIArtifactPullFailed/2 ArtifactInStorage=True/Succeeded/1",
		},
		"storage lost while the registry is down": {
			true, func(t *testing.T, f *fixture) {
				f.do(t, testcontroller.Sign)
				f.do(t, testcontroller.LoseStorage, testcontroller.Break)
			},
			"1/1 no artifact Reconciling=True/ProgressingWithRetry/1 Ready=False/OCIArtifactPullFailed/1 FetchFailed=True/OCIArtifactPullFailed/1 SourceVerified=True/Succeeded/1",
		},
		"storage lost": {
			true, func(t *testing.T, f *fixture) { f.do(t, testcontroller.Sign); f.do(t, testcontroller.LoseStorage) },
			at("1/1", verified, 1),
		},
		"touched": {
			true, func(t *testing.T, f *fixture) { f.do(t, testcontroller.Sign); f.do(t, testcontroller.Edit) },
			at("2/2", verified, 2),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, 1, 0)
			if err := f.Create(t.Context(), test.verified); err != nil {
				t.Fatal(err)
			}
			test.play(t, f)
			if got := f.state(t); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestTwoWrites: conditions first, the artifact afterwards, so that for a
// moment they speak of different revisions.
func TestTwoWrites(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2, time.Millisecond)
	if err := f.Create(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	f.do(t, testcontroller.Sign)
	f.do(t, testcontroller.PushSigned)
	split, err := f.history.Wait(t.Context(), func(v cluster.Version) bool {
		s := source(t, v.Object)
		return s.Status.Artifact != nil && conditions.IsTrue(s, meta.ReadyCondition) &&
			!strings.Contains(conditions.GetMessage(s, sourcev1.ArtifactInStorageCondition), s.Status.Artifact.Revision)
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = "1/1 Ready=True/Succeeded/1 (of another revision) ArtifactInStorage=True/Succeeded/1 (of another revision) SourceVerified=True/Succeeded/1 (of another revision)"
	if got := describe(t, split.Object); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, field := range split.Object.GetManagedFields() {
		if field.Subresource == "status" && field.Manager != testcontroller.FieldManager {
			t.Errorf("the status was written by %s", field.Manager)
		}
	}
}

// TestFlapping: while verification goes on failing, Ready changes between
// Unknown and False.
func TestFlapping(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3, time.Millisecond)
	if err := f.Create(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	run(t, f)
	var last metav1.ConditionStatus
	changes := 0
	if _, err := f.history.Wait(t.Context(), func(v cluster.Version) bool {
		if ready := conditions.Get(source(t, v.Object), meta.ReadyCondition); ready != nil && ready.Status != last {
			last = ready.Status
			changes++
		}
		return changes >= 6
	}); err != nil {
		t.Error(err)
	}
}

// TestStampedLate: a policy that changes while a signature is verified is
// written down as if it had been the one that was asked.
func TestStampedLate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 4, 300*time.Millisecond)
	if err := f.Create(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := f.Do(t.Context(), testcontroller.Sign); err != nil {
		t.Fatal(err)
	}
	run(t, f)
	// The next generation comes when the first is being worked on.
	if _, err := f.history.Wait(t.Context(), func(v cluster.Version) bool {
		return conditions.IsReconciling(source(t, v.Object))
	}); err != nil {
		t.Fatal(err)
	}
	if err := f.Do(t.Context(), testcontroller.Edit); err != nil {
		t.Fatal(err)
	}
	if _, err := f.history.Wait(t.Context(), func(v cluster.Version) bool {
		s := source(t, v.Object)
		return s.Generation == 2 && s.Status.ObservedGeneration < 2 &&
			conditions.GetObservedGeneration(s, sourcev1.SourceVerifiedCondition) == 2
	}); err != nil {
		t.Error(err)
	}
}

// run runs the controller until the test's end.
func run(t *testing.T, f *fixture) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := f.Controller.Run(ctx); err != nil {
			t.Errorf("the controller ended: %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// TestRandomSchedules lets chance play, then brings everything into order, and
// expects the controller to get there.
func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, seed, 20*time.Millisecond)
			verified := seed%2 == 0
			if err := f.Create(t.Context(), verified); err != nil {
				t.Fatal(err)
			}
			run(t, f)
			schedule := testcontroller.RandomSchedule(seed, 12, 100*time.Millisecond, verified)
			for _, e := range []testcontroller.Event{
				testcontroller.Repair, testcontroller.Resume, testcontroller.RequireVerification, testcontroller.PushSigned, testcontroller.Request,
			} {
				schedule = append(schedule, testcontroller.Step{Event: e})
			}
			if err := f.Play(t.Context(), schedule); err != nil {
				t.Fatal(err)
			}
			want := f.Tag + "@" + f.Digest()
			if _, err := f.history.Wait(t.Context(), func(v cluster.Version) bool {
				s := source(t, v.Object)
				return v.Event != watch.Deleted && s.Generation == s.Status.ObservedGeneration &&
					s.GetArtifact().HasRevision(want) && conditions.IsReady(s) &&
					conditions.GetObservedGeneration(s, sourcev1.SourceVerifiedCondition) == s.Generation &&
					conditions.GetMessage(s, sourcev1.SourceVerifiedCondition) == "verified signature of revision "+want
			}); err != nil {
				t.Errorf("%v\nschedule %v\nlast state %s", err, schedule, f.state(t))
			}
		})
	}
}

func TestRandomScheduleIsReproducible(t *testing.T) {
	t.Parallel()
	a := fmt.Sprint(testcontroller.RandomSchedule(7, 50, time.Second, true))
	if b := fmt.Sprint(testcontroller.RandomSchedule(7, 50, time.Second, true)); a != b {
		t.Errorf("two schedules of one seed:\n%s\n%s", a, b)
	}
	if c := fmt.Sprint(testcontroller.RandomSchedule(8, 50, time.Second, true)); a == c {
		t.Error("two seeds give one schedule")
	}
	seen := map[testcontroller.Event]bool{}
	for seed := range uint64(50) {
		for _, step := range testcontroller.RandomSchedule(seed, 20, time.Second, true) {
			if step.After < 0 || step.After > time.Second {
				t.Errorf("a step after %s", step.After)
			}
			seen[step.Event] = true
		}
	}
	if len(seen) != 13 {
		t.Errorf("50 schedules have %d kinds of events, want 13", len(seen))
	}
}

package live

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
)

// handled is the status after a run that handled the request on the object.
func handled(o *sourcev1.OCIRepository) {
	o.Status.LastHandledReconcileAt = o.Annotations[meta.ReconcileRequestAnnotation]
}

// reconcilingPlace has the Role with patch, and a source that has settled.
func reconcilingPlace(t *testing.T) *place {
	t.Helper()
	p := newPlace(t, steadyCluster(t), shipped(t, "role-reconcile.yaml"))
	p.create()
	p.settle(revision("a"))
	return p
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	yes := map[string]string{"reconcile": "true"}
	const asked = "source-unobserved: the controller has not handled"
	for name, test := range map[string]struct {
		after   func(p *place)
		patches int
	}{
		"is handled": {func(p *place) { p.settle(revision("a"), handled) }, 1},
		"is handled with a newer revision": {func(p *place) {
			p.settle(revision("b"))
			p.settle(revision("b"), handled)
		}, 1},
		"and somebody asks again": {func(p *place) {
			p.edit(func(o *sourcev1.OCIRepository) {
				o.Annotations[meta.ReconcileRequestAnnotation] = time.Now().Format(time.RFC3339Nano)
			})
			p.settle(revision("a"), handled)
		}, 1},
		"and the object is made anew": {func(p *place) {
			p.remove()
			p.create()
			p.settle(revision("a"))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := reconcilingPlace(t)
			g := p.gate(yes)
			g.Saw(asked)
			test.after(p)
			g.Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
			if got := p.requests(); got["patch"] != test.patches {
				t.Errorf("got requests %v", got)
			}
		})
	}
	// Both as somebody does who applies the object as it was.
	for name, restore := range map[string]func(*sourcev1.OCIRepository){
		"and the request is removed": func(o *sourcev1.OCIRepository) { o.Annotations = nil },
		"and the request before it is put back": func(o *sourcev1.OCIRepository) {
			o.Annotations[meta.ReconcileRequestAnnotation] = "long ago"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := reconcilingPlace(t)
			p.edit(func(o *sourcev1.OCIRepository) {
				o.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "long ago"}
			})
			p.settle(revision("a"), handled)
			g := p.gate(yes)
			g.Saw(asked)
			p.edit(restore)
			// The gate asks again; then it is handled.
			waitFor(t, func() bool { return p.requests()["patch"] == 2 })
			p.settle(revision("a"), handled)
			g.Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
		})
	}
	t.Run("is not handled", func(t *testing.T) {
		t.Parallel()
		reconcilingPlace(t).gate(yes, map[string]string{"timeout": "3s"}).Is(actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceUnobserved})
	})
	t.Run("without time", func(t *testing.T) {
		t.Parallel()
		p := reconcilingPlace(t)
		p.gate(yes, map[string]string{"timeout": "0"}).Is(actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceUnobserved})
		if got := p.requests(); got["patch"] != 1 {
			t.Errorf("got requests %v, want one patch", got)
		}
	})
	t.Run("of nothing", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t, steadyCluster(t), shipped(t, "role-reconcile.yaml"))
		g := p.gate(yes)
		g.Saw(waiting)
		p.create()
		p.settle(revision("a"))
		g.Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
	})
}

// waitFor polls until something holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come to hold within a minute")
		}
	}
}

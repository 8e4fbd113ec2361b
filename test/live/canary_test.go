package live

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
	"flux-verify-gate/test/stack/testcontroller"
)

// canaryObject is the name in examples/rbac/role-canary.yaml.
const canaryObject = "flux-system-canary"

// canaryPlace is a place whose gate may read the canary too, and the canary in
// it.
func canaryPlace(t *testing.T) (p, canary *place) {
	t.Helper()
	p = steadyPlace(t)
	p.allow(shipped(t, "role-canary.yaml"))
	return p, p.named(canaryObject)
}

// named is the same place with another object.
func (p *place) named(name string) *place {
	other := *p
	other.name = name
	return &other
}

// asks are the inputs that ask for the canary.
func (p *place) asks() map[string]string {
	return map[string]string{"canary": p.namespace + "/" + p.name}
}

// createCanary makes the canary as examples/canary has it: the policy of the
// source, and an artifact of its own.
func (p *place) createCanary(edits ...func(*sourcev1.OCIRepository)) {
	p.t.Helper()
	p.create(append([]func(*sourcev1.OCIRepository){func(o *sourcev1.OCIRepository) {
		o.Spec.Reference = &sourcev1.OCIRepositoryRef{Tag: "canary"}
	}}, edits...)...)
}

// unsigned is the status of a canary that was refused, with changes.
func (p *place) unsigned(edits ...func(*sourcev1.OCIRepository)) {
	p.t.Helper()
	p.update("status", append([]func(*sourcev1.OCIRepository){canaryRefused("no matching signatures were found for 'registry.stack.test/acme/platform@" + testcontroller.Digest("canary") + "'")}, edits...)...)
}

// canaryRefused is what the controller leaves of an object whose first artifact
// it refuses.
func canaryRefused(why string) func(*sourcev1.OCIRepository) {
	return func(o *sourcev1.OCIRepository) {
		way := "cosign"
		if o.Spec.Verify != nil && o.Spec.Verify.SecretRef == nil {
			way = "cosign keyless"
		}
		message := "failed to verify the signature using provider '" + way + "': " + why
		o.Status.ObservedGeneration = -1
		o.Status.Conditions = nil
		condition(meta.ReconcilingCondition, true, meta.ProgressingWithRetryReason,
			"building artifact: new revision 'canary@"+testcontroller.Digest("canary")+"' for 'registry.stack.test/acme/platform:canary'")(o)
		condition(sourcev1.SourceVerifiedCondition, false, sourcev1.VerificationError, message)(o)
		condition(meta.ReadyCondition, false, sourcev1.VerificationError, message)(o)
	}
}

// trying is the same status while the controller tries again and has deleted
// what it said of the last try.
func trying(o *sourcev1.OCIRepository) {
	drop(sourcev1.SourceVerifiedCondition)(o)
	condition(meta.ReconcilingCondition, true, meta.ProgressingReason, "building artifact")(o)
	condition(meta.ReadyCondition, false, meta.ProgressingReason, "building artifact")(o)
}

// A settled canary costs one read, and one more behind the last read of the
// source.
func TestCanaryRefused(t *testing.T) {
	t.Parallel()
	p, canary := canaryPlace(t)
	p.create()
	p.settle(revision("a"))
	canary.createCanary()
	canary.unsigned()
	r := p.gate(canary.asks()).Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
	if got := p.requests(); len(got) != 1 || got["get"] != 4 {
		t.Errorf("got requests %v, want four gets", got)
	}
	now, err := canary.objects().Get(t.Context(), canary.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := r.Report.Canary
	if c == nil || c.State != gate.CanaryRefused || c.Class != gate.ClassNoMatchingKey || c.Namespace != p.namespace || c.Name != canaryObject ||
		c.UID != string(now.GetUID()) || c.ResourceVersion != now.GetResourceVersion() || c.Generation != 1 || c.Digest != testcontroller.Digest("canary") {
		t.Errorf("got the canary %+v", c)
	}
	if c := r.Report.Canary; c != nil && c.UID == r.Report.Source.UID {
		t.Error("the canary is the source")
	}
	if !strings.Contains(r.Stdout, canaryObject+" was refused, as it must be (no-matching-key)") || !strings.Contains(r.Summary, "- Canary: ") {
		t.Errorf("nothing is said of the canary:\n%s", r.Stdout)
	}
}

// States of the canary that are judged at the first read.
func TestCanaryStates(t *testing.T) {
	t.Parallel()
	type edits = []func(*sourcev1.OCIRepository)
	for name, test := range map[string]struct {
		spec   edits
		status func(*place)
		after  func(*place)
		inputs map[string]string
		want   actiontest.Want
		says   string
	}{
		"refused": {
			status: func(c *place) { c.unsigned() }, want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"accepted": {
			status: func(c *place) { c.settle("canary@" + testcontroller.Digest("canary")) },
			want:   actiontest.Want{Verdict: gate.Rejected, Reason: gate.CanaryAccepted}, says: "do not promote",
		},
		"no status": {
			status: func(*place) {}, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted}, says: "does not say what became of the canary",
		},
		"trying again": {
			status: func(c *place) { c.unsigned(trying) }, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted}, says: "building artifact",
		},
		"refused under an earlier policy": {
			status: func(c *place) { c.unsigned() },
			after: func(c *place) {
				c.edit(func(o *sourcev1.OCIRepository) { o.Spec.Interval = metav1.Duration{Duration: time.Hour} })
			},
			want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted}, says: "another generation",
		},
		"suspended": {
			spec:   edits{func(o *sourcev1.OCIRepository) { o.Spec.Suspend = true }},
			status: func(c *place) { c.unsigned() }, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted}, says: "flux resume",
		},
		"being deleted": {
			spec:   edits{func(o *sourcev1.OCIRepository) { o.Finalizers = []string{sourcev1.SourceFinalizer} }},
			status: func(c *place) { c.unsigned() }, after: func(c *place) { c.remove() },
			want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted}, says: "being deleted",
		},
		"registry down": {
			status: func(c *place) {
				c.unsigned(trying, condition(sourcev1.FetchFailedCondition, true, sourcev1.OCIPullFailedReason, "connection refused"))
			},
			want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted}, says: "does not say what became of the canary",
		},
		"registry down beside an old refusal": {
			status: func(c *place) {
				c.unsigned(condition(sourcev1.FetchFailedCondition, true, sourcev1.OCIPullFailedReason, "connection refused"))
			},
			want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted}, says: "connection refused",
		},
		"its Secret is missing": {
			status: func(c *place) { c.update("status", canaryRefused(`secrets "cosign" not found`)) },
			want:   actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted}, says: "Secret",
		},
		"another policy": {
			spec:   edits{func(o *sourcev1.OCIRepository) { o.Spec.Verify.SecretRef.Name = "other" }},
			status: func(c *place) { c.unsigned() }, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.CanaryDiffers}, says: "secretRef other",
		},
		"the tag of the source": {
			spec:   edits{func(o *sourcev1.OCIRepository) { o.Spec.Reference = &sourcev1.OCIRepositoryRef{Tag: "v1"} }},
			status: func(c *place) { c.unsigned() }, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted}, says: "follows the tag",
		},
		"deleted": {
			status: func(*place) {}, after: func(c *place) { c.remove() },
			want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted}, says: "examples/canary/canary.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, canary := canaryPlace(t)
			p.create()
			p.settle(revision("a"))
			canary.createCanary(test.spec...)
			test.status(canary)
			if test.after != nil {
				test.after(canary)
			}
			r := p.gate(canary.asks(), map[string]string{"timeout": "0"}, test.inputs).Is(test.want)
			if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(r.Stdout, "│", "")), " "), test.says) {
				t.Errorf("the log does not say %q:\n%s", test.says, r.Stdout)
			}
			if verified := test.want.Verdict == gate.Verified; verified != (r.Report.Canary.State == gate.CanaryRefused) && test.want.Reason == gate.CanaryAccepted {
				t.Errorf("got the canary %+v", r.Report.Canary)
			}
			if watched := p.requests()["watch"]; watched != 0 {
				t.Errorf("got %d watches, want none", watched)
			}
		})
	}
}

// The source is refused as its own canary before anything is read.
func TestCanaryIsTheSource(t *testing.T) {
	t.Parallel()
	p, _ := canaryPlace(t)
	p.create()
	p.settle(revision("a"))
	p.gate(p.asks()).Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.BadInput})
	if got := p.requests(); len(got) != 0 {
		t.Errorf("got requests %v, want none", got)
	}
}

// What the gate waits for comes, or does not: the source has settled before.
func TestCanaryWaits(t *testing.T) {
	t.Parallel()
	accepted := "canary@" + testcontroller.Digest("canary")
	wide := func(o *sourcev1.OCIRepository) { o.Spec.Verify.SecretRef.Name = "other" }
	for name, test := range map[string]struct {
		before, after func(p, c *place)
		inputs        map[string]string
		want          actiontest.Want
	}{
		"for its first status": {
			before: func(_, c *place) { c.createCanary() },
			after:  func(_, c *place) { c.unsigned() },
			want:   actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"for the object": {
			before: func(_, _ *place) {},
			after:  func(_, c *place) { c.createCanary(); c.unsigned() },
			want:   actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"for an object that nobody deploys": {
			before: func(_, _ *place) {},
			after:  func(_, _ *place) {},
			want:   actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted},
		},
		"until the policy is repaired, and the old artifact stays": {
			before: func(_, c *place) {
				c.createCanary(wide)
				c.settle(accepted)
			},
			after: func(_, c *place) {
				c.edit(func(o *sourcev1.OCIRepository) { o.Spec.Verify.SecretRef.Name = "cosign" })
				c.unsigned()
			},
			want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"and it is accepted": {
			before: func(_, c *place) { c.createCanary() },
			after:  func(_, c *place) { c.settle(accepted) },
			want:   actiontest.Want{Verdict: gate.Rejected, Reason: gate.CanaryAccepted},
		},
		"and it is replaced by a refused one": {
			before: func(_, c *place) { c.createCanary(); c.settle(accepted) },
			after:  func(_, c *place) { c.remove(); c.createCanary(); c.unsigned() },
			want:   actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"and it flaps, and ends refused": {
			before: func(_, c *place) { c.createCanary(); c.unsigned(trying) },
			after: func(_, c *place) {
				for range 20 {
					c.unsigned()
					c.unsigned(trying)
				}
				c.unsigned()
			},
			want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"and it flaps, and nothing comes of it": {
			before: func(_, c *place) { c.createCanary(); c.unsigned(trying) },
			after: func(_, c *place) {
				for range 20 {
					c.unsigned(trying)
					c.update("status", canaryRefused("unable to initialize trusted root: x"))
				}
			},
			inputs: map[string]string{"timeout": "15s"},
			want:   actiontest.Want{Verdict: gate.Undecided, Reason: gate.CanaryAccepted},
		},
		"for the source, and a refused canary is accepted meanwhile": {
			before: func(p, c *place) {
				p.settle(revision("z"))
				c.createCanary()
				c.unsigned()
			},
			after: func(p, c *place) {
				c.settle(accepted)
				p.settle(revision("a"))
			},
			inputs: map[string]string{"digest": testcontroller.Digest("a")},
			want:   actiontest.Want{Verdict: gate.Rejected, Reason: gate.CanaryAccepted},
		},
		"for the source, whose canary is refused all the time": {
			before: func(p, c *place) {
				p.settle(revision("z"))
				c.createCanary()
				c.unsigned()
			},
			after:  func(p, _ *place) { p.settle(revision("a")) },
			inputs: map[string]string{"digest": testcontroller.Digest("a")},
			want:   actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, canary := canaryPlace(t)
			p.create()
			p.settle(revision("a"))
			test.before(p, canary)
			g := p.gate(canary.asks(), test.inputs)
			g.Saw(waiting)
			test.after(p, canary)
			r := g.Is(test.want)
			if got := p.requests(); got["watch"] != 2 {
				t.Errorf("got requests %v, want two watches", got)
			}
			if want := test.want.Verdict == gate.Verified; want != (r.Report.Canary.State == gate.CanaryRefused) {
				t.Errorf("got the canary %+v", r.Report.Canary)
			}
		})
	}
}

// The gate that may not read the canary says so with a Role of its own name,
// which takes nothing from the first one; and it goes on when that is applied.
func TestCanaryWithoutRole(t *testing.T) {
	t.Parallel()
	keyless := identity(`^https://token\.actions\.githubusercontent\.com$`, `^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$`)
	inputs := map[string]string{"required-keys": "", "required-signers": signers, "timeout": "4m"}
	for name, elsewhere := range map[string]bool{"in the namespace of the source": false, "in another namespace": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := steadyPlace(t)
			canary := p.named(canaryObject)
			if elsewhere {
				canary = newPlace(t, p.cluster, "").named(canaryObject)
			}
			p.create(keyless)
			p.settle(revision("a"))
			canary.createCanary(keyless)
			canary.update("status", canaryRefused("no signatures found"))

			r := p.gate(canary.asks(), inputs).Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.AccessDenied})
			f := r.Finding(t, gate.AccessDenied)
			for _, part := range []string{"the canary " + canary.namespace + "/" + canaryObject, p.user, "get ocirepositories.source.toolkit.fluxcd.io"} {
				if !strings.Contains(f.Title, part) {
					t.Errorf("the finding does not name %q: %s", part, f.Title)
				}
			}
			if !strings.Contains(f.Remedy, "kubectl create role flux-verify-gate-canary --namespace "+canary.namespace) {
				t.Errorf("got the remedy %q", f.Remedy)
			}
			if n := strings.Count(r.Stdout, "kind: RoleBinding"); n != 1 {
				t.Errorf("the log has %d Roles, want one", n)
			}

			g := p.gate(canary.asks(), inputs)
			g.Saw("kind: RoleBinding")
			canary.allow(printedRole(t, r.Stdout))
			g.Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
		})
	}
}

// Without the verb watch the canary is read every 15 s.
func TestCanaryWithoutWatch(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	p.allow(strings.Replace(shipped(t, "role-canary.yaml"), "'get', 'watch'", "'get'", 1))
	canary := p.named(canaryObject)
	p.create()
	p.settle(revision("a"))
	canary.createCanary()
	g := p.gate(canary.asks())
	g.Saw("it reads every 15s instead")
	canary.unsigned()
	g.Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
}

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

const waiting = "waiting"

// An idle wait is one read and one watch.
func TestIdleWait(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	p.create()
	p.settle(revision("a"))
	r := p.gate(map[string]string{"digest": testcontroller.Digest("b"), "timeout": "25s"}).Is(actiontest.Want{Verdict: gate.Rejected, Reason: gate.DigestMismatch})
	if got := p.requests(); len(got) != 2 || got["get"] != 2 || got["watch"] != 1 {
		t.Errorf("got requests %v, want two gets and one watch", got)
	}
	if lines := strings.Count(r.Stdout, "waiting while"); lines < 2 || lines > 3 {
		t.Errorf("got %d lines of progress in 25 s, want one at once and one after 15 s:\n%s", lines, r.Stdout)
	}
	t.Logf("25 s of waiting and the whole start cost %s of CPU", r.CPU)
}

// What the gate waits for comes: each case begins in a state that is pending
// and goes on when the gate is seen waiting.
func TestWaits(t *testing.T) {
	t.Parallel()
	b := map[string]string{"digest": testcontroller.Digest("b")}
	for name, test := range map[string]struct {
		before, after func(p *place)
		inputs        map[string]string
		want          actiontest.Want
	}{
		"for the first status": {
			before: func(p *place) { p.create() },
			after:  func(p *place) { p.settle(revision("a")) },
			want:   actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"for the object": {
			before: func(*place) {},
			after:  func(p *place) { p.create(); p.settle(revision("a")) },
			want:   actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"for the expected digest": {
			before: func(p *place) { p.create(); p.settle(revision("a")) },
			after:  func(p *place) { p.settle(revision("b")) },
			inputs: b, want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"through a newer revision": {
			before: func(p *place) { p.create(); p.settle(revision("a")) },
			after: func(p *place) {
				p.settle(revision("c"))
				p.settle(revision("b"))
			},
			inputs: b, want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"for a policy that comes late": {
			before: func(p *place) {
				p.create(func(o *sourcev1.OCIRepository) { o.Spec.Verify = nil })
				p.settle(revision("a"), drop(sourcev1.SourceVerifiedCondition))
			},
			after: func(p *place) {
				p.edit(func(o *sourcev1.OCIRepository) {
					o.Spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "cosign"}}
				})
				p.settle(revision("a"))
			},
			want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"for a newer generation": {
			before: func(p *place) {
				p.create()
				p.settle(revision("a"))
				p.edit(func(o *sourcev1.OCIRepository) { o.Spec.Interval = metav1.Duration{Duration: time.Hour} })
			},
			after: func(p *place) { p.settle(revision("a")) },
			want:  actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"and it is suspended": {
			before: func(p *place) { p.create() },
			after:  func(p *place) { p.edit(func(o *sourcev1.OCIRepository) { o.Spec.Suspend = true }) },
			want:   actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceSuspended},
		},
		"and it is resumed elsewhere": {
			before: func(p *place) { p.create() },
			after: func(p *place) {
				p.remove()
				p.create()
				p.settle(revision("a"))
			},
			want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"and it is deleted for good": {
			before: func(p *place) { p.create() },
			after:  func(p *place) { p.remove() },
			want:   actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceMissing},
		},
		"and its deletion hangs": {
			before: func(p *place) {
				p.create(func(o *sourcev1.OCIRepository) { o.Finalizers = []string{sourcev1.SourceFinalizer} })
			},
			after: func(p *place) { p.remove() },
			want:  actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceDeleting},
		},
		"and the new artifact is refused": {
			before: func(p *place) { p.create(); p.settle(revision("a")) },
			after: func(p *place) {
				p.settle(revision("a"), refused(revision("b"), "no matching attestations: failed to verify certificate identity: no matching CertificateIdentity found, last error: x"))
			},
			inputs: b, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationFailed},
		},
		"and the new artifact has no signature": {
			before: func(p *place) { p.create(); p.settle(revision("a")) },
			after:  func(p *place) { p.settle(revision("a"), refused(revision("b"), "no signatures found")) },
			inputs: b, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationFailed},
		},
		"and the signature comes after the push": {
			before: func(p *place) {
				p.create()
				p.settle(revision("a"), refused(revision("b"), "no signatures found"))
			},
			after:  func(p *place) { p.settle(revision("b")) },
			inputs: b, want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"and a failure of something else passes": {
			before: func(p *place) {
				p.create()
				p.settle(revision("a"), refused(revision("c"), "no matching attestations: failed to verify certificate identity: no matching CertificateIdentity found, last error: x"))
			},
			after:  func(p *place) { p.settle(revision("b")) },
			inputs: b, want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"for a policy that nobody sets": {
			before: func(p *place) {
				p.create(func(o *sourcev1.OCIRepository) { o.Spec.Verify = nil })
				p.settle(revision("a"), drop(sourcev1.SourceVerifiedCondition))
			},
			after: func(*place) {},
			want:  actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerifyAbsent},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := steadyPlace(t)
			test.before(p)
			g := p.gate(test.inputs)
			g.Saw(waiting)
			test.after(p)
			r := g.Is(test.want)
			if got := p.requests(); got["watch"] != 1 {
				t.Errorf("got requests %v, want one watch", got)
			}
			if test.want.Reason == gate.VerificationFailed && r.Report.Source.Revision != revision("a") {
				t.Errorf("got revision %q", r.Report.Source.Revision)
			}
		})
	}
}

// Nothing comes before the deadline: the last read decides.
func TestNothingComes(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	p.create()
	p.gate(map[string]string{"timeout": "3s"}).Is(actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationMissing})
}

// Owners of the fields, with several managers that apply.
func TestSeveralManagers(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	apply := func(manager, spec string) {
		t.Helper()
		manifest := "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: " + object + ", namespace: " + p.namespace + "}\nspec: " + spec
		if _, err := p.cluster.Apply(t.Context(), manager, strings.NewReader(manifest)); err != nil {
			t.Fatal(err)
		}
	}
	apply("flux-operator", "{url: 'oci://registry.stack.test/acme/platform', interval: 1m, ref: {tag: v1}}")
	apply("kustomize-controller", "{verify: {provider: cosign, secretRef: {name: cosign}}}")
	p.settle(revision("a"))
	r := p.gate().Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
	owns := map[string]string{}
	for _, o := range r.Report.Owners {
		owns[o.Manager+" "+o.Operation] = strings.Join(o.Fields, " ")
	}
	if !strings.Contains(owns["kustomize-controller Apply"], "verify") || !strings.Contains(owns["flux-operator Apply"], "url") ||
		strings.Contains(owns["flux-operator Apply"], "verify") {
		t.Errorf("got owners %q", owns)
	}
}

package live

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
	"flux-verify-gate/test/stack/testcontroller"
)

// A source that has settled costs one read, and one more before the verdict.
func TestSettledSource(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	p.create()
	p.settle(revision("a"))
	r := p.gate(map[string]string{"digest": testcontroller.Digest("a")}).Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
	if r.Outputs["reference"] != "registry.stack.test/acme/platform@"+testcontroller.Digest("a") {
		t.Errorf("got reference %q", r.Outputs["reference"])
	}
	if got := p.requests(); len(got) != 1 || got["get"] != 2 {
		t.Errorf("got requests %v, want two gets", got)
	}
	if r.Report.Cluster.Server != p.cluster.Server() || r.Report.Cluster.Context != "stack" || r.Report.Timings.Reads != 2 {
		t.Errorf("got %+v, %d reads", r.Report.Cluster, r.Report.Timings.Reads)
	}
}

// States that are judged at the first read, because nothing is waited for.
func TestStates(t *testing.T) {
	t.Parallel()
	type edits = []func(*sourcev1.OCIRepository)
	now := map[string]string{"timeout": "0"}
	suspend := func(o *sourcev1.OCIRepository) { o.Spec.Suspend = true }
	for name, test := range map[string]struct {
		spec edits
		// status comes on top of that of a verified source; none leaves the
		// object without a status.
		status edits
		inputs map[string]string
		want   actiontest.Want
		exit   int
	}{
		"suspended": {
			spec: edits{suspend}, status: edits{}, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceSuspended}, exit: 1,
		},
		"suspended before anything was stored": {
			spec: edits{suspend}, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceSuspended}, exit: 1,
		},
		"another address": {
			status: edits{}, inputs: map[string]string{"url": "oci://registry.stack.test/acme/other"},
			want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceURL}, exit: 1,
		},
		"the address": {
			status: edits{}, inputs: map[string]string{"url": "oci://registry.stack.test/acme/platform"},
			want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"stalled": {
			status: edits{condition(meta.StalledCondition, true, "URLInvalid", "invalid address")},
			want:   actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceStalled}, exit: 1,
		},
		"never reconciled, no time": {
			inputs: now, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationMissing}, exit: 1,
		},
		"no policy, no time": {
			spec:   edits{func(o *sourcev1.OCIRepository) { o.Spec.Verify = nil }},
			status: edits{drop(sourcev1.SourceVerifiedCondition)}, inputs: now, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerifyAbsent}, exit: 1,
		},
		"another provider, no time": {
			spec:   edits{func(o *sourcev1.OCIRepository) { o.Spec.Verify.Provider = "notation" }},
			status: edits{}, inputs: now, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerifyProvider}, exit: 1,
		},
		"another key, no time": {
			spec:   edits{func(o *sourcev1.OCIRepository) { o.Spec.Verify.SecretRef.Name = "other" }},
			status: edits{}, inputs: now, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.KeyUnexpected}, exit: 1,
		},
		"identities, one branch too many, no time": {
			spec:   edits{identity(`^https://token\.actions\.githubusercontent\.com$`, `^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main`)},
			status: edits{}, inputs: map[string]string{"timeout": "0", "required-keys": "", "required-signers": signers},
			want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.PolicyTooWide}, exit: 1,
		},
		"identities": {
			spec:   edits{identity(`^https://token\.actions\.githubusercontent\.com$`, `^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$`)},
			status: edits{}, inputs: map[string]string{"required-keys": "", "required-signers": signers},
			want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"another digest, no time": {
			status: edits{}, inputs: map[string]string{"timeout": "0", "digest": testcontroller.Digest("b")},
			want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.DigestMismatch}, exit: 1,
		},
		"verified another revision, no time": {
			status: edits{condition(sourcev1.SourceVerifiedCondition, true, meta.SucceededReason, "verified signature of revision "+revision("b"))},
			inputs: now, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationOtherRevision}, exit: 1,
		},
		"a message of another form, no time": {
			status: edits{condition(sourcev1.SourceVerifiedCondition, true, meta.SucceededReason, "all good")},
			inputs: now, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.MessageUnknown}, exit: 2,
		},
		"an older generation, no time": {
			status: edits{func(o *sourcev1.OCIRepository) {
				o.Status.Conditions[len(o.Status.Conditions)-1].ObservedGeneration--
			}},
			inputs: now, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationStale}, exit: 1,
		},
		"refused, no time": {
			status: edits{refused(revision("b"), "no signatures found")},
			inputs: now, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationFailed}, exit: 1,
		},
		"refused for good": {
			status: edits{refused(revision("b"), "no matching attestations: failed to verify certificate identity: no matching CertificateIdentity found, last error: x")},
			want:   actiontest.Want{Verdict: gate.Rejected, Reason: gate.VerificationFailed}, exit: 1,
		},
		"hostile words in a message, no time": {
			status: edits{condition(meta.ReadyCondition, false, "Failed", "a\r::set-output name=verdict::verified\n##[add-path]/tmp\x1b[2J<script>")},
			inputs: now, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.NotReady}, exit: 1,
		},
		"no object, no time": {
			inputs: map[string]string{"timeout": "0", "name": "another"}, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.AccessDenied}, exit: 2,
		},
		"warn, rejected": {
			spec: edits{suspend}, inputs: map[string]string{"mode": "warn"}, want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceSuspended},
		},
		"warn, undecided after a read": {
			status: edits{condition(sourcev1.SourceVerifiedCondition, true, meta.SucceededReason, "all good")},
			inputs: map[string]string{"timeout": "0", "mode": "warn"}, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.MessageUnknown},
		},
		"warn, undecided without a read": {
			inputs: map[string]string{"mode": "warn", "server": "https://localhost:1"}, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.Unreachable}, exit: 2,
		},
		"warn, bad input": {
			inputs: map[string]string{"mode": "warn", "digest": "latest"}, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.BadInput}, exit: 2,
		},
		"no digest": {
			inputs: map[string]string{"digest": ""}, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.BadInput}, exit: 2,
		},
		"an input that is not declared": {
			inputs: map[string]string{"digset": "any"}, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.BadInput}, exit: 2,
		},
		"a name that none can have": {
			inputs: map[string]string{"namespace": "../../etc"}, want: actiontest.Want{Verdict: gate.Undecided, Reason: gate.BadInput}, exit: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := steadyPlace(t)
			p.create(test.spec...)
			if test.status != nil {
				p.settle(revision("a"), test.status...)
			}
			r := p.gate(test.inputs).Is(test.want)
			if r.Status != test.exit {
				t.Errorf("got exit status %d, want %d", r.Status, test.exit)
			}
			if watched := p.requests()["watch"]; watched != 0 {
				t.Errorf("got %d watches, want none", watched)
			}
		})
	}
}

const signers = "- github: {repository: acme/platform, workflow: cd.yaml, ref: refs/heads/main}\n"

// identity makes the policy a keyless one.
func identity(issuer, subject string) func(*sourcev1.OCIRepository) {
	return func(o *sourcev1.OCIRepository) {
		o.Spec.Verify.SecretRef = nil
		o.Spec.Verify.MatchOIDCIdentity = []sourcev1.OIDCIdentityMatch{{Issuer: issuer, Subject: subject}}
	}
}

// Deleted by somebody, and held by a finalizer.
func TestDeleting(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	p.create(func(o *sourcev1.OCIRepository) { o.Finalizers = []string{sourcev1.SourceFinalizer} })
	p.settle(revision("a"))
	p.remove()
	p.gate().Is(actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceDeleting})
}

// Nobody waits for what has just begun when there is no time.
func TestMissingWithoutTime(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	began := time.Now()
	r := p.gate(map[string]string{"timeout": "0"}).Is(actiontest.Want{Verdict: gate.Rejected, Reason: gate.SourceMissing})
	if r.Outputs["revision"] != "" {
		t.Errorf("got revision %q after %s", r.Outputs["revision"], time.Since(began))
	}
}

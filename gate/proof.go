package gate

import (
	"context"
	"errors"

	"flux-verify-gate/gate/signer"
)

// entries gives the live identity matchers.
func (f *facts) entries() []signer.Entry {
	verify := f.source.Object.Spec.Verify
	if verify == nil {
		return nil
	}
	entries := make([]signer.Entry, len(verify.MatchOIDCIdentity))
	for i, m := range verify.MatchOIDCIdentity {
		entries[i] = signer.Entry{Issuer: m.Issuer, Subject: m.Subject}
	}
	return entries
}

// everythingIssuable says whether every pair of strings may be a certificate:
// under a custom trusted root, the policy's or the gate's own, nobody knows
// what its authority issues. The root that a keyless policy names is in a
// Secret that the gate does not read.
func (f *facts) everythingIssuable() bool {
	verify := f.source.Object.Spec.Verify
	return f.evidence.PrivateRoot || verify != nil && verify.TrustedRootSecretRef != nil
}

// prove makes the containment proof between the live policy and what is asked
// for, at its first call.
func (f *facts) prove() *signer.Answer {
	if f.proof == nil {
		answer := signer.Prove(f.ctx, signer.Question{
			Live: f.entries(), Required: f.want.Required, Allowed: f.want.Allowed, Everything: f.everythingIssuable(),
		})
		f.proof = &answer
	}
	return f.proof
}

// suggested is the one entry that accepts the required and allowed signers and
// nobody else; nil where one entry cannot.
func (f *facts) suggested() *signer.Entry {
	entry, err := signer.Suggest(f.ctx, f.want.Required, f.want.Allowed, f.everythingIssuable())
	if err != nil {
		return nil
	}
	return &entry
}

// proved says whether every question about the policy was answered. A proof that
// was not begun names only the question that it fell over, so one that is open
// leaves none of the others proved.
func (f *facts) proved() bool { return len(f.prove().Undecided) == 0 }

// undecidedProof is the finding for a question that the proof did not answer.
func (f *facts) undecidedProof(u signer.Undecided) Finding {
	if f.stopped(u.Err) {
		return f.stoppedProof("the proof about the policy ("+u.Question+")", u.Err)
	}
	finding := Finding{
		Code: ProofTooLarge, Outcome: Unknown, Wait: WaitQuiet,
		Title:    "the proof about the policy was not finished: " + u.Question,
		Expected: "patterns that can be decided within the bound", Found: u.Err.Error(),
		Remedy: "simplify the pattern; the suggested entry below is exact and small",
	}
	if u.Pattern != "" {
		finding.Found += " (pattern " + u.Pattern + ")"
	}
	if !errors.Is(u.Err, signer.ErrTooLarge) {
		finding.Code = Internal
		finding.Title = "the proof about the policy contradicts the regular-expression engine: " + u.Question
		finding.Remedy = "report this: it is a fault of the gate"
	}
	return finding
}

// stopped says whether it was the end of the run that cut a proof short, and not
// the proof that failed.
func (f *facts) stopped(err error) bool {
	return f.ctx.Err() != nil && !errors.Is(err, signer.ErrTooLarge) &&
		!errors.Is(err, signer.ErrUnconfirmed) && !errors.Is(err, signer.ErrBadSigner)
}

// stoppedProof is the finding for a proof that the end of the run cut short:
// nothing is known then, and nothing is wrong with the gate or the policy.
func (f *facts) stoppedProof(what string, err error) Finding {
	finding := Finding{
		Code: Cancelled, Outcome: Unknown,
		Title: what + " was stopped by the end of the run", Expected: "time to finish it", Found: err.Error(),
		Remedy: "run again",
	}
	if errors.Is(f.ctx.Err(), context.DeadlineExceeded) {
		finding.Code, finding.Remedy = ProofTooLarge, "raise timeout, or simplify the pattern"
	}
	return finding
}

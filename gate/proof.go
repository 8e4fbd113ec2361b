package gate

import (
	"errors"

	"flux-verify-gate/gate/signer"
)

// proof is the containment proof between the live policy and what is asked for.
type proof struct {
	answer signer.Answer
}

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

// prove makes the proof at its first call.
func (f *facts) prove() *proof {
	if f.proof != nil {
		return f.proof
	}
	f.proof = &proof{answer: signer.Prove(f.ctx, signer.Question{
		Live: f.entries(), Required: f.want.Required, Allowed: f.want.Allowed, Everything: f.everythingIssuable(),
	})}
	return f.proof
}

// suggested is the one entry that accepts the required and allowed signers and
// nobody else; nil where one entry cannot.
func (f *facts) suggested() *signer.Entry {
	entry, err := signer.Suggest(f.ctx, f.want.Required, f.want.Allowed)
	if err != nil {
		return nil
	}
	return &entry
}

// undecidedProof is the finding for a question that the proof did not answer.
func undecidedProof(u signer.Undecided) Finding {
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

package gate

import "flux-verify-gate/gate/signer"

// controlChecks is section E: could this have failed?
var controlChecks = []check{
	{[]Code{SelfTest, ProofTooLarge, Cancelled}, checkProofSelfTest},
	{[]Code{SelfTest}, checkVerifierSelfTest},
	{[]Code{CanaryAccepted, AccessDenied, APIMissing, Unreachable, NoAnswer}, checkCanaryRefused},
	{[]Code{CanaryDiffers}, checkCanaryPolicy},
}

// checkProofSelfTest: a proof that finds every policy good has proved nothing,
// so it must tell a built-in good policy from a bad one in this very run.
func checkProofSelfTest(f *facts) []Finding {
	if !f.provable() {
		return nil
	}
	err := signer.SelfTest(f.ctx)
	if err == nil {
		return pass(SelfTest, "the proof tells a good policy from a bad one")
	}
	if f.stopped(err) {
		return one(f.stoppedProof("the self-test of the policy proof", err))
	}
	return one(Finding{
		Code: SelfTest, Outcome: Fail,
		Title:    "the policy proof does not tell a built-in good policy from a bad one",
		Expected: "the good one proved and the bad one refuted", Found: err.Error(),
		Remedy: "report this: it is a fault of the gate",
	})
}

// checkVerifierSelfTest: a verifier that accepts everything has verified
// nothing, so it must refuse what it has just accepted once that is changed.
func checkVerifierSelfTest(f *facts) []Finding {
	if f.want.Signature == SignatureSkip || f.evidence.Signatures == nil {
		return nil
	}
	return JudgeSelfTest(f.want, *f.evidence.Signatures)
}

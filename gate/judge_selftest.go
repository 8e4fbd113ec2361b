package gate

import "fmt"

// JudgeSelfTest says whether the verifier of signatures could have failed: with
// the digest changed it must refuse the very bytes that it had just verified at
// the step binding, and with the identity changed at the step identity (with
// keys: with the key changed, at the step signature). Where nothing verified
// there was nothing to test it on, and no finding.
func JudgeSelfTest(want Requirements, s Signatures) []Finding {
	verified := false
	for _, found := range s.Found {
		verified = verified || found.Verified
	}
	if !verified && s.SelfTest == nil {
		return nil
	}
	identity := StepIdentity
	if want.Keys != nil {
		identity = StepSignature
	}
	expected := fmt.Sprintf("a changed digest refused at the step %s, a changed identity at the step %s", StepBinding, identity)
	const remedy = "do not rely on this gate: report the run to its maintainers"
	if s.SelfTest == nil {
		return []Finding{{
			Code: SelfTest, Outcome: Unknown, Title: "the verifier of signatures was not tested",
			Expected: expected, Found: "no test", Remedy: remedy,
		}}
	}
	if s.SelfTest.DigestRefusedAt == StepBinding && s.SelfTest.IdentityRefusedAt == identity {
		return []Finding{{
			Code: SelfTest, Outcome: Pass,
			Title: "the verifier of signatures refuses the same bytes under a changed digest and a changed identity",
		}}
	}
	return []Finding{{
		Code: SelfTest, Outcome: Fail, Title: "the verifier of signatures does not refuse what it must",
		Expected: expected,
		Found: fmt.Sprintf("digest: %s, identity: %s; %s",
			stepOrAccepted(s.SelfTest.DigestRefusedAt), stepOrAccepted(s.SelfTest.IdentityRefusedAt), s.SelfTest.Detail),
		Remedy: remedy,
	}}
}

func stepOrAccepted(step Step) string {
	if step == "" {
		return "accepted"
	}
	return "refused at the step " + string(step)
}

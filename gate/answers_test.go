package gate

import (
	"context"
	"slices"
	"strings"
	"testing"

	"flux-verify-gate/gate/signer"
)

// TestUnansweredCodesAreNoticed removes one answer at a time from a run in which
// everything passed.
func TestUnansweredCodesAreNoticed(t *testing.T) {
	t.Parallel()
	signers := []signer.Signer{{Issuer: "i", Subject: "s"}}
	for name, want := range map[string]Requirements{
		"signers":          {Required: signers, Signature: SignatureVerify, URL: "oci://a/b", Canary: ObjectName{"a", "b"}},
		"signers, skipped": {Required: signers, Signature: SignatureSkip},
		"keys":             {Keys: &Keys{Secret: "a"}, Signature: SignatureVerify},
		"keys, skipped":    {Keys: &Keys{Secret: "a"}, Signature: SignatureSkip},
	} {
		f := &facts{ctx: context.Background(), want: want}
		var all []Finding
		for _, code := range f.mandatory() {
			all = append(all, Finding{Code: code, Outcome: Pass})
		}
		if open := f.unanswered(all); open != nil {
			t.Errorf("%s: everything is answered, and got %+v", name, open)
		}
		for _, code := range f.mandatory() {
			rest := slices.DeleteFunc(slices.Clone(all), func(x Finding) bool { return x.Code == code })
			open := f.unanswered(rest)
			if len(open) != 1 || open[0].Outcome != Unknown || open[0].Code != Internal || !strings.Contains(open[0].Found, string(code)) {
				t.Errorf("%s: %s has no answer, and got %+v", name, code, open)
			}
			for _, outcome := range []Outcome{Fail, Unknown} {
				if open := f.unanswered(append(rest, Finding{Code: NotReady, Outcome: outcome})); open != nil {
					t.Errorf("%s: a %s explains why %s has no answer, and got %+v", name, outcome, code, open)
				}
			}
		}
	}
}

// TestMandatoryCodes holds that no check can be forgotten there: every code that
// can fail, or stands beside it why it need not be answered.
func TestMandatoryCodes(t *testing.T) {
	t.Parallel()
	// Answered by another code, by a note, or only where something is wrong.
	need := map[Code]string{
		SourceInsecure: "a note", TimeoutShort: "a note", PolicyLoose: "a note, and none under a private root",
		TrustedRootCustom: "a note", KeysUnread: "a note", SignerShared: "a note", WillRefuse: "a note",
		IdentitiesIgnored: "key-unexpected is answered instead",
		NotASignature:     "signed-by-others is answered too",
		ClaimsMismatch:    "signed-by-others is answered too",
	}
	answered := map[Code]bool{}
	for _, want := range []Requirements{
		{Required: []signer.Signer{{}}, Signature: SignatureVerify, URL: "oci://a/b", Canary: ObjectName{"a", "b"}},
		{Keys: &Keys{}, Signature: SignatureSkip},
	} {
		for _, code := range (&facts{want: want}).mandatory() {
			answered[code] = true
		}
	}
	for _, code := range codes {
		why, free := need[code]
		switch {
		case slices.Contains(lookOrder, code):
			// Only there where it could not be looked at.
		case answered[code] && free:
			t.Errorf("%s is mandatory, and said to be free: %s", code, why)
		case !answered[code] && !free:
			t.Errorf("%s need not be answered, and nothing says why", code)
		}
	}
}

func TestVerdictOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		findings []Finding
		verdict  Verdict
		reason   Code
	}{
		{"nothing", nil, Undecided, Internal},
		{"a pass", []Finding{{Code: NotReady, Outcome: Pass}}, Verified, ReasonVerified},
		{"a pass and a note", []Finding{{Code: NotReady, Outcome: Pass}, {Code: KeysUnread, Outcome: Note}}, Verified, ReasonVerified},
		{"a fail", []Finding{{Code: NotReady, Outcome: Fail}}, Rejected, NotReady},
		{"an unknown", []Finding{{Code: AccessDenied, Outcome: Unknown}}, Undecided, AccessDenied},
		{"a fail and an unknown", []Finding{{Code: AccessDenied, Outcome: Unknown}, {Code: NotReady, Outcome: Fail}}, Rejected, NotReady},
		{"the cause before the symptom", []Finding{{Code: NotReady, Outcome: Fail}, {Code: DigestMismatch, Outcome: Fail}, {Code: VerificationFailed, Outcome: Fail}}, Rejected, VerificationFailed},
		{"a note that comes before a fail", []Finding{{Code: MatchersMultiple, Outcome: Note}, {Code: NotReady, Outcome: Fail}}, Rejected, NotReady},
		{"an unknown in the order of reasons before G", []Finding{{Code: BadInput, Outcome: Unknown}, {Code: SelfTest, Outcome: Unknown}}, Undecided, SelfTest},
		{"a fail without a place in the order", []Finding{{Code: "made-up", Outcome: Fail}}, Undecided, Internal},
		{"an unknown without a place in the order", []Finding{{Code: "made-up", Outcome: Unknown}, {Code: NotReady, Outcome: Pass}}, Undecided, Internal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			verdict, reason := verdictOf(tt.findings)
			if verdict != tt.verdict || reason != tt.reason {
				t.Errorf("got %s (%s), want %s (%s)", verdict, reason, tt.verdict, tt.reason)
			}
		})
	}
}

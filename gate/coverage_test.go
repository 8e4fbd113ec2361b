package gate_test

import (
	"slices"
	"testing"

	"flux-verify-gate/gate"
)

// unreachable are the codes that no evidence can bring about in Decide today,
// each with the reason.
var unreachable = map[gate.Code]string{}

// neverFine are the codes of which there is no near miss: what could not be
// looked at is handed in with the evidence, and Decide only passes it on.
var neverFine = []gate.Code{
	gate.AccessDenied, gate.APIMissing, gate.Unreachable, gate.RegistryDenied, gate.RegistryUnreachable,
	gate.TrustedRootUnavailable, gate.Internal,
}

// TestVariantsCoverEveryCode holds that each code is found in one variant and
// nearly found in another.
func TestVariantsCoverEveryCode(t *testing.T) {
	t.Parallel()
	fails, nearly := map[gate.Code]int{}, map[gate.Code]int{}
	count := 0
	for _, v := range readVariants(t) {
		fails[v.Fails]++
		nearly[v.Nearly]++
		count++
	}
	if count < 120 {
		t.Errorf("%d variants, want at least 120", count)
	}
	for _, code := range gate.AllCodes {
		why, none := unreachable[code]
		switch {
		case none && fails[code]+nearly[code] > 0:
			t.Errorf("%s has variants, and is said to be %s", code, why)
		case none:
		case fails[code] == 0:
			t.Errorf("%s: no variant finds it", code)
		case nearly[code] == 0 && !slices.Contains(neverFine, code):
			t.Errorf("%s: no variant nearly finds it", code)
		}
	}
}

// TestChecksStateTheirCodes holds that a check gives only the codes that its
// line of the rule book states, over all variants, and that every code it states
// is given somewhere.
func TestChecksStateTheirCodes(t *testing.T) {
	t.Parallel()
	wholeOnly(t)
	given := make([]map[gate.Code]bool, len(gate.CheckedCodes()))
	for i := range given {
		given[i] = map[gate.Code]bool{}
	}
	for _, v := range readVariants(t) {
		ctx, policy, evidence := v.question(t)
		for i, findings := range gate.LookEach(ctx, policy, evidence) {
			for _, f := range findings {
				given[i][f.Code] = true
			}
		}
	}
	for i, stated := range gate.CheckedCodes() {
		for code := range given[i] {
			if !slices.Contains(stated, code) {
				t.Errorf("check %d of %v gives %s", i, stated, code)
			}
		}
		for _, code := range stated {
			if !given[i][code] && !slices.Contains(rarely, code) {
				t.Errorf("check %d states %s and never gives it", i, code)
			}
		}
	}
}

// rarely are codes that a check states and that no evidence can bring about:
// they are for a fault of the gate.
var rarely = []gate.Code{gate.Internal}

// needNotBeAsked are the lines of the rule book whose loss nobody would notice in
// a run that is verified, by their first code: they speak only where something is
// wrong, or only note.
var needNotBeAsked = []gate.Code{
	gate.SourceInsecure, gate.TimeoutShort, gate.VerifyFieldUnknown, gate.IdentitiesIgnored,
	gate.ProofTooLarge, gate.BadInput, gate.TrustedRootCustom, gate.KeysUnread, gate.TrustedRootDiffers,
}

// TestNoCheckCanBeForgotten takes one line out of the rule book at a time: what
// was verified is not any more.
func TestNoCheckCanBeForgotten(t *testing.T) {
	t.Parallel()
	wholeOnly(t)
	noticed := map[int]bool{}
	for _, s := range append(starts(t), canaryStarts(t)...) {
		source, err := readObject(s.object)
		if err != nil {
			t.Fatal(err)
		}
		for line := range gate.CheckedCodes() {
			verdict, reason := gate.VerdictWithout(t.Context(), line, s.policy, s.evidence(source))
			switch {
			case verdict == gate.Verified:
			case reason == gate.Internal:
				noticed[line] = true
			default:
				t.Errorf("%s, without %v: got %s (%s)", s.name, gate.CheckedCodes()[line], verdict, reason)
			}
		}
	}
	for line, stated := range gate.CheckedCodes() {
		if free := slices.Contains(needNotBeAsked, stated[0]); noticed[line] == free {
			t.Errorf("the line of %v: noticed %v, and need not be asked %v", stated, noticed[line], free)
		}
	}
}

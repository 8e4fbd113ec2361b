package gate

import (
	"slices"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate/signer"
)

// explains says by hand whether one signature can be why a controller said True:
// it verified, it is of the kind of the policy, the policy names its signer, and
// with a bundle the policy has one entry.
func explains(verify *sourcev1.OCIRepositoryVerification, s Signature) bool {
	if verify.SecretRef != nil {
		return s.Verified && s.Key != ""
	}
	return s.Verified && s.Key == "" && (s.Layout == LayoutTag || len(verify.MatchOIDCIdentity) == 1) &&
		slices.ContainsFunc(verify.MatchOIDCIdentity, func(e sourcev1.OIDCIdentityMatch) bool {
			return e.Subject == "^"+s.Identity.Subject+"$"
		})
}

// TestTrueIsExplained goes through all pairs of candidates under
// several policies: where a required signer has signed, so that nothing else
// stands in the way of verified, the comparison lets a True pass only with a
// signature that explains it, whatever lies beside it.
func TestTrueIsExplained(t *testing.T) {
	t.Parallel()
	pool := []Signature{
		signatureBy(LayoutBundle, "main"), signatureBy(LayoutTag, "main"), signatureBy(LayoutBundle, "other"), signatureBy(LayoutTag, "other"),
		attestationBy("main"), attestationBy("other"), signedWithKey(LayoutBundle), signedWithKey(LayoutTag),
		typed(refusedAt(LayoutBundle, StepParse), bundleV02), typed(refusedAt(LayoutBundle, StepParse), bundleV03),
		loggedAs(refusedAt(LayoutBundle, StepParse), "dsse/0.0.2"), loggedAs(signatureBy(LayoutBundle, "main"), "hashedrekord/0.0.2"),
	}
	for _, step := range []Step{StepFetch, StepParse, StepBinding, StepCertificate, StepSCT, StepLog, StepTime, StepSignature, StepIdentity} {
		pool = append(pool, refusedAt(LayoutBundle, step), refusedAt(LayoutTag, step))
	}
	var sets [][]Signature
	for a := range pool {
		sets = append(sets, pool[a:a+1])
		for b := a + 1; b < len(pool); b++ {
			sets = append(sets, []Signature{pool[a], pool[b]})
		}
	}
	passed, stopped := 0, 0
	for name, verify := range map[string]*sourcev1.OCIRepositoryVerification{
		"one": keylessPolicy("^main$"), "two": keylessPolicy("^main$", "^x$"), "another": keylessPolicy("^x$"), "key": keyPolicy(),
	} {
		for _, set := range sets {
			for _, complete := range []bool{true, false} {
				f := comparing(serving(verify, metav1.ConditionTrue, ""), set...)
				f.evidence.Signatures.Complete = complete
				if name == "key" {
					f.want.Required, f.want.Keys = nil, &Keys{Secret: "k"}
				} else {
					f.want.Required = []signer.Signer{{Issuer: actionsIssuer, Subject: "main"}}
				}
				if !f.want.SignedBy(set) {
					continue
				}
				got := outcomes(checkController(f))
				lets := !strings.Contains(got, ":fail") && !strings.Contains(got, ":unknown")
				explained := slices.ContainsFunc(set, func(s Signature) bool { return explains(verify, s) })
				if lets != explained {
					t.Errorf("policy %s, complete %t: got %q, and explained %t: %+v", name, complete, got, explained, set)
				}
				if lets {
					passed++
				} else {
					stopped++
				}
			}
		}
	}
	if passed < 50 || stopped < 50 {
		t.Errorf("%d passed and %d stopped, which shows nothing", passed, stopped)
	}
}

package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"flux-verify-gate/gate/signer"
)

// policyChecks is section B: does the live spec.verify accept every required
// signer, and nobody else?
var policyChecks = []check{
	{[]Code{VerifyFieldUnknown}, checkVerifyFields},
	{[]Code{VerifyAbsent}, checkVerifyPresent},
	{[]Code{VerifyProvider}, checkProvider},
	{[]Code{KeyMissing}, checkKeyMissing},
	{[]Code{KeyUnexpected}, checkKeyUnexpected},
	{[]Code{IdentitiesIgnored}, checkIdentitiesIgnored},
	{[]Code{SignerUnconstrained, ProofTooLarge, Cancelled}, checkUnconstrained},
	{[]Code{MatcherInvalid}, checkMatchers},
	{[]Code{MatchersMultiple}, checkMultiple},
	{[]Code{ProofTooLarge, Cancelled, Internal}, checkProofDecided},
	{[]Code{BadInput}, checkVacuous},
	{[]Code{SignerMissing}, checkSignerMissing},
	{[]Code{PolicyTooWide}, checkTooWide},
	{[]Code{PolicyLoose}, checkLoose},
	{[]Code{TrustedRootCustom}, checkTrustedRoot},
	{[]Code{KeysUnread}, checkKeysUnread},
}

// providerCosign is the provider whose policies this release understands
// (source-controller/api v1, OCIRepositoryVerification.Provider).
const providerCosign = "cosign"

// usesCosign says whether there is a policy, and one that cosign reads. The
// checks behind verify-absent and verify-provider have nothing to ask of
// another.
func (f *facts) usesCosign() bool {
	verify := f.source.Object.Spec.Verify
	return verify != nil && verify.Provider == providerCosign
}

// matchesIdentities says whether identities are required and the live policy
// matches any: cosign's keyless way, which a secretRef turns off.
func (f *facts) matchesIdentities() bool {
	return f.want.Keys == nil && f.usesCosign() && f.source.Object.Spec.Verify.SecretRef == nil
}

// provable says whether the proof has a question: live patterns that compile.
func (f *facts) provable() bool {
	return f.matchesIdentities() && len(f.entries()) > 0 && len(f.prove().Invalid) == 0
}

// policyFails says whether the live policy is not the required one.
func (f *facts) policyFails() bool {
	return slices.ContainsFunc(policyChecks, func(c check) bool {
		return slices.ContainsFunc(c.look(f), func(finding Finding) bool { return finding.Outcome == Fail })
	})
}

// checkVerifyFields: a field that this release does not know may widen the
// policy, so it is never ignored.
func checkVerifyFields(f *facts) []Finding {
	if len(f.source.UnknownVerify) == 0 {
		return nil
	}
	return one(Finding{
		Code: VerifyFieldUnknown, Outcome: Unknown, Wait: WaitQuiet,
		Title:    "spec.verify has a field that this release does not know",
		Expected: "only provider, secretRef, matchOIDCIdentity (issuer, subject) and trustedRootSecretRef",
		Found:    strings.Join(f.source.UnknownVerify, ", "),
		Remedy:   "use a release of the gate that knows your Flux version, or remove the field",
	})
}

// checkVerifyPresent: without spec.verify nothing is verified, whatever Ready
// says.
func checkVerifyPresent(f *facts) []Finding {
	if f.source.Object.Spec.Verify != nil {
		return pass(VerifyAbsent, "the live source has a verification policy")
	}
	return one(Finding{
		Code: VerifyAbsent, Outcome: Fail, Wait: WaitQuiet,
		Title: "the live source has no verification policy: anything that is pushed is applied", Expected: "spec.verify", Found: "none",
		Remedy: "see why it did not reach the cluster: a patch whose target matches nothing is dropped without a word (check kind, name and group of its target), and a source made by flux-operator takes it only from FluxInstance spec.kustomize.patches",
	})
}

// checkProvider: only cosign is understood; any other provider reads other
// fields by other rules.
func checkProvider(f *facts) []Finding {
	verify := f.source.Object.Spec.Verify
	if verify == nil {
		return nil
	}
	if verify.Provider == providerCosign {
		return pass(VerifyProvider, "the policy's provider is cosign")
	}
	return one(Finding{
		Code: VerifyProvider, Outcome: Fail, Wait: WaitQuiet,
		Title: "the policy's provider is not one that this release can judge", Expected: "provider cosign", Found: "provider " + orNothing(verify.Provider),
		Remedy: "use provider cosign; notation is not supported by this release of the gate",
	})
}

// checkKeyMissing: a key is required, and the policy is keyless.
func checkKeyMissing(f *facts) []Finding {
	if f.want.Keys == nil || !f.usesCosign() {
		return nil
	}
	if f.source.Object.Spec.Verify.SecretRef != nil {
		return pass(KeyMissing, "the policy verifies with a key")
	}
	return one(Finding{
		Code: KeyMissing, Outcome: Fail, Wait: WaitQuiet,
		Title: "a key is required, and the policy names none", Expected: "spec.verify.secretRef.name " + f.want.Keys.Secret, Found: "no secretRef",
		Remedy: "add secretRef to spec.verify; without it the controller verifies keyless",
	})
}

// checkKeyUnexpected: the controller takes a key before identities, so a key
// nobody asked for decides alone.
func checkKeyUnexpected(f *facts) []Finding {
	if !f.usesCosign() {
		return nil
	}
	verify := f.source.Object.Spec.Verify
	finding := Finding{Code: KeyUnexpected, Outcome: Fail, Wait: WaitQuiet}
	switch {
	case f.want.Keys == nil && verify.SecretRef == nil:
		return pass(KeyUnexpected, "the policy verifies identities, not a key")
	case f.want.Keys == nil && len(verify.MatchOIDCIdentity) > 0:
		return nil // identities-ignored says it
	case f.want.Keys == nil:
		finding.Title = "identities are required, and the policy verifies with a key"
		finding.Expected = "matchOIDCIdentity and no secretRef"
		finding.Found = "secretRef.name " + orNothing(verify.SecretRef.Name)
		finding.Remedy = "remove secretRef from spec.verify and add matchOIDCIdentity, or require the key (required-keys)"
		return one(finding)
	case verify.SecretRef == nil:
		return nil // key-missing says it
	case verify.SecretRef.Name == f.want.Keys.Secret:
		return pass(KeyUnexpected, "the policy takes its keys from Secret "+f.want.Keys.Secret)
	}
	finding.Title = "the policy takes its keys from another Secret"
	finding.Expected = "secretRef.name " + f.want.Keys.Secret
	finding.Found = "secretRef.name " + orNothing(verify.SecretRef.Name)
	finding.Remedy = "correct spec.verify.secretRef, or the secret in required-keys"
	return one(finding)
}

// checkIdentitiesIgnored: with a secretRef the controller takes the key and
// never looks at matchOIDCIdentity.
func checkIdentitiesIgnored(f *facts) []Finding {
	if f.want.Keys != nil || !f.usesCosign() {
		return nil
	}
	verify := f.source.Object.Spec.Verify
	if verify.SecretRef == nil || len(verify.MatchOIDCIdentity) == 0 {
		return nil
	}
	return one(Finding{
		Code: IdentitiesIgnored, Outcome: Fail, Wait: WaitQuiet,
		Title:    "the identities in the policy are ignored, because it names a key",
		Expected: "matchOIDCIdentity without secretRef", Found: "secretRef.name " + orNothing(verify.SecretRef.Name) + " beside matchOIDCIdentity",
		Remedy: "remove secretRef from spec.verify: the controller takes the key and does not look at the identities",
	})
}

// checkUnconstrained: no identity at all, or an issuer or subject that every
// string satisfies, lets any Sigstore signer in (on a .sig signature; a bundle
// fails).
func checkUnconstrained(f *facts) []Finding {
	if !f.matchesIdentities() {
		return nil
	}
	finding := Finding{
		Code: SignerUnconstrained, Outcome: Fail, Wait: WaitQuiet,
		Title:    "the policy does not say who must have signed",
		Expected: "matchOIDCIdentity with an issuer and a subject that not every string satisfies",
		Remedy:   "name the signer: the suggested entry below accepts the required signers and nobody else",
	}
	entries := f.entries()
	if len(entries) == 0 {
		finding.Found = "no matchOIDCIdentity: anybody with a Sigstore certificate passes on a .sig signature"
		return one(finding)
	}
	var open []string
	var undecided []Finding
	for i, e := range entries {
		if err := f.ctx.Err(); err != nil {
			undecided = append(undecided, f.stoppedProof("the proof about the policy (everything)", err))
			break
		}
		for _, side := range []struct{ name, pattern string }{{"issuer", e.Issuer}, {"subject", e.Subject}} {
			everything, err := signer.AcceptsEverything(side.pattern)
			switch {
			case errors.Is(err, signer.ErrTooLarge):
				// A pass would claim what was not decided.
				undecided = append(undecided, f.undecidedProof(signer.Undecided{Question: "everything", Pattern: side.pattern, Err: err}))
			case err != nil:
				continue // matcher-invalid says it
			case everything && side.pattern == "":
				open = append(open, fmt.Sprintf("matchOIDCIdentity[%d].%s is empty", i, side.name))
			case everything:
				open = append(open, fmt.Sprintf("matchOIDCIdentity[%d].%s %q accepts every string", i, side.name, side.pattern))
			}
		}
	}
	switch {
	case len(open) > 0:
		finding.Found = strings.Join(open, "; ")
		return one(finding)
	case len(undecided) > 0:
		return undecided
	}
	return pass(SignerUnconstrained, "the policy names an issuer and a subject")
}

// checkMatchers: the controller compiles the patterns when it verifies, not
// when they are admitted.
func checkMatchers(f *facts) []Finding {
	if !f.matchesIdentities() || len(f.entries()) == 0 {
		return nil
	}
	invalid := f.prove().Invalid
	if len(invalid) == 0 {
		return pass(MatcherInvalid, "the policy's patterns are RE2")
	}
	var texts []string
	for _, p := range invalid {
		texts = append(texts, fmt.Sprintf("matchOIDCIdentity[%d].%s %q: %v", p.Entry, p.Field, p.Pattern, p.Err))
	}
	return one(Finding{
		Code: MatcherInvalid, Outcome: Fail, Wait: WaitQuiet,
		Title: "a pattern of the policy does not compile", Expected: "Go RE2 patterns (no look-ahead, no back-reference)", Found: strings.Join(texts, "; "),
		Remedy: "correct the pattern: the API server admits it, and the controller then refuses every artifact",
	})
}

// checkMultiple: more than one entry is refused as a whole for bundle
// signatures and is an OR for .sig signatures. So what the controller made of
// the artifact that is serving decides.
func checkMultiple(f *facts) []Finding {
	if !f.matchesIdentities() || len(f.entries()) == 0 {
		return nil
	}
	count := len(f.entries())
	if count == 1 {
		return pass(MatchersMultiple, "the policy has one identity entry")
	}
	finding := Finding{
		Code: MatchersMultiple, Outcome: Fail, Wait: WaitQuiet,
		Title:    fmt.Sprintf("the policy has %d identity entries: the controller refuses every bundle signature", count),
		Expected: "one entry in matchOIDCIdentity", Found: fmt.Sprintf("%d entries", count),
		Remedy: "merge them into one entry with an alternation; the suggested entry below does that",
	}
	switch f.source.verification() {
	case verificationGood:
		finding.Outcome, finding.Wait = Note, WaitNone
		finding.Title = fmt.Sprintf("the policy has %d identity entries: it works for this .sig signature, and would refuse any bundle", count)
	case verificationOutstanding:
		finding.Wait = WaitDeadline
	}
	return one(finding)
}

// checkProofDecided: a question that the proof could not answer is unknown,
// never a pass.
func checkProofDecided(f *facts) []Finding {
	if !f.provable() {
		return nil
	}
	var findings []Finding
	for _, u := range f.prove().Undecided {
		findings = append(findings, f.undecidedProof(u))
	}
	return findings
}

// checkVacuous: a required signer whom no certificate can name makes a
// requirement that nothing can meet or miss.
func checkVacuous(f *facts) []Finding {
	if !f.provable() {
		return nil
	}
	var findings []Finding
	for _, s := range f.prove().Vacuous {
		findings = append(findings, Finding{
			Code: BadInput, Outcome: Unknown,
			Title:    "a required signer can never be issued a certificate",
			Expected: "an identity that the Sigstore in force can issue (docs/policy-proof.md)", Found: s.String(),
			Remedy: "correct required-signers: look at the spelling of the issuer, repository, workflow file and ref",
		})
	}
	return findings
}

// checkSignerMissing: required ⊆ live.
func checkSignerMissing(f *facts) []Finding {
	if !f.provable() {
		return nil
	}
	answer := f.prove()
	if len(answer.Missing) == 0 {
		if !f.proved() || len(answer.Vacuous) > 0 {
			return nil
		}
		return pass(SignerMissing, "the live policy accepts every required signer (proved)")
	}
	var findings []Finding
	for _, m := range answer.Missing {
		findings = append(findings, Finding{
			Code: SignerMissing, Outcome: Fail, Wait: WaitQuiet,
			Title:    "the live policy does not accept a required signer",
			Expected: "accepted: " + m.Signer.String(), Found: "refused: " + showIdentity(m.Witness),
			Remedy: "add the signer to spec.verify.matchOIDCIdentity; the suggested entry below accepts all of them and nobody else",
		})
	}
	return findings
}

// checkTooWide: live ⊆ required ∪ allowed, over the identities that can be
// issued.
func checkTooWide(f *facts) []Finding {
	if !f.provable() {
		return nil
	}
	answer := f.prove()
	switch {
	case answer.TooWide != nil:
		found := "accepted: " + showIdentity(*answer.TooWide)
		if familiar := answer.Familiar; familiar != nil && *familiar != *answer.TooWide {
			// The shortest identity can look odd enough to be shrugged off.
			found += "; and, in the usual shape, " + showIdentity(*familiar)
		}
		return one(Finding{
			Code: PolicyTooWide, Outcome: Fail, Wait: WaitQuiet,
			Title:    "the live policy accepts somebody who is neither required nor allowed",
			Expected: "nobody but the required and allowed signers", Found: found,
			Remedy: "tighten the pattern (the suggested entry below is exact), or name this signer in allowed-signers",
		})
	case !f.proved():
		return nil
	}
	return pass(PolicyTooWide, "the live policy accepts nobody else (proved)")
}

// checkLoose: strings that no authority issues today are accepted too. Under a
// custom trusted root there are none: everything counts as issuable.
func checkLoose(f *facts) []Finding {
	if !f.provable() || f.everythingIssuable() {
		return nil
	}
	answer := f.prove()
	switch {
	case answer.Loose != nil:
		finding := Finding{
			Code: PolicyLoose, Outcome: Note,
			Title:    "the live policy accepts strings that cannot be issued: harmless while the table of forms is right",
			Expected: "patterns that are exact", Found: "accepted: " + showIdentity(*answer.Loose),
			Remedy: "anchor the patterns and escape their dots; the suggested entry below is exact",
		}
		if f.want.LooseFails {
			finding.Outcome, finding.Wait = Fail, WaitQuiet
		}
		return one(finding)
	case !f.proved():
		return nil
	}
	return pass(PolicyLoose, "the live policy accepts no string that cannot be issued (proved)")
}

// checkTrustedRoot: a private Sigstore issues what its owner wants.
func checkTrustedRoot(f *facts) []Finding {
	if !f.matchesIdentities() || f.source.Object.Spec.Verify.TrustedRootSecretRef == nil {
		return nil
	}
	return note(TrustedRootCustom,
		"the policy trusts a private Sigstore (Secret "+orNothing(f.source.Object.Spec.Verify.TrustedRootSecretRef.Name)+"): who may be issued which identity is its owner's word",
		"see that only its owner can change that Secret")
}

// checkKeysUnread: reading Secrets is a power that the gate does not ask for.
func checkKeysUnread(f *facts) []Finding {
	if f.want.Keys == nil || !f.usesCosign() || f.source.Object.Spec.Verify.SecretRef == nil {
		return nil
	}
	return note(KeysUnread,
		"the keys in Secret "+orNothing(f.source.Object.Spec.Verify.SecretRef.Name)+" were not read: who else they admit was not looked at",
		"review who may write that Secret; every entry that ends in .pub admits its key")
}

func showIdentity(id signer.Identity) string {
	return "issuer " + id.Issuer + ", subject " + id.Subject
}

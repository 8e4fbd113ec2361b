package gate

import (
	"fmt"
	"slices"
	"strings"

	"flux-verify-gate/gate/signer"
)

// results tells every candidate as the report does.
func (j judgement) results() []SignerResult {
	results := make([]SignerResult, 0, len(j.s.Found))
	for _, s := range j.s.Found {
		r := SignerResult{
			Issuer: s.Identity.Issuer, Subject: s.Identity.Subject, Key: s.Key, Claims: s.Claims,
			Layout: s.Layout, Kind: s.Kind, PredicateType: s.PredicateType,
			Verified: s.Verified, Counts: j.countsForSomebody(s),
		}
		if !r.Counts {
			r.Why = j.why(s)
		}
		results = append(results, r)
	}
	return results
}

// why says why a candidate does not count.
func (j judgement) why(s Signature) string {
	if !s.Verified {
		return tellStep(s)
	}
	if j.want.Keys != nil {
		return fmt.Sprintf("an attestation of the type %s, which does not count as a signature", s.PredicateType)
	}
	for _, required := range j.want.Required {
		if !required.Matches(s.Identity) {
			continue
		}
		if !j.want.kindCounts(s) {
			return fmt.Sprintf("an attestation of the type %s, which does not count as a signature", s.PredicateType)
		}
		return "other claims: " + strings.Join(differingClaims(required.Claims, s.Claims), "; ")
	}
	if slices.ContainsFunc(j.want.Allowed, func(a signer.Signer) bool { return a.Matches(s.Identity) }) {
		return "an allowed signer, which may sign and does not count"
	}
	return nearest(j.want.Required, s).text
}

// differingClaims compares the claims that are required; each difference is
// told with both sides.
func differingClaims(required, found signer.Claims) []string {
	var differing []string
	for _, claim := range []struct{ name, required, found string }{
		{"source-repository", required.SourceRepository, found.SourceRepository},
		{"source-repository-id", required.SourceRepositoryID, found.SourceRepositoryID},
		{"source-ref", required.SourceRef, found.SourceRef},
		{"runner-environment", required.RunnerEnvironment, found.RunnerEnvironment},
		{"build-trigger", required.BuildTrigger, found.BuildTrigger},
		{"build-signer-uri", required.BuildSignerURI, found.BuildSignerURI},
	} {
		if claim.required != "" && claim.required != claim.found {
			differing = append(differing, fmt.Sprintf("%s is %q instead of %q", claim.name, claim.found, claim.required))
		}
	}
	return differing
}

// most is how many of a list are told in one finding; the report has them all.
const most = 5

func some(told []string) string {
	if len(told) <= most {
		return strings.Join(told, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(told[:most], "; "), len(told)-most)
}

func distinct(told []string) []string {
	var once []string
	for _, s := range told {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}

func tellStep(s Signature) string {
	told := fmt.Sprintf("refused at the step %s: %s", s.Step, s.Why)
	if s.Hint != "" {
		told += " (" + s.Hint + ")"
	}
	return told
}

func tellRefused(refused []Signature) string {
	told := make([]string, 0, len(refused))
	for _, s := range refused {
		who := "a candidate"
		if s.Identity.Subject != "" {
			who = s.Identity.Subject
		}
		told = append(told, who+" "+tellStep(s))
	}
	return some(distinct(told))
}

func tellIdentities(found []Signature) string {
	told := make([]string, 0, len(found))
	for _, s := range found {
		told = append(told, s.Identity.Subject)
	}
	return some(distinct(told))
}

func tellSigners(signers []signer.Signer) string {
	told := make([]string, 0, len(signers))
	for _, s := range signers {
		told = append(told, tellSigner(s))
	}
	return some(told)
}

func tellSigner(s signer.Signer) string {
	if s.Shorthand != "" {
		return s.Shorthand
	}
	if s.SubjectPattern != "" {
		return "a subject that matches " + s.SubjectPattern
	}
	return s.Subject
}

// remedyFor is the next step where a signature does not hold.
func remedyFor(s Signature) string {
	switch s.Step {
	case StepBinding:
		return "sign the digest that is being served; this signature is about another"
	case StepFetch:
		return "push the signature again: what the registry lists it does not hold whole"
	case StepLog, StepTime:
		return "sign again with the transparency log, and check that trusted-root knows the log that was used"
	case StepCertificate, StepSCT:
		return "check that trusted-root is the Sigstore that was signed with"
	}
	return "sign again; if that does not help, look at who can push to the repository"
}

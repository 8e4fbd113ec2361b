package gate

import (
	"fmt"
	"slices"
	"strings"

	"flux-verify-gate/gate/signer"
)

// JudgeSignatures says whether a required signer has signed the artifact that
// is being served (docs/checks.md, section D): the findings, and every
// candidate with what it counts for. It is not asked when signature is skip.
//
// A required signature that verified suffices. Whatever else lies beside it,
// foreign, broken, huge or unreadable, is then a note: whoever can push to the
// repository must not be able to turn the gate red. Without one, anything that
// could not be looked at makes the answer unknown, because the signature may be
// there; and only a search that was complete can find the artifact unsigned.
func JudgeSignatures(want Requirements, s Signatures, digest string) ([]Finding, []SignerResult) {
	if s.Digest != digest || digest == "" {
		return []Finding{{
			Code: NoAnswer, Outcome: Unknown, Wait: WaitLook,
			Title:    "the signatures of the artifact that is being served have not been looked at",
			Expected: digest, Found: s.Digest, Remedy: "run again",
		}}, nil
	}
	j := judgement{want: want, s: s}
	if want.SignedBy(s.Found) {
		return j.signed(), j.results()
	}
	return j.unsigned(), j.results()
}

// SignedBy reports whether the signatures suffice: one by a required signer or
// key, or with RequireAll one by every required signer, each by a different
// identity.
func (r Requirements) SignedBy(found []Signature) bool {
	if r.Keys != nil {
		return slices.ContainsFunc(found, func(s Signature) bool { return r.counts(s) && s.Key != "" })
	}
	if len(r.Required) == 0 {
		return false
	}
	matched := 0
	for _, by := range r.match(found) {
		if by != nil {
			matched++
		}
	}
	if r.RequireAll {
		return matched == len(r.Required)
	}
	return matched > 0
}

// counts reports whether a signature verified and is of a kind that counts: a
// signature, or an attestation of a predicate type that was asked for.
func (r Requirements) counts(s Signature) bool {
	return s.Verified && r.kindCounts(s)
}

func (r Requirements) kindCounts(s Signature) bool {
	switch s.Kind {
	case KindSignature:
		return true
	case KindAttestation:
		return slices.Contains(r.Attestations, s.PredicateType)
	}
	return false
}

// satisfies reports whether a signature is what one required signer asks for.
func (r Requirements) satisfies(required signer.Signer, s Signature) bool {
	return r.counts(s) && s.Key == "" && required.Matches(s.Identity) && len(differingClaims(required.Claims, s.Claims)) == 0
}

// match gives every required signer an identity of its own that signed for it,
// to as many as can have one at once (a maximum matching, by augmenting paths);
// nil for a signer that is left without.
func (r Requirements) match(found []Signature) []*signer.Identity {
	var identities []signer.Identity
	for _, s := range found {
		if r.counts(s) && s.Key == "" && !slices.Contains(identities, s.Identity) {
			identities = append(identities, s.Identity)
		}
	}
	edge := func(n int, id signer.Identity) bool {
		return slices.ContainsFunc(found, func(s Signature) bool {
			return s.Identity == id && r.satisfies(r.Required[n], s)
		})
	}
	owner := make([]int, len(identities)) // which required signer has it, from 1
	var give func(n int, tried []bool) bool
	give = func(n int, tried []bool) bool {
		for i, id := range identities {
			if tried[i] || !edge(n, id) {
				continue
			}
			tried[i] = true
			if owner[i] == 0 || give(owner[i]-1, tried) {
				owner[i] = n + 1
				return true
			}
		}
		return false
	}
	for n := range r.Required {
		give(n, make([]bool, len(identities)))
	}
	matched := make([]*signer.Identity, len(r.Required))
	for i, n := range owner {
		if n > 0 {
			matched[n-1] = &identities[i]
		}
	}
	return matched
}

// judgement is one question to JudgeSignatures.
type judgement struct {
	want Requirements
	s    Signatures
}

// signed are the findings where the signatures suffice.
func (j judgement) signed() []Finding {
	counting := 0
	for _, s := range j.s.Found {
		if j.countsForSomebody(s) {
			counting++
		}
	}
	findings := []Finding{}
	if named := j.refusedNaming(); len(named) > 0 {
		findings = append(findings, Finding{
			Code: SignatureInvalid, Outcome: Note,
			Title:    "beside a valid signature lies one that names a required signer and fails",
			Expected: "nothing else under this digest", Found: tellRefused(named),
			Remedy: "look at who can push to the repository, and remove it",
		})
	} else {
		findings = append(findings, Finding{Code: SignatureInvalid, Outcome: Pass, Title: "no signature that names a required signer fails"})
	}
	findings = append(findings,
		Finding{Code: SignedByOthers, Outcome: Pass, Title: "a required signer has signed the artifact"},
		Finding{Code: NotASignature, Outcome: Pass, Title: "what was signed counts as a signature"},
		Finding{Code: Unsigned, Outcome: Pass, Title: fmt.Sprintf("the artifact is signed: signatures that count: %d", counting), Found: j.s.Reference},
	)
	if slices.ContainsFunc(j.want.Required, func(r signer.Signer) bool { return r.Claims != (signer.Claims{}) }) {
		findings = append(findings, Finding{Code: ClaimsMismatch, Outcome: Pass, Title: "the claims in the certificate are as required"})
	}
	findings = append(findings, j.shared()...)
	for _, f := range j.s.Failures {
		findings = append(findings, failureNote(f))
	}
	return findings
}

func (j judgement) countsForSomebody(s Signature) bool {
	if j.want.Keys != nil {
		return j.want.counts(s) && s.Key != ""
	}
	return slices.ContainsFunc(j.want.Required, func(r signer.Signer) bool { return j.want.satisfies(r, s) })
}

// unsigned are the findings where the signatures do not suffice.
func (j judgement) unsigned() []Finding {
	if len(j.s.Failures) > 0 {
		var findings []Finding
		for _, f := range j.s.Failures {
			findings = append(findings, failureFinding(f))
		}
		return findings
	}
	if !j.s.Complete || !j.s.ManifestRead {
		return []Finding{{
			Code: RegistryUnreachable, Outcome: Unknown, Wait: WaitDeadline,
			Title:    "the search for signatures was not complete",
			Expected: "every place where a signature may be", Found: j.s.Reference, Remedy: "run again",
		}}
	}
	if j.want.Keys != nil {
		return j.noKey()
	}
	return j.noSigner()
}

// noSigner says for the required signers that are missing what is there
// instead.
func (j judgement) noSigner() []Finding {
	matched := j.want.match(j.s.Found)
	var missing, present []signer.Signer
	for n, required := range j.want.Required {
		if matched[n] == nil {
			missing = append(missing, required)
		} else {
			present = append(present, required)
		}
	}
	var claims, attested, sharedOne []string
	for _, required := range missing {
		for _, s := range j.s.Found {
			if !s.Verified || s.Key != "" || !required.Matches(s.Identity) {
				continue
			}
			differing := differingClaims(required.Claims, s.Claims)
			switch {
			case !j.want.kindCounts(s):
				attested = append(attested, fmt.Sprintf("%s of the type %s by %s", s.Kind, s.PredicateType, s.Identity.Subject))
			case len(differing) > 0:
				claims = append(claims, s.Identity.Subject+": "+strings.Join(differing, "; "))
			default:
				sharedOne = append(sharedOne, s.Identity.Subject)
			}
		}
	}
	var others []Signature
	for _, s := range j.s.Found {
		if s.Verified && s.Key == "" && !slices.ContainsFunc(j.want.Required, func(r signer.Signer) bool { return r.Matches(s.Identity) }) {
			others = append(others, s)
		}
	}

	var findings []Finding
	if named := namedBy(missing, j.s.Found); len(named) > 0 {
		findings = append(findings, Finding{
			Code: SignatureInvalid, Outcome: Fail,
			Title:    "a signature names a required signer and does not hold",
			Expected: "a valid signature of " + j.s.Digest, Found: tellRefused(named),
			Remedy: remedyFor(named[0]),
		})
	}
	if len(others) > 0 {
		f := j.byOthers(missing, others)
		if len(present) > 0 {
			f.Title, f.Wait = "not every required signer has signed, and others have", WaitMinute
		}
		findings = append(findings, f)
	}
	if len(attested) > 0 {
		findings = append(findings, Finding{
			Code: NotASignature, Outcome: Fail,
			Title:    "a required signer has attested something about the artifact and has not signed it",
			Expected: "a cosign signature by " + tellSigners(missing), Found: strings.Join(distinct(attested), "; "),
			Remedy: "sign the artifact (cosign sign), or name the predicate type in attestations",
		})
	}
	if len(claims) > 0 {
		findings = append(findings, Finding{
			Code: ClaimsMismatch, Outcome: Fail,
			Title:    "a required signer has signed with other claims than required",
			Expected: "the claims of the required signer", Found: strings.Join(distinct(claims), " · "),
			Remedy: "build where and how the policy says, or correct the claims in required-signers",
		})
	}
	if len(findings) > 0 {
		return findings
	}
	switch {
	case len(sharedOne) > 0:
		return []Finding{{
			Code: SignedByOthers, Outcome: Fail,
			Title:    "one signer has signed where several are required, and counts once",
			Expected: "a signature by each of " + tellSigners(j.want.Required) + ", every one by a different identity",
			Found:    strings.Join(distinct(sharedOne), "; "),
			Remedy:   "let a second signer sign, or require one signer only",
			Wait:     WaitMinute,
		}}
	case len(present) > 0:
		return []Finding{{
			Code: SignedByOthers, Outcome: Fail,
			Title:    "not every required signer has signed",
			Expected: "a signature by " + tellSigners(missing), Found: "signatures by " + tellSigners(present),
			Remedy: "let the missing signer sign the digest " + j.s.Digest,
			Wait:   WaitMinute,
		}}
	}
	return []Finding{j.nothing("a signature by " + tellSigners(missing))}
}

// noKey says what is there instead of a signature by a required key.
func (j judgement) noKey() []Finding {
	var attested, refused, certified []Signature
	for _, s := range j.s.Found {
		switch {
		case s.Verified:
			attested = append(attested, s)
		case s.Step == StepCertificate:
			certified = append(certified, s)
		case s.Step == StepSignature || s.Step == StepBinding:
			refused = append(refused, s)
		}
	}
	switch {
	case len(refused) > 0:
		return []Finding{{
			Code: SignatureInvalid, Outcome: Fail,
			Title:    "signatures made with a key are there, and none is a required key's over this digest",
			Expected: fmt.Sprintf("a signature of %s by one of %d required keys", j.s.Digest, len(j.want.Keys.PEM)), Found: tellRefused(refused),
			Remedy: "sign with a required key, or correct keys in required-keys",
		}}
	case len(attested) > 0:
		return []Finding{{
			Code: NotASignature, Outcome: Fail,
			Title:    "a required key has attested something about the artifact and has not signed it",
			Expected: "a cosign signature", Found: "an attestation of the type " + attested[0].PredicateType,
			Remedy: "sign the artifact (cosign sign --key), or name the predicate type in attestations",
		}}
	case len(certified) > 0:
		return []Finding{{
			Code: SignedByOthers, Outcome: Fail,
			Title:    "the artifact carries signatures made with a certificate, and a key is required",
			Expected: "a signature by a required key", Found: tellIdentities(certified),
			Remedy: "sign with the key, or require signers instead of keys",
		}}
	}
	return []Finding{j.nothing("a signature by a required key")}
}

// byOthers lists who did sign, and what differs from who should have.
func (j judgement) byOthers(missing []signer.Signer, others []Signature) Finding {
	var told []string
	var best *nearMiss
	for _, s := range others {
		miss := nearest(missing, s)
		line := fmt.Sprintf("%s (issuer %s): %s", s.Identity.Subject, s.Identity.Issuer, miss.text)
		if slices.ContainsFunc(j.want.Allowed, func(a signer.Signer) bool { return a.Matches(s.Identity) }) {
			line = fmt.Sprintf("%s (issuer %s), an allowed signer, which may sign and does not count", s.Identity.Subject, s.Identity.Issuer)
		}
		told = append(told, line)
		if best == nil || miss.distance < best.distance {
			best = &miss
		}
	}
	return Finding{
		Code: SignedByOthers, Outcome: Fail,
		Title:    "the artifact is signed, and not by a required signer",
		Expected: "a signature by " + tellSigners(missing),
		Found:    some(distinct(told)),
		Remedy:   best.remedy,
	}
}

// nothing is the finding that there is no signature.
func (j judgement) nothing(expected string) Finding {
	f := Finding{
		Code: Unsigned, Outcome: Fail, Wait: WaitMinute,
		Title:    "the artifact is there, and no signature of it is",
		Expected: expected,
		Found:    "no bundle among the referrers and no tag with signatures",
		Remedy:   "sign the digest " + j.s.Digest + " in this repository; if it is a mirror, copy the signatures with the artifact",
	}
	if len(j.s.Found) > 0 {
		f.Title = "the artifact is there, and no valid signature of it is"
		f.Found = tellRefused(j.s.Found)
	}
	if len(j.s.Hints) > 0 {
		f.Found += "; " + strings.Join(j.s.Hints, "; ")
	}
	return f
}

// shared notes that other repositories get the same identity.
func (j judgement) shared() []Finding {
	var findings []Finding
	var seen []string
	for _, s := range j.s.Found {
		if !j.countsForSomebody(s) || j.want.Keys != nil {
			continue
		}
		built := s.Claims.SourceRepository
		own, ok := parseSubject(s.Identity.Subject)
		if built == "" || !ok || strings.EqualFold(built, own.repositoryURL()) || slices.Contains(seen, s.Identity.Subject) {
			continue
		}
		seen = append(seen, s.Identity.Subject)
		remedy := "require source-repository-id: " + quote(s.Claims.SourceRepositoryID) + " beside the identity"
		pinned := slices.ContainsFunc(j.want.Required, func(r signer.Signer) bool {
			return j.want.satisfies(r, s) && r.Claims.SourceRepositoryID != ""
		})
		if pinned {
			remedy = "nothing here: the gate requires the repository's id; the controller cannot, and accepts every caller"
		}
		findings = append(findings, Finding{
			Code: SignerShared, Outcome: Note,
			Title:    "the signer is a reusable workflow: every repository that may call it gets the same identity",
			Expected: "a subject in " + built, Found: s.Identity.Subject, Remedy: remedy,
		})
	}
	return findings
}

// refusedNaming are the refused candidates that name a required signer.
func (j judgement) refusedNaming() []Signature {
	if j.want.Keys != nil {
		return nil
	}
	return namedBy(j.want.Required, j.s.Found)
}

// namedBy are the refused candidates whose certificate, verified or not, names
// one of the signers.
func namedBy(signers []signer.Signer, found []Signature) []Signature {
	var named []Signature
	for _, s := range found {
		if !s.Verified && s.Identity != (signer.Identity{}) &&
			slices.ContainsFunc(signers, func(r signer.Signer) bool { return r.Matches(s.Identity) }) {
			named = append(named, s)
		}
	}
	return named
}

// failureFinding is a failure as a finding: unknown.
func failureFinding(f Failure) Finding {
	finding := Finding{Code: f.Code, Outcome: Unknown, Title: f.Title, Expected: f.Expected, Found: f.Found, Remedy: f.Remedy}
	switch {
	case f.Code == APIMissing:
		// The CRDs may be part of the deployment.
		finding.Wait = WaitMinute
	case f.Transient:
		finding.Wait = WaitDeadline
	}
	return finding
}

// failureNote is a failure that no longer matters.
func failureNote(f Failure) Finding {
	finding := failureFinding(f)
	finding.Outcome, finding.Wait = Note, WaitNone
	return finding
}

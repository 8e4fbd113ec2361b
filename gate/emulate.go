package gate

import (
	"regexp"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate/signer"
)

// series is a line of source-controller releases that verifies in one way.
type series struct {
	name string
	// bundles says that Sigstore bundles among the referrers are found. Before,
	// only the tag sha256-<hex>.sig is looked at (cosign v2 in
	// source-controller v1.7, cosign v3 from v1.8 on).
	bundles bool
	// customRoot says that trustedRootSecretRef is known (v1.9).
	customRoot bool
	// fingerprint says that status.sourceVerificationFingerprint is written
	// (v1.10).
	fingerprint bool
}

// supported are the series that the gate knows, oldest first.
var supported = []series{
	{name: "1.7"},
	{name: "1.8", bundles: true},
	{name: "1.9", bundles: true, customRoot: true},
	{name: "1.10", bundles: true, customRoot: true, fingerprint: true},
}

// couldBe lists the series that may have written the object: what they do not
// know they cannot have written.
func couldBe(s *Source) []series {
	var found []series
	for _, v := range supported {
		switch {
		case s.Fingerprint != "" && !v.fingerprint:
		case s.Object.Spec.Verify != nil && s.Object.Spec.Verify.TrustedRootSecretRef != nil && !v.customRoot:
		default:
			found = append(found, v)
		}
	}
	return found
}

// opinion is what a controller would say of signatures under a policy.
type opinion struct {
	accepts bool
	// unsure says that either answer is possible.
	unsure bool
	class  Class
	// looked is the layout that decided; empty where there was nothing.
	looked Layout
	why    string
}

// emulate says what a series of source-controller would say of these signatures
// under this policy. It mirrors internal/oci/cosign/cosign.go (v1.9) and the
// cosign that it calls: bundles hide the tag layout, any bundle counts whatever
// its predicate, bundles take exactly one identity, the tag layout takes the
// entries as an OR and none as anybody, patterns are searched.
func (v series) emulate(verify *sourcev1.OCIRepositoryVerification, found []Signature) opinion {
	layout := LayoutTag
	if v.bundles && slices.ContainsFunc(found, func(s Signature) bool { return s.Layout == LayoutBundle }) {
		layout = LayoutBundle
	}
	var seen []Signature
	for _, s := range found {
		if s.Layout == layout {
			seen = append(seen, s)
		}
	}
	if len(seen) == 0 {
		return opinion{class: ClassNoSignature, why: "finds no signature in the layouts that it looks at"}
	}
	o := judge(verify, layout, seen)
	o.looked = layout
	if !o.accepts && slices.ContainsFunc(seen, mayReadOtherwise) {
		o.unsure = true
	}
	return o
}

// judge says what the controller makes of the signatures in the layout that it
// looks at. Every series does it alike.
func judge(verify *sourcev1.OCIRepositoryVerification, layout Layout, seen []Signature) opinion {
	if verify.SecretRef != nil {
		if slices.ContainsFunc(seen, func(s Signature) bool { return s.Verified && s.Key != "" }) {
			return opinion{accepts: true, why: "accepts the signature by the key"}
		}
		return opinion{class: ClassNoMatchingKey, why: "finds no signature by a key"}
	}
	entries := verify.MatchOIDCIdentity
	if layout == LayoutBundle {
		switch {
		case len(entries) == 0:
			return opinion{class: ClassNoIdentity, why: "refuses every bundle without an identity in the policy"}
		case len(entries) > 1:
			return opinion{class: ClassMultipleIdentities, why: "refuses every bundle with several identities in the policy"}
		case entries[0].Issuer == "" || entries[0].Subject == "":
			return opinion{class: ClassNoIdentity, why: "refuses every bundle with an empty issuer or subject in the policy"}
		}
	}
	for _, s := range seen {
		if !s.Verified || s.Key != "" {
			continue
		}
		matches, err := admits(entries, layout, s)
		if err != nil {
			return opinion{class: ClassBadPattern, why: "cannot compile a pattern of the policy"}
		}
		if matches {
			return opinion{accepts: true, why: "accepts the " + string(s.Kind) + " by " + s.Identity.Subject}
		}
	}
	return opinion{class: ClassWrongSigner, why: "finds no valid signature by an identity of the policy"}
}

// admits says whether the entries match a certificate. The tag layout looks at
// every name in it, a bundle at the one that counts.
func admits(entries []sourcev1.OIDCIdentityMatch, layout Layout, s Signature) (bool, error) {
	if len(entries) == 0 {
		return layout == LayoutTag, nil
	}
	names := []string{s.Identity.Subject}
	if layout == LayoutTag && len(s.Subjects) > 0 {
		names = s.Subjects
	}
	for _, entry := range entries {
		issuer, err := regexp.Compile(entry.Issuer)
		if err != nil {
			return false, err
		}
		subject, err := regexp.Compile(entry.Subject)
		if err != nil {
			return false, err
		}
		if issuer.MatchString(s.Identity.Issuer) && slices.ContainsFunc(names, subject.MatchString) {
			return true, nil
		}
	}
	return false, nil
}

// mayReadOtherwise says that a controller may come to another answer about a
// candidate than the gate: bytes that the gate could not read, and log entries
// of Rekor v2, which some cosign versions do not parse.
func mayReadOtherwise(s Signature) bool {
	if s.Step == StepFetch || s.Step == StepParse {
		return true
	}
	return slices.ContainsFunc(s.EntryKinds, func(kind string) bool { return strings.HasSuffix(kind, "/0.0.2") })
}

// couldHaveAccepted says whether there was a moment at which this series would
// have accepted some of these signatures: signatures are added over time, and
// one alone suffices.
func (v series) couldHaveAccepted(verify *sourcev1.OCIRepositoryVerification, found []Signature) bool {
	return slices.ContainsFunc(found, func(s Signature) bool {
		o := v.emulate(verify, []Signature{s})
		return o.accepts || o.unsure
	})
}

// identityOrKey names who made a signature.
func identityOrKey(s Signature) string {
	if s.Identity != (signer.Identity{}) {
		return s.Identity.Subject
	}
	return "key " + s.Key
}

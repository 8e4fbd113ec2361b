package gate

import (
	"regexp"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// series is a line of source-controller releases that verifies in one way. What
// stands here was read in the source of v1.7.3 and v1.9.3
// (internal/oci/cosign/cosign.go), and of the cosign and sigstore-go that they,
// v1.8.0, v1.8.5, v1.9.0 and v1.10.1 are built with (go.mod). test/e2e compares
// 1.7 and 1.9 with running controllers; 1.8 and 1.10 were only read.
type series struct {
	name string
	// bundles says that Sigstore bundles among the referrers are found. Before,
	// only the tag sha256-<hex>.sig is looked at (cosign v2.5 in
	// source-controller v1.7, cosign v3 from v1.8 on).
	bundles bool
	// dsseV2 says that log entries of the kind dsse/0.0.2 are read. sigstore-go
	// reads them in v1.1 (source-controller v1.8) and no longer from v1.2 on,
	// which this gate is built with too; all that read bundles read
	// hashedrekord/0.0.2, the other kind of Rekor v2.
	dsseV2 bool
	// sharedTime says that whether a time stamp is asked for is one setting for
	// all bundles of an artifact, which are verified at once (cosign v3.0): a
	// bundle of Rekor v2 beside one of Rekor v1 may then ask the other for a
	// stamp that it does not have.
	sharedTime bool
	// customRoot says that trustedRootSecretRef is known (v1.9).
	customRoot bool
	// fingerprint says that status.sourceVerificationFingerprint is written
	// (v1.10).
	fingerprint bool
}

// supported are the series that the gate knows, oldest first.
var supported = []series{
	{name: "1.7"},
	{name: "1.8", bundles: true, dsseV2: true, sharedTime: true},
	{name: "1.9", bundles: true, sharedTime: true, customRoot: true},
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
	// unsure says that either answer is possible; accepts is then false.
	unsure bool
	// class is the class of a refusal; empty for any other opinion.
	class Class
	// looked is the layout that decided; empty where there was nothing.
	looked Layout
	// by is the signature that is accepted.
	by *Signature
	// why ends a sentence that begins with the controller.
	why string
}

// refuses says that no answer but a refusal is possible.
func (o opinion) refuses() bool { return !o.accepts && !o.unsure }

// emulate says what a series of source-controller would say of these signatures
// under this policy. It mirrors internal/oci/cosign/cosign.go (v1.9.3) and the
// cosign that it calls: a bundle that can be read hides the tag layout.
func (v series) emulate(verify *sourcev1.OCIRepositoryVerification, found []Signature) opinion {
	var bundles, doubtful, tags []Signature
	for _, s := range found {
		switch {
		case s.Layout == LayoutTag:
			tags = append(tags, s)
		case !v.bundles || v.passesOver(s):
		case unread(s):
			doubtful = append(doubtful, s)
		default:
			bundles = append(bundles, s)
		}
	}
	if len(bundles) > 0 {
		return v.judge(verify, LayoutBundle, append(bundles, doubtful...))
	}
	o := v.judge(verify, LayoutTag, tags)
	if len(doubtful) == 0 {
		return o
	}
	// A bundle that the gate could not read is passed over by a controller that
	// cannot read it either, and hides the tag layout from one that can.
	if hidden := v.judge(verify, LayoutBundle, doubtful); hidden.refuses() && o.refuses() && hidden.class == o.class {
		return o
	}
	return opinion{unsure: true, looked: LayoutBundle, why: "may be able to read a bundle that the gate cannot read"}
}

// passesOver says that the controller passes over a bundle as if it were none:
// because of its version (cosign v3, pkg/oci/remote, Bundle), or because it has
// a log entry of a kind that cannot be read.
func (v series) passesOver(s Signature) bool {
	if strings.HasSuffix(s.MediaType, ";version=0.1") || strings.HasSuffix(s.MediaType, ";version=0.2") {
		return true
	}
	return !v.dsseV2 && s.Step == StepParse && unread(s) && slices.Contains(s.EntryKinds, "dsse/0.0.2")
}

// unread says that the gate did not come to know what a candidate is. The media
// type is what sigstore-go has read in a bundle.
func unread(s Signature) bool {
	return s.Step == StepFetch || s.Step == StepParse && s.MediaType == ""
}

// judge says what the controller makes of the signatures in the layout that it
// looks at.
func (v series) judge(verify *sourcev1.OCIRepositoryVerification, layout Layout, seen []Signature) opinion {
	o := v.decide(verify, layout, seen)
	if len(seen) > 0 {
		o.looked = layout
	}
	return o
}

func (v series) decide(verify *sourcev1.OCIRepositoryVerification, layout Layout, seen []Signature) opinion {
	if verify.SecretRef != nil {
		return decideKeyed(layout, seen)
	}
	if len(seen) == 0 {
		return opinion{class: ClassNoSignature, why: "finds no signature"}
	}
	entries := verify.MatchOIDCIdentity
	if layout == LayoutBundle {
		if refusal := refusesBundles(entries); refusal != nil {
			return *refusal
		}
	}
	accepted, bad := matching(entries, layout, seen)
	switch {
	case len(accepted) > 0 && v.sharedTime && layout == LayoutBundle && !slices.ContainsFunc(accepted, ofRekorV2) && slices.ContainsFunc(seen, ofRekorV2):
		return opinion{unsure: true, why: "may ask the right bundle for a time stamp, because of a bundle of Rekor v2 beside it"}
	case len(accepted) > 0:
		return opinion{accepts: true, by: &accepted[0], why: "accepts"}
	case slices.ContainsFunc(seen, v.mayReadOtherwise):
		return opinion{unsure: true, why: "may read differently what the gate refuses"}
	case bad:
		return opinion{class: ClassBadPattern, why: "cannot compile a pattern of the policy"}
	case !slices.ContainsFunc(seen, func(s Signature) bool { return s.Verified && s.Key == "" }):
		return opinion{class: ClassWrongSigner, why: "finds none that verifies"}
	}
	return opinion{class: ClassWrongSigner, why: "finds none by an identity of the policy"}
}

// decideKeyed is about the keys of a Secret. Whatever goes wrong, the absence of
// signatures included, becomes one text (internal/controller/
// ocirepository_controller.go, v1.9.3, verifySignature).
func decideKeyed(layout Layout, seen []Signature) opinion {
	for _, s := range seen {
		if s.Verified && s.Key != "" {
			return opinion{accepts: true, by: &s, why: "accepts"}
		}
	}
	if slices.ContainsFunc(seen, func(s Signature) bool { return unread(s) || s.Step == StepParse }) {
		return opinion{unsure: true, why: "may read differently what the gate refuses"}
	}
	if len(seen) == 0 {
		return opinion{class: ClassNoMatchingKey, why: "finds no signature"}
	}
	return opinion{class: ClassNoMatchingKey, why: "finds none by a key"}
}

// refusesBundles says why a policy refuses every bundle, whoever signed it; nil
// if it does not. A bundle is verified for exactly one identity, none of whose
// fields is empty, and the patterns are compiled first (cosign v3,
// pkg/cosign/verify.go, verificationOptions).
func refusesBundles(entries []sourcev1.OIDCIdentityMatch) *opinion {
	switch {
	case len(entries) == 0:
		return &opinion{class: ClassNoIdentity, why: "refuses every bundle: the policy has no identity"}
	case len(entries) > 1:
		return &opinion{class: ClassMultipleIdentities, why: "refuses every bundle: the policy has several identities"}
	}
	for _, pattern := range []string{entries[0].Subject, entries[0].Issuer} {
		if _, err := regexp.Compile(pattern); err != nil {
			return &opinion{class: ClassBadPattern, why: "refuses every bundle: a pattern of the policy does not compile"}
		}
	}
	if entries[0].Issuer == "" || entries[0].Subject == "" {
		return &opinion{class: ClassNoIdentity, why: "refuses every bundle: the policy leaves issuer or subject empty"}
	}
	return nil
}

// matching gives the signatures that the entries match, and says whether a
// pattern that does not compile stood in the way of another. The kind of what
// was signed is not asked.
func matching(entries []sourcev1.OIDCIdentityMatch, layout Layout, seen []Signature) (accepted []Signature, bad bool) {
	for _, s := range seen {
		if !s.Verified || s.Key != "" {
			continue
		}
		matches, err := admits(entries, layout, s)
		bad = bad || err != nil
		if matches {
			accepted = append(accepted, s)
		}
	}
	return accepted, bad
}

// admits says whether the entries match a certificate. The tag layout looks at
// every name in it, and takes the entries as an OR in their order and none as
// anybody (cosign, pkg/cosign/verify.go, CheckCertificatePolicy); a bundle is
// matched by the name that counts. Patterns are searched.
func admits(entries []sourcev1.OIDCIdentityMatch, layout Layout, s Signature) (bool, error) {
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
	return len(entries) == 0, nil
}

// mayReadOtherwise says that a controller may accept a candidate that the gate
// refused: bytes that the gate could not get, or reads more strictly; a .sig
// signature without a log entry, which the controller looks up in the log
// itself; and log entries that only an older cosign reads.
func (v series) mayReadOtherwise(s Signature) bool {
	switch {
	case s.Verified:
		return false
	case unread(s), s.Step == StepParse:
		return true
	case s.Layout == LayoutTag:
		return s.Step == StepLog && len(s.EntryKinds) == 0
	}
	return v.dsseV2 && slices.ContainsFunc(s.EntryKinds, rekorV2)
}

// rekorV2 says that a kind of log entry is of Rekor v2.
func rekorV2(kind string) bool { return strings.HasSuffix(kind, "/0.0.2") }

// ofRekorV2 says that all log entries of a bundle are of Rekor v2, which writes
// no time.
func ofRekorV2(s Signature) bool {
	return len(s.EntryKinds) > 0 && !slices.ContainsFunc(s.EntryKinds, func(kind string) bool { return !rekorV2(kind) })
}

// couldHaveAccepted says whether there was a moment at which this series would
// have accepted some of these signatures: signatures are added over time, and
// one alone suffices. Sure says that it needs nothing that the gate could not
// read.
func (v series) couldHaveAccepted(verify *sourcev1.OCIRepositoryVerification, found []Signature) (could, sure bool) {
	for _, s := range found {
		o := v.emulate(verify, []Signature{s})
		could, sure = could || o.accepts || o.unsure, sure || o.accepts
	}
	return could, sure
}

// couldHaveRefused says whether there was a moment at which this series would
// have refused in this class: before the signatures that it accepts were there.
func (v series) couldHaveRefused(verify *sourcev1.OCIRepositoryVerification, found []Signature, class Class) bool {
	earlier := slices.DeleteFunc(slices.Clone(found), func(s Signature) bool {
		return !v.emulate(verify, []Signature{s}).refuses()
	})
	return v.emulate(verify, earlier).class == class
}

// replacedKey says whether a key that the gate does not know may explain that
// this series accepted. Until the next verification nothing in the status shows
// that the key in the Secret was replaced; v1.10 verifies again at its next
// reconciliation, the older ones at the next revision or generation.
func (v series) replacedKey(verify *sourcev1.OCIRepositoryVerification, found []Signature) bool {
	return verify.SecretRef != nil && slices.ContainsFunc(found, func(s Signature) bool {
		return s.Step == StepSignature && (v.bundles || s.Layout == LayoutTag)
	})
}

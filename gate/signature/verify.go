package signature

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signer"
)

// question is what a candidate is verified for.
type question struct {
	// digest is the artifact's.
	digest string
	// accept is asked for the identity last; nil asks nobody, because who
	// counts is for package gate to say.
	accept func(signer.Identity) bool
}

// verifier verifies one candidate. Every candidate, whatever it is, gives a
// gate.Signature; one that is refused says at which step.
type verifier interface {
	verify(evidence, question) gate.Signature
}

// keyless verifies certificates of Fulcio against a trusted root.
type keyless struct {
	material root.TrustedMaterial
}

// steps carries the state of one verification, and which step it is at.
type steps struct {
	step  gate.Step
	found gate.Signature
}

// run calls the steps in f and turns its error, or a panic of a library on
// hostile bytes, into a refusal at the step that was reached.
func run(e evidence, f func(*steps) error) (found gate.Signature) {
	s := &steps{step: gate.StepParse}
	s.found = gate.Signature{Layout: e.layout, Digest: e.digest}
	defer func() {
		if p := recover(); p != nil {
			found = s.refuse(fmt.Errorf("expected bytes that can be read, found some that the library gave up on: %v", p))
		}
	}()
	if err := f(s); err != nil {
		return s.refuse(err)
	}
	s.found.Verified = true
	return s.found
}

func (s *steps) refuse(err error) gate.Signature {
	s.found.Verified = false
	s.found.Step = s.step
	s.found.Why = clip(strings.TrimSpace(err.Error()))
	return s.found
}

// describe writes down what the candidate says of itself, verified or not.
func (s *steps) describe(parsed *entity, e evidence) {
	if parsed == nil {
		s.found.EntryKinds = kindsOf(e.bundle)
		return
	}
	s.found.MediaType = parsed.mediaType
	s.found.PredicateType = parsed.claim.predicateType
	s.found.StatementSubjects = parsed.claim.subjects
	switch {
	case s.found.Layout == gate.LayoutTag, parsed.claim.predicateType == cosignPredicate:
		s.found.Kind = gate.KindSignature
	case parsed.claim.predicateType != "":
		s.found.Kind = gate.KindAttestation
	}
	for _, entry := range parsed.GetVerificationMaterial().GetTlogEntries() {
		kind := entry.GetKindVersion()
		s.found.EntryKinds = append(s.found.EntryKinds, kind.GetKind()+"/"+kind.GetVersion())
	}
}

// binding compares what the signed bytes are about with the digest.
func (s *steps) binding(parsed *entity, digest string) error {
	s.step = gate.StepBinding
	if parsed.claim.covers(digest) {
		return nil
	}
	about := "no sha256 digest"
	if n := len(parsed.claim.digests); n > 0 {
		about = parsed.claim.digests[0]
		if n > 1 {
			about = fmt.Sprintf("%s and %d others", about, n-1)
		}
	}
	return fmt.Errorf("expected signed content about %s, found it to be about %s", digest, about)
}

// verify reads the candidate, compares what it is about with the digest, and has
// sigstore-go verify the whole of it, which alone decides. Where that refuses,
// the steps are gone through one by one, in the order of gate.Step, to say which
// it was: each calls one function of the library, so that a refusal is
// attributed by what was called and never by its words.
func (k keyless) verify(e evidence, q question) gate.Signature {
	return run(e, func(s *steps) error {
		parsed, err := e.parse(true)
		s.describe(parsed, e)
		var leaf *x509.Certificate
		var content verify.VerificationContent
		if parsed != nil {
			var certErr error
			content, certErr = parsed.VerificationContent()
			if certErr == nil {
				leaf = content.Certificate()
			}
			if err == nil {
				err = certErr
			}
		}
		var summary certificate.Summary
		if leaf != nil {
			var certErr error
			summary, certErr = s.certificate(leaf)
			if err == nil {
				err = certErr
			}
		}
		s.hint(parsed, leaf)
		if err != nil {
			return err
		}

		if err := s.binding(parsed, q.digest); err != nil {
			return err
		}

		s.step = gate.StepCertificate
		if leaf == nil {
			return errors.New("expected a signature with a certificate, found one made with a key")
		}
		if err := oneIssuer(leaf, e.layout); err != nil {
			return err
		}
		result, err := k.whole(parsed, q.digest)
		if err != nil {
			return s.attribute(k, parsed, content, leaf, err)
		}
		s.found.LoggedAt = result.VerifiedTimestamps[0].Timestamp.UTC()

		s.step = gate.StepIdentity
		return s.identity(summary, q.accept)
	})
}

// attribute goes through the steps of a candidate that was refused. One that
// passes them all was refused for the signature itself, the only thing left.
func (s *steps) attribute(k keyless, parsed *entity, content verify.VerificationContent, leaf *x509.Certificate, refused error) error {
	s.step = gate.StepCertificate
	chains, err := k.chains(leaf)
	if err != nil {
		return err
	}
	s.step = gate.StepSCT
	if err := verify.VerifySignedCertificateTimestamp(chains, 1, k.material); err != nil {
		return err
	}
	s.step = gate.StepLog
	if parsed.payload != nil && len(parsed.GetVerificationMaterial().GetTlogEntries()) == 0 {
		s.found.Hint = "the controller looks such a signature up in the log itself; the gate wants the entry beside the signature, as cosign writes it"
	}
	logged, err := k.log(parsed, content)
	if err != nil {
		return err
	}
	s.step = gate.StepTime
	if err := k.time(parsed, content, leaf, logged); err != nil {
		return err
	}
	s.step = gate.StepSignature
	return refused
}

// certificate writes down who the certificate says it is for.
func (s *steps) certificate(leaf *x509.Certificate) (certificate.Summary, error) {
	summary, err := certificate.SummarizeCertificate(leaf)
	if err != nil {
		return summary, fmt.Errorf("expected a certificate of Fulcio: %w", err)
	}
	s.found.Identity = signer.Identity{Issuer: summary.Issuer, Subject: summary.SubjectAlternativeName}
	s.found.Subjects = cryptoutils.GetSubjectAlternateNames(leaf)
	s.found.Claims = signer.Claims{
		SourceRepository:   summary.SourceRepositoryURI,
		SourceRepositoryID: summary.SourceRepositoryIdentifier,
		SourceRef:          summary.SourceRepositoryRef,
		RunnerEnvironment:  summary.RunnerEnvironment,
		BuildTrigger:       summary.BuildTrigger,
		BuildSignerURI:     summary.BuildSignerURI,
	}
	return summary, nil
}

// issuerV1 is the older of Fulcio's two issuer extensions
// (github.com/sigstore/fulcio, docs/oid-info.md).
var issuerV1 = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}

// oneIssuer refuses a certificate whose two issuer extensions differ: the
// controller reads one of them for a bundle and the other for a .sig signature.
// Fulcio writes the same into both. For a .sig signature it reads the older one
// (cosign v3.1.2, pkg/cosign/certextensions.go), which must be there.
func oneIssuer(leaf *x509.Certificate, layout gate.Layout) error {
	var issuers []string
	older := false
	for _, extension := range leaf.Extensions {
		switch {
		case extension.Id.Equal(issuerV1):
			issuers, older = append(issuers, string(extension.Value)), true
		case extension.Id.Equal(certificate.OIDIssuerV2):
			var issuer string
			if err := certificate.ParseDERString(extension.Value, &issuer); err != nil {
				return err
			}
			issuers = append(issuers, issuer)
		}
	}
	if len(issuers) == 0 {
		return errors.New("expected a certificate that names an OIDC issuer, found none in it")
	}
	if layout == gate.LayoutTag && !older {
		return errors.New("expected the older of Fulcio's issuer extensions, which a .sig signature needs, found only the newer")
	}
	for _, issuer := range issuers {
		if issuer != issuers[0] {
			return fmt.Errorf("expected one OIDC issuer in the certificate, found %q and %q", issuers[0], issuer)
		}
	}
	return nil
}

// chains builds the certificate chains to the trusted root, at a time within
// the certificate's own life: whether that is when it signed is another step.
func (k keyless) chains(leaf *x509.Certificate) ([][]*x509.Certificate, error) {
	leaf = withoutSAN(leaf)
	var err error
	for _, at := range []time.Time{leaf.NotBefore, leaf.NotAfter} {
		var chains [][]*x509.Certificate
		if chains, err = verify.VerifyLeafCertificate(at, leaf, k.material); err == nil {
			return chains, nil
		}
	}
	return nil, fmt.Errorf("expected a certificate of an authority in the trusted root, found one issued by %q: %w", leaf.Issuer, err)
}

// withoutSAN forgives a certificate its subject if that is of a kind that
// package x509 does not know (OtherName): it was read above, and sigstore-go
// forgives it likewise (pkg/verify/signed_entity.go, v1.3.0).
func withoutSAN(leaf *x509.Certificate) *x509.Certificate {
	if len(leaf.UnhandledCriticalExtensions) == 0 {
		return leaf
	}
	forgiven := *leaf
	forgiven.UnhandledCriticalExtensions = nil
	for _, id := range leaf.UnhandledCriticalExtensions {
		if !id.Equal(asn1.ObjectIdentifier(cryptoutils.SANOID)) {
			forgiven.UnhandledCriticalExtensions = append(forgiven.UnhandledCriticalExtensions, id)
		}
	}
	return &forgiven
}

// timeless is an entity whose certificate is valid at any time, so that the
// step of the log does not refuse for a reason that belongs to the next one.
type timeless struct {
	*entity
	content verify.VerificationContent
}

type always struct{ verify.VerificationContent }

func (always) ValidAtTime(time.Time, root.TrustedMaterial) bool { return true }

func (t timeless) VerificationContent() (verify.VerificationContent, error) {
	return always{t.content}, nil
}

// log verifies that a transparency log in the trusted root has the signature.
func (k keyless) log(parsed *entity, content verify.VerificationContent) ([]root.Timestamp, error) {
	entries := parsed.GetVerificationMaterial().GetTlogEntries()
	if len(entries) == 0 {
		return nil, errors.New("expected a transparency log entry beside the signature, found none")
	}
	times, err := verify.VerifyTlogEntry(timeless{parsed, content}, k.material, 1, true)
	if err == nil {
		return times, nil
	}
	known := k.material.RekorLogs()
	for _, entry := range entries {
		if _, ok := known[hex.EncodeToString(entry.GetLogId().GetKeyId())]; ok {
			return nil, err
		}
	}
	return nil, fmt.Errorf("expected an entry of a transparency log in the trusted root, found one of the log %x: %w",
		entries[0].GetLogId().GetKeyId(), err)
}

// time establishes when the signature was made, as the controller does: by the
// log's word, or, where no entry carries a time (Rekor v2), by a time-stamping
// authority. The certificate must have been valid then.
func (k keyless) time(parsed *entity, content verify.VerificationContent, leaf *x509.Certificate, logged []root.Timestamp) error {
	entries := parsed.GetVerificationMaterial().GetTlogEntries()
	for _, entry := range entries {
		at := entry.GetIntegratedTime()
		if at != 0 && !content.ValidAtTime(time.Unix(at, 0), k.material) {
			return fmt.Errorf("expected a log entry between %s and %s, while the certificate was valid, found it at %s",
				leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339), time.Unix(at, 0).UTC().Format(time.RFC3339))
		}
	}
	times := logged
	if !integrated(parsed) {
		stamps, err := verify.VerifySignedTimestampWithThreshold(parsed, k.material, 1)
		if err != nil {
			return err
		}
		times = nil
		for _, stamp := range stamps {
			times = append(times, *stamp)
		}
	}
	if len(times) == 0 {
		return errors.New("expected a trusted time, found a log entry without the log's signature over its time")
	}
	leaf = withoutSAN(leaf)
	for _, at := range times {
		if _, err := verify.VerifyLeafCertificate(at.Time, leaf, k.material); err != nil {
			return fmt.Errorf("expected a certificate that was valid at %s, found one valid from %s to %s: %w",
				at.Time.UTC().Format(time.RFC3339), leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339), err)
		}
	}
	return nil
}

// integrated says that some log entry carries a time of its own.
func integrated(parsed *entity) bool {
	for _, entry := range parsed.GetVerificationMaterial().GetTlogEntries() {
		if entry.GetIntegratedTime() != 0 {
			return true
		}
	}
	return false
}

// whole is sigstore-go's complete verification with the options of the
// controller: one SCT, one log entry, one time.
func (k keyless) whole(parsed *entity, digest string) (*verify.VerificationResult, error) {
	options := []verify.VerifierOption{
		verify.WithSignedCertificateTimestamps(1),
		verify.WithTransparencyLog(1),
		verify.WithoutStatementPredicate(),
	}
	if integrated(parsed) {
		options = append(options, verify.WithIntegratedTimestamps(1))
	} else {
		options = append(options, verify.WithSignedTimestamps(1))
	}
	whole, err := verify.NewVerifier(k.material, options...)
	if err != nil {
		return nil, err
	}
	artifact, err := parsed.artifact(digest)
	if err != nil {
		return nil, err
	}
	// Identities are not skipped: they are the next step, and who counts is
	// decided in package gate.
	result, err := whole.Verify(parsed.Bundle, verify.NewPolicy(artifact, verify.WithoutIdentitiesUnsafe()))
	if err == nil && len(result.VerifiedTimestamps) == 0 {
		err = errors.New("expected a trusted time, found none")
	}
	return result, err
}

// artifact is what the signature must be over: in the tag layout the payload,
// whose own digest has been compared with the artifact's; in a bundle a
// statement about the artifact.
func (parsed *entity) artifact(digest string) (verify.ArtifactPolicyOption, error) {
	if parsed.payload != nil {
		return verify.WithArtifact(bytes.NewReader(parsed.payload)), nil
	}
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil {
		return nil, fmt.Errorf("expected a sha256 digest: %w", err)
	}
	return verify.WithArtifactDigest("sha256", sum), nil
}

// identity compares the certificate's identity with itself through sigstore-go,
// which refuses an empty one, and asks accept.
func (s *steps) identity(summary certificate.Summary, accept func(signer.Identity) bool) error {
	id := s.found.Identity
	own, err := verify.NewShortCertificateIdentity(id.Issuer, "", id.Subject, "")
	if err != nil {
		return err
	}
	if err := own.Verify(summary); err != nil {
		return err
	}
	if accept != nil && !accept(id) {
		return fmt.Errorf("expected a required signer, found issuer %q and subject %q", id.Issuer, id.Subject)
	}
	return nil
}

// hint says what a refused candidate may be, from what its bytes show.
func (s *steps) hint(parsed *entity, leaf *x509.Certificate) {
	if parsed == nil || leaf == nil {
		return
	}
	for _, organization := range leaf.Issuer.Organization {
		if organization == "GitHub, Inc." {
			s.found.Hint = "it is of GitHub's private Sigstore, which signs for private repositories; the public-good trusted root does not know it"
		}
	}
}

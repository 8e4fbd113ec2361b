package localsigstore

import (
	"context"

	"flux-verify-gate/test/stack/cosigncli"
)

// SignKeyless signs the artifact at reference (repository@sha256:…, so that
// what is signed is what is meant) with a certificate that Fulcio issues for
// the identity token, logs it in Rekor, and pushes the bundle as a referrer.
// The extra arguments come before the reference; one of them is -a name=value,
// an annotation. Errors of cosign are *cosigncli.Error.
func (s *Sigstore) SignKeyless(ctx context.Context, reference, token string, extra ...string) error {
	args := append([]string{"sign"}, s.signingArgs(token)...)
	_, err := s.Run(ctx, append(append(args, extra...), reference)...)
	return err
}

// AttestKeyless attests the artifact at reference as SignKeyless signs it. The
// predicate is the file's content, of a type that cosign attest's --type takes:
// a name that it knows, such as slsaprovenance1, or a URI.
func (s *Sigstore) AttestKeyless(ctx context.Context, reference, token, predicateType, predicateFile string, extra ...string) error {
	args := append([]string{"attest"}, s.signingArgs(token)...)
	args = append(args, "--type", predicateType, "--predicate", predicateFile)
	_, err := s.Run(ctx, append(append(args, extra...), reference)...)
	return err
}

func (s *Sigstore) signingArgs(token string) []string {
	return []string{
		"--yes",
		"--signing-config", s.SigningConfig(), "--trusted-root", s.TrustedRoot(),
		"--identity-token", token,
	}
}

// VerifyKeyless has cosign verify that the artifact at reference is signed by
// exactly this subject of exactly this issuer, and that this Sigstore vouches
// for it. It needs no service but the registry.
func (s *Sigstore) VerifyKeyless(ctx context.Context, reference, issuer, subject string, extra ...string) (cosigncli.Output, error) {
	args := append([]string{"verify"}, s.verifyArgs(issuer, subject)...)
	return s.Run(ctx, append(append(args, extra...), reference)...)
}

// VerifyAttestationKeyless has cosign verify an attestation of a type as
// VerifyKeyless verifies a signature.
func (s *Sigstore) VerifyAttestationKeyless(ctx context.Context, reference, issuer, subject, predicateType string, extra ...string) (cosigncli.Output, error) {
	args := append([]string{"verify-attestation"}, s.verifyArgs(issuer, subject)...)
	args = append(args, "--type", predicateType)
	return s.Run(ctx, append(append(args, extra...), reference)...)
}

func (s *Sigstore) verifyArgs(issuer, subject string) []string {
	return []string{
		"--trusted-root", s.TrustedRoot(),
		"--certificate-oidc-issuer", issuer, "--certificate-identity", subject,
	}
}

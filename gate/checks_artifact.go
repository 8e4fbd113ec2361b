package gate

// artifactChecks is section D: is it what was promoted, and is it really
// signed?
var artifactChecks = []check{
	{[]Code{DigestMismatch}, checkDigest},
	{[]Code{SignatureSkipped}, checkSkipped},
	{[]Code{TrustedRootDiffers}, checkRoots},
	{[]Code{
		Unsigned, SignedByOthers, SignatureInvalid, NotASignature, ClaimsMismatch, SignerShared,
		// What could not be looked at comes with the signatures.
		BadInput, NoAnswer, RegistryDenied, RegistryUnreachable, TrustedRootUnavailable,
	}, checkSignatures},
	{[]Code{ControllerDisagrees, WillRefuse}, checkController},
}

// checkDigest compares the digest of what is serving now, which is the manifest
// digest in status.artifact.revision. status.artifact.digest is that of the
// controller's own tarball and is never looked at.
func checkDigest(f *facts) []Finding {
	if f.want.Digest == DigestAny {
		return note(DigestMismatch, "any digest was accepted: this says nothing about what was just pushed", "pass the digest that the push step printed")
	}
	digest := digestOf(f.source.revision())
	switch digest {
	case "":
		return nil // artifact-missing says it
	case f.want.Digest:
		return pass(DigestMismatch, "the digest being served is the expected one")
	}
	return one(Finding{
		Code: DigestMismatch, Outcome: Fail, Wait: WaitDeadline,
		Title: "another digest is being served than the one being promoted", Expected: f.want.Digest, Found: f.source.revision(),
		Remedy: "see whether the tag in spec.ref was moved to the expected digest, and whether the controller could take it in (verification-failed, fetch-failed)",
	})
}

// checkSkipped: skipping is allowed to whoever writes the word, and is said.
func checkSkipped(f *facts) []Finding {
	if f.want.Signature != SignatureSkip {
		return nil
	}
	return note(SignatureSkipped, "the registry was not asked for the signature: only the controller's word stands for it", "remove signature: skip")
}

// checkRoots: two verifications under different trusted roots are not about the
// same thing, whatever either of them says.
func checkRoots(f *facts) []Finding {
	if f.want.Signature == SignatureSkip || !f.matchesIdentities() || f.sameRoot() {
		return nil
	}
	finding := Finding{
		Code: TrustedRootDiffers, Outcome: Unknown, Wait: WaitQuiet,
		Title:    "the policy trusts the public-good Sigstore, and the gate a private one",
		Expected: "trusted-root: tuf, or a file of public-good authorities", Found: "a private trusted root",
		Remedy: "leave trusted-root out, or give the policy its trustedRootSecretRef",
	}
	if root := f.source.Object.Spec.Verify.TrustedRootSecretRef; root != nil {
		finding.Title = "the policy trusts a private Sigstore, and the gate the public-good one"
		finding.Expected = "the trusted_root.json of Secret " + orNothing(root.Name) + " as trusted-root"
		finding.Found = "trusted-root: tuf"
		finding.Remedy = "give the same trusted root to the gate: trusted-root: path/to/trusted_root.json"
	}
	return one(finding)
}

// sameRoot says whether the gate verifies under the trusted root of the policy,
// as far as can be known without reading the policy's Secret.
func (f *facts) sameRoot() bool {
	if f.source.Object.Spec.Verify.TrustedRootSecretRef != nil {
		return f.want.CustomRoot
	}
	return !f.evidence.PrivateRoot
}

// checkSignatures asks what the registry showed of the digest that is being
// served. Until it has been asked, nothing is known.
func checkSignatures(f *facts) []Finding {
	digest := digestOf(f.source.revision())
	switch {
	case f.want.Signature == SignatureSkip:
		return nil
	case digest == "":
		return nil // artifact-missing says it
	case f.evidence.Signatures == nil && f.want.URL != "" && f.source.Object.Spec.URL != f.want.URL:
		// Whoever can write the source must not have credentials sent to a
		// registry of his own.
		return one(Finding{
			Code: NoAnswer, Outcome: Unknown, Wait: WaitLook,
			Title:    "the registry was not asked for the signature, because the input url rules it out",
			Expected: f.want.URL, Found: f.source.Object.Spec.URL, Remedy: "correct spec.url of the source, or the input url",
		})
	case f.evidence.Signatures == nil:
		return one(Finding{
			Code: NoAnswer, Outcome: Unknown, Wait: WaitLook,
			Title: "the registry was not asked for the signature", Expected: "a look at " + digest, Found: "none",
			Remedy: "raise timeout, so that there is time to look",
		})
	}
	findings, results := JudgeSignatures(f.want, *f.evidence.Signatures, digest)
	f.signers = results
	return findings
}

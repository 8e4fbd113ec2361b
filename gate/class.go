package gate

import (
	"slices"
	"strings"
)

// Class is the class of a failed verification, read off the controller's text.
type Class string

// The classes, by what they mean for waiting (docs/checks.md). A later try
// cannot help: wrong signer, multiple identities, bad pattern, no identity. A
// signature or Secret may still arrive: no signature, no matching key, Secret
// missing. Somebody else's service: Sigstore trouble, registry trouble.
const (
	ClassWrongSigner        Class = "wrong-signer"
	ClassMultipleIdentities Class = "multiple-identities"
	ClassBadPattern         Class = "bad-pattern"
	ClassNoIdentity         Class = "no-identity"
	ClassNoSignature        Class = "no-signature"
	ClassNoMatchingKey      Class = "no-matching-key"
	ClassSecretMissing      Class = "secret-missing"
	ClassSigstoreTrouble    Class = "sigstore-trouble"
	ClassRegistryTrouble    Class = "registry-trouble"
	ClassUnknown            Class = "unknown"
)

// classRule is one text of a failed verification and what it means.
type classRule struct {
	text  string
	class Class
}

// classRules is read from top to bottom; the first text that the message holds
// decides. The order matters: a message quotes names from certificates, so the
// fixed texts that the controller puts first are asked first. The texts are
// those of source-controller v1.7 to v1.10 with cosign v2 and v3 and sigstore-go
// (seen in its conditions, or read in its source).
var classRules = []classRule{
	{"multiple identities are not supported", ClassMultipleIdentities},
	{"unable to initialize trusted root", ClassSigstoreTrouble},
	{"unable to get Rekor public keys", ClassSigstoreTrouble},
	{"unable to get CTLog public keys", ClassSigstoreTrouble},
	{"unable to get Fulcio", ClassSigstoreTrouble},
	{"unable to create Rekor client", ClassSigstoreTrouble},
	{"unable to parse trusted root", ClassSigstoreTrouble},
	{"unable to extract Rekor URL from trusted root", ClassSigstoreTrouble},
	{"failed to read trusted root from secret", ClassSecretMissing},
	{"'trusted_root.json' not found in secret", ClassSecretMissing},
	{"without providing at least one identity", ClassNoIdentity},
	{"there must be subject alternative name criteria", ClassNoIdentity},
	{"must specify Issuer criteria", ClassNoIdentity},
	{"error parsing regexp", ClassBadPattern},
	{"malformed issuer in identity", ClassBadPattern},
	{"malformed subject in identity", ClassBadPattern},
	{"none of the expected identities matched", ClassWrongSigner},
	{"no matching CertificateIdentity found", ClassWrongSigner},
	{"accepted signatures do not match threshold", ClassNoMatchingKey},
	{"no matching signatures were found for", ClassNoMatchingKey},
	{"no signatures found", ClassNoSignature},
	{"TOOMANYREQUESTS", ClassRegistryTrouble},
	{"UNAUTHORIZED", ClassRegistryTrouble},
	{"DENIED", ClassRegistryTrouble},
	{"connection refused", ClassRegistryTrouble},
	{"connection reset", ClassRegistryTrouble},
	{"no such host", ClassRegistryTrouble},
	{"i/o timeout", ClassRegistryTrouble},
	{"context deadline exceeded", ClassRegistryTrouble},
	{"unexpected status code", ClassRegistryTrouble},
	{"tls: ", ClassRegistryTrouble},
	{"x509: ", ClassRegistryTrouble},
}

const verifyFailedPrefix = "failed to verify the signature using provider '"

// classify reads the class off the message of a failed SourceVerified.
func classify(message string) Class {
	rest, ok := strings.CutPrefix(message, verifyFailedPrefix)
	if !ok {
		return ClassUnknown
	}
	_, cause, ok := strings.Cut(rest, "': ")
	if !ok {
		return ClassUnknown
	}
	if strings.HasPrefix(cause, "secrets \"") && strings.HasSuffix(cause, "\" not found") {
		return ClassSecretMissing
	}
	for _, rule := range classRules {
		if strings.Contains(cause, rule.text) {
			return rule.class
		}
	}
	return ClassUnknown
}

// refuses says that a message of this class is about the signatures that the
// controller found, and not about what it could not do.
func (c Class) refuses() bool {
	return c == ClassNoSignature || c == ClassWrongSigner || c == ClassNoMatchingKey
}

// namesTrouble says whether a message holds a text of trouble anywhere, also
// behind the one that gives it its class: cosign strings together what each
// signature came to, and one that could not be judged is not refused.
func namesTrouble(message string) bool {
	return slices.ContainsFunc(classRules, func(rule classRule) bool {
		return !rule.class.refuses() && strings.Contains(message, rule.text)
	})
}

// wait says how long a verification of the expected digest that failed in this
// class may still mend itself.
func (c Class) wait() Wait {
	switch c {
	case ClassWrongSigner, ClassMultipleIdentities, ClassBadPattern, ClassNoIdentity:
		return WaitOnceMore
	case ClassNoSignature, ClassNoMatchingKey, ClassSecretMissing:
		return WaitMinute
	}
	return WaitDeadline
}

// remedy is the next step after a verification that failed in this class.
func (c Class) remedy() string {
	switch c {
	case ClassWrongSigner:
		return "sign this digest from the workflow that spec.verify names, or correct spec.verify"
	case ClassMultipleIdentities:
		return "merge the entries of matchOIDCIdentity into one with an alternation; the suggested entry below does that"
	case ClassBadPattern:
		return "correct the pattern in matchOIDCIdentity: it must be RE2 (no look-ahead)"
	case ClassNoIdentity:
		return "give matchOIDCIdentity an issuer and a subject"
	case ClassNoSignature:
		return "sign this digest (cosign sign <repository>@<digest>) in the same repository, or deploy one that is signed"
	case ClassNoMatchingKey:
		return "sign this digest with a key of the Secret, or put the public key (an entry ending in .pub) into it"
	case ClassSecretMissing:
		return "create the Secret that spec.verify names in the source's namespace, with the entries that the message asks for"
	case ClassSigstoreTrouble:
		return "let the controller reach Sigstore (its TUF mirror and log), or give it a trusted root of its own with trustedRootSecretRef"
	case ClassRegistryTrouble:
		return "let the controller reach the registry; read the message for the status or address"
	}
	return "read the controller's message; it is not one that this release knows"
}

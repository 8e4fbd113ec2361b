package gate

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

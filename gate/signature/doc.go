// Package signature asks the registry: it finds every signature of one
// artifact, verifies each with sigstore-go against a trusted root (or against
// required public keys), and tests the verifier on the bytes that it just
// verified.
//
// It reports what it found and never says whether that suffices; that is a
// rule of package gate (gate.JudgeSignatures). What it could not look at is a
// gate.Failure, and never reads as "no signature". It knows nothing of
// Kubernetes.
//
// Everything that a registry sends is hostile: it is bounded in count, size and
// time, the size in a descriptor is not believed, and content that is addressed
// by digest is hashed. docs/signatures.md says what is checked in which order.
package signature

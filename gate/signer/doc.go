// Package signer knows who may sign: the identities that are required or
// allowed, the identities that a live policy accepts, and the proof that one
// set contains the other.
//
// An identity is the pair that a Sigstore certificate carries, an OIDC issuer
// and a subject. The package knows nothing of Flux, Kubernetes or OCI, does no
// I/O and reads no clock.
package signer

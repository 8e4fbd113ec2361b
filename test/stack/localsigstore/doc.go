// Package localsigstore runs a real Sigstore on the loopback interface: Fulcio
// (the certificate authority), TesseraCT (its certificate transparency log),
// Rekor v2 (the log of signatures) and the time-stamp authority, with keys and
// certificates that are made at the start. The identity tokens that Fulcio
// accepts come from package githubtoken.
//
// Its trusted root and signing configuration are made and used by the real
// cosign. Several may run at once: none trusts another. It runs on Linux: other
// systems do not let the programs listen on reserved ports (see package port).
package localsigstore

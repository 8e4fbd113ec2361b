// Package e2e drives a real Flux with a real Sigstore, and then runs the gate's
// real binary as a workflow's step does. See docs/testing.md.
package e2e

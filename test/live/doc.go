// Package live holds the tests of the gate's real binary against a real API
// server. See docs/testing.md.
package live

// Package cluster is the live side of the gate: it connects to one API server
// by one explicit credential, reads back one OCIRepository, watches it, and
// reads recordings of it. It reports what it saw, or a gate.Failure that says
// why it could not look. It never judges.
package cluster

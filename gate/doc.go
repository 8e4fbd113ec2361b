// Package gate is the decision: from a Policy (what was asked for) and the
// Evidence (what was seen in the cluster and in the registry) it makes a
// Report, with a verdict and a finding for every check.
//
// It is pure. It talks to nothing, reads no clock and no environment, and logs
// nothing; time is passed in. What it cannot see it calls unknown, and unknown
// is never verified.
package gate

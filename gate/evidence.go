package gate

import "time"

// Evidence is everything that one judgement rests on.
type Evidence struct {
	// Namespace and Name are those that were asked for.
	Namespace string
	Name      string
	// Live says that the object was read from a cluster; Cluster says which.
	Live    bool
	Cluster Cluster
	// Source is the one read that everything is judged by; nil if there is
	// none.
	Source *Source
	// Missing says that the read was answered, and that there is no such
	// object. It excludes Source.
	Missing bool
	// Failures are what could not be looked at.
	Failures []Failure
	// Signatures is what the registry showed; nil if it was not asked.
	Signatures *Signatures
	// Refused is what the registry showed of the artifact that the controller
	// refused and does not serve (Policy.RefusedDigest); nil if it was not asked.
	// It only explains.
	Refused *Signatures
	// PrivateRoot says that the gate's own trusted root is not the public-good
	// one.
	PrivateRoot bool
	// Canary is the newest read of the canary; nil if it was not asked for, or
	// not read. Whether it was asked for is the policy's to say.
	Canary *Canary
	// EarlierFailure is the last text of a failed verification that was seen in
	// this run and may have been deleted since (see History.LastFailure).
	EarlierFailure string
	// Timeout is how long the run may wait; zero for a recording.
	Timeout time.Duration
	// ReconcileToken is what the run wrote into reconcile.fluxcd.io/requestedAt
	// to ask the controller to reconcile; empty if it did not ask.
	ReconcileToken string
}

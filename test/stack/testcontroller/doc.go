// Package testcontroller writes the status of an OCIRepository as
// source-controller v1.9.3 does, without a registry, without signatures, and at
// random moments that a seed decides.
//
// What it decides is imitated: the order of a reconciliation, when a signature
// is verified and when that is skipped, which conditions come and go
// (ocirepository_controller.go of source-controller v1.9.3). How it writes is
// not: the conditions and the patches are made by the very library that
// source-controller v1.9.3 uses, github.com/fluxcd/pkg/runtime v0.110.1. So one
// reconciliation is up to four writes of conditions, each followed by a
// separate write of the rest of the status, and every condition is stamped with
// the generation of the moment it is written, not of the moment it was decided.
//
// Tests against the real controller are elsewhere; this one is for schedules
// that the real one cannot be brought to follow.
package testcontroller

package e2e

import (
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// What follows are edits of a source's spec, for apply and edit.

func verifyByKey(spec *sourcev1.OCIRepositorySpec) { verifyByKeyOf(keySecret)(spec) }

func verifyByKeyOf(secret string) func(*sourcev1.OCIRepositorySpec) {
	return func(spec *sourcev1.OCIRepositorySpec) {
		spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: secret}}
	}
}

func noVerify(spec *sourcev1.OCIRepositorySpec) { spec.Verify = nil }

func suspend(spec *sourcev1.OCIRepositorySpec) { spec.Suspend = true }

func resume(spec *sourcev1.OCIRepositorySpec) { spec.Suspend = false }

// follow makes the source follow a tag.
func follow(tag string) func(*sourcev1.OCIRepositorySpec) {
	return reference(sourcev1.OCIRepositoryRef{Tag: tag})
}

func reference(ref sourcev1.OCIRepositoryRef) func(*sourcev1.OCIRepositorySpec) {
	return func(spec *sourcev1.OCIRepositorySpec) { spec.Reference = &ref }
}

// touch is an edit that changes nothing of account but the generation, so that
// the controller verifies again.
func touch(spec *sourcev1.OCIRepositorySpec) { spec.Interval.Duration += time.Second }

// rarely lets the controller look only when it is asked to.
func rarely(spec *sourcev1.OCIRepositorySpec) { spec.Interval.Duration = time.Hour }

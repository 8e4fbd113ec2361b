package gate

import (
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// Source is one read of one OCIRepository: everything in it was true at the
// same resourceVersion.
type Source struct {
	// Object is the object in its typed form. The v1beta2 shape has the same
	// fields and is read into the v1 type; Object.APIVersion says which it was.
	Object sourcev1.OCIRepository
	// UnknownVerify lists the fields under spec.verify that the typed form does
	// not have, as dotted paths below spec.verify, sorted.
	UnknownVerify []string
	// Fingerprint is status.sourceVerificationFingerprint, which
	// source-controller writes from v1.10 on; empty where there is none.
	Fingerprint string
	// Owners are the field managers of the spec, from metadata.managedFields.
	Owners []Owner
}

// Owner is one field manager and what it owns of the object's spec.
type Owner struct {
	Manager   string `json:"manager"`
	Operation string `json:"operation"` // Apply or Update
	// Fields are dotted paths below the object, for example "spec.verify",
	// sorted.
	Fields []string `json:"fields"`
	// Time is when the manager last wrote; zero where it is not recorded.
	Time time.Time `json:"time,omitzero"`
}

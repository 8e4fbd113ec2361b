package cluster

import (
	"strings"
	"time"

	"flux-verify-gate/gate"
)

// Error is what every function of this package returns when it could not look:
// the failure that the caller turns into a finding, and what led to it. Texts
// from the API server stand in it as they came.
type Error struct {
	Failure gate.Failure
	// RetryAfter is how long the server asked to be left alone; zero if it did
	// not ask.
	RetryAfter time.Duration
	// Role is the YAML of the Role and RoleBinding that would have allowed the
	// request, ready to apply; empty unless access was denied.
	Role string
	// Err is the cause; nil where the failure was found without one.
	Err error
}

// Error gives the failure in one line: what is so, what was expected, what was
// found and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Failure.Title)
	if e.Failure.Expected != "" {
		b.WriteString("; expected " + e.Failure.Expected)
	}
	if e.Failure.Found != "" {
		b.WriteString("; found " + e.Failure.Found)
	}
	if e.Failure.Remedy != "" {
		b.WriteString("; " + e.Failure.Remedy)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

func badInput(title, expected, found, remedy string, cause error) *Error {
	return &Error{
		Failure: gate.Failure{
			Code:     gate.BadInput,
			Title:    title,
			Expected: expected,
			Found:    found,
			Remedy:   remedy,
		},
		Err: cause,
	}
}

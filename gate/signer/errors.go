package signer

import "errors"

var (
	// ErrTooLarge says that a question met its bound (Limit) before it was
	// decided.
	ErrTooLarge = errors.New("the proof is too large")
	// ErrUnconfirmed says that the proof found a counterexample that package
	// regexp does not confirm: a defect of this package, never an answer.
	ErrUnconfirmed = errors.New("the counterexample is not confirmed by package regexp")
	// ErrBadSigner says that a Signer made by hand is not one: Parse makes none
	// such.
	ErrBadSigner = errors.New("not a signer")
)

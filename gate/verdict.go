package gate

// Verdict is the answer of a run.
type Verdict string

// Verified: everything was looked at, and it is right. Rejected: it was looked
// at, and it is wrong. Undecided: something could not be looked at.
const (
	Verified  Verdict = "verified"
	Rejected  Verdict = "rejected"
	Undecided Verdict = "undecided"
)

// ReasonVerified is the reason of a run whose verdict is verified; every other
// reason is a Code.
const ReasonVerified Code = "verified"

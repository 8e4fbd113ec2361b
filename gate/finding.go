package gate

// Outcome is what one check came to.
type Outcome string

// The outcomes of a check. A fail that may still mend itself is pending while
// the gate waits; that is a matter of Finding.Wait, not an outcome, because at
// the deadline it is a fail.
const (
	Pass    Outcome = "pass"
	Fail    Outcome = "fail"
	Unknown Outcome = "unknown"
	Note    Outcome = "note"
)

// Finding is what one check found: one code, one sentence, one next step. Its
// texts may hold words from outside (condition messages, registry errors) as
// they came; package report escapes them.
type Finding struct {
	Code    Code    `json:"code"`
	Outcome Outcome `json:"outcome"`
	// Title is one sentence that says what is so.
	Title string `json:"title"`
	// Expected and Found are the two sides of a comparison.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	// Remedy is the next step.
	Remedy string `json:"remedy,omitempty"`
	// Class is the class of a failed verification; empty otherwise.
	Class Class `json:"class,omitempty"`
	// Wait says how long a fail or an unknown may still mend itself.
	Wait Wait `json:"-"`
}

// Failure is one thing that could not be looked at: a code of section G with
// what was tried and found. It becomes a finding with the outcome unknown.
type Failure struct {
	Code     Code
	Title    string
	Expected string
	Found    string
	Remedy   string
	// Transient says that another try may succeed before the deadline.
	Transient bool
}

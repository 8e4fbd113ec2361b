package gate

import "strings"

// InputError is one input that is empty, malformed, contradictory or vacuous.
// It always leads to exit status 2.
type InputError struct {
	// Input is the name of the input, as in action.yml.
	Input string
	// Expected and Found say what the input may be and what it was.
	Expected string
	Found    string
	// Remedy is the next step; empty where Expected says it all.
	Remedy string
	// Err is the cause, where there is one.
	Err error
}

// Error gives one line: the input, what was expected, what was found, what to do.
func (e *InputError) Error() string {
	var b strings.Builder
	b.WriteString("input " + e.Input)
	separator := ": "
	if e.Expected != "" {
		b.WriteString(separator + "expected " + e.Expected)
		separator = ", "
	}
	if e.Found != "" {
		b.WriteString(separator + "found " + e.Found)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *InputError) Unwrap() error { return e.Err }

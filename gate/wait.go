package gate

// Wait says how long a fail or an unknown may still mend itself, so that it is
// pending while the gate waits. At the deadline every pending fail is a fail.
type Wait string

// WaitNone: final at once. WaitOnceMore: final when a second read shows it
// too. WaitMinute: final when it has been so for PendingFor. WaitQuiet: final
// when the source has been quiet for PendingFor. WaitDeadline: pending to the
// deadline. WaitLook: pending until the caller has looked for the signatures,
// which is worth its requests only once nothing else is pending.
const (
	WaitNone     Wait = ""
	WaitOnceMore Wait = "once-more"
	WaitMinute   Wait = "minute"
	WaitQuiet    Wait = "quiet"
	WaitDeadline Wait = "deadline"
	WaitLook     Wait = "look"
)

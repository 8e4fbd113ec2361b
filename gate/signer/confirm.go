package signer

// confirmer decides single identities by package regexp alone. Every witness of
// the proof is put before it; it shares no code with the automata.
type confirmer struct {
	live     []func(Identity) bool
	required []func(Identity) bool
	allowed  []func(Identity) bool
	forms    []func(Identity) bool
	second   []string // by form: SecondNameOf
}

func (c *confirmer) accepted(id Identity) bool    { return anyOf(c.live, id) }
func (c *confirmer) known(id Identity) bool       { return anyOf(c.required, id) || anyOf(c.allowed, id) }
func (c *confirmer) canBeIssued(id Identity) bool { return anyOf(c.forms, id) }

func anyOf(tests []func(Identity) bool, id Identity) bool {
	for _, test := range tests {
		if test(id) {
			return true
		}
	}
	return false
}

// missing confirms an identity of the required signer that is refused.
func (c *confirmer) missing(signer int, id Identity) bool {
	return c.required[signer](id) && c.canBeIssued(id) && !c.accepted(id)
}

// vacuous confirms, the other way round, that the signer is not vacuous.
func (c *confirmer) vacuous(signer int, id Identity) bool {
	return c.required[signer](id) && c.canBeIssued(id)
}

// tooWide confirms an identity that somebody else can have issued. Issued under
// the second name of an issuer it is nobody else, if the policy accepts the first
// name too and that one is known.
func (c *confirmer) tooWide(id Identity) bool {
	if !c.accepted(id) || c.known(id) {
		return false
	}
	for i, issued := range c.forms {
		if !issued(id) {
			continue
		}
		if c.second[i] == "" {
			return true
		}
		first := Identity{c.second[i], id.Subject}
		if !c.accepted(first) || !c.known(first) {
			return true
		}
	}
	return false
}

// loose confirms an identity that is accepted and lets nobody else in.
func (c *confirmer) loose(id Identity) bool {
	return c.accepted(id) && !c.known(id) && !c.tooWide(id)
}

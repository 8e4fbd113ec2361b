package signer

import "context"

// Question is what Prove answers: does the live policy accept every identity of
// every required signer, and nothing outside required and allowed?
type Question struct {
	Live     []Entry
	Required []Signer
	Allowed  []Signer
	// Everything says that every pair of strings can be issued, as under a
	// private Sigstore. Otherwise only the forms of the public-good Sigstore
	// can (see Forms).
	Everything bool
	// Limit bounds the work; the zero value means the default bound.
	Limit Limit
}

// Limit bounds one proof.
type Limit struct {
	// States is the largest number of automaton states that may be visited.
	States int
	// Steps is the largest number of transitions between states that may be
	// looked at: what takes the time.
	Steps int
	// Bytes is the approximate largest amount of memory that they may take.
	Bytes int
}

// Answer is what was proved. Everything in it stands for an identity that was
// found and confirmed with package regexp, or for a failure to decide; a
// question with neither is proved in both directions.
type Answer struct {
	// Invalid lists live patterns that do not compile as RE2. The rest of the
	// answer is then not to be relied on.
	Invalid []InvalidPattern
	// Vacuous lists required signers of which nothing issuable matches.
	Vacuous []Signer
	// Missing has, for every required signer that is not accepted whole, one
	// shortest identity of it that the live policy refuses.
	Missing []Missing
	// TooWide is the shortest issuable identity that is accepted and neither
	// required nor allowed; nil if there is none.
	TooWide *Identity
	// Familiar is an example beside TooWide: the shortest such identity that looks as
	// those of GitHub Actions usually do; nil if there is none, or none was found
	// within the bound.
	Familiar *Identity
	// Loose is the shortest pair of strings that is accepted, neither required
	// nor allowed, and lets nobody else in; nil if there is none. Either it cannot
	// be issued, or it is a known identity under a second name (Form.SecondNameOf)
	// that is accepted under its first name too.
	Loose *Identity
	// Undecided lists questions that were not answered: the bound was met, or a
	// witness was not confirmed by package regexp.
	Undecided []Undecided
	// States is the number of states visited, for the report and benchmarks.
	States int
}

// InvalidPattern is one live pattern that does not compile.
type InvalidPattern struct {
	Entry   int    // index into Question.Live
	Field   string // "issuer" or "subject"
	Pattern string
	Err     error
}

// Missing is one required signer that the live policy does not accept whole.
type Missing struct {
	Signer  Signer
	Witness Identity
}

// Undecided is one question that was not answered.
type Undecided struct {
	// Question is "missing", "too-wide", "loose" or "vacuous".
	Question string
	// Pattern is the pattern at fault, where one can be named.
	Pattern string
	// Err wraps ErrTooLarge, ErrUnconfirmed, ErrBadSigner or the cause of a
	// cancelled context.
	Err error
}

// Prove answers the question. It decides by containment of languages, not by
// samples: docs/policy-proof.md says how. The context serves to stop it; what is
// then unanswered is undecided.
func Prove(ctx context.Context, q Question) Answer {
	return prove(ctx, q, formsFor(q.Everything))
}

// prove is Prove over the forms given.
func prove(ctx context.Context, q Question, forms []Form) Answer {
	p := &proof{
		ctx: ctx, question: q, limit: q.Limit.orDefault().share(questions), plane: newPlane(), forms: forms,
	}
	if !p.compileLive() || !p.compileKnown() || !p.compileForms() {
		return p.answer
	}
	if err := p.plane.seal(ctx, p.limit); err != nil {
		for _, name := range []string{askVacuous, askMissing, askTooWide, askLoose} {
			p.undecided(name, err)
		}
		return p.answer
	}
	p.ask(askVacuous, p.vacuous)
	p.ask(askMissing, p.missing)
	p.ask(askTooWide, p.tooWide)
	if !q.Everything {
		p.ask(askLoose, p.loose)
	}
	return p.answer
}

package signer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// The questions that Prove asks, as Undecided names them.
const (
	askVacuous = "vacuous"
	askMissing = "missing"
	askTooWide = "too-wide"
	askLoose   = "loose"
	questions  = 4
)

// proof is one question being answered.
type proof struct {
	ctx      context.Context
	question Question
	limit    Limit // of each question
	answer   Answer
	confirm  confirmer
	plane    *plane

	anyIssuer []int
	live      []rect // by entry
	groups    []rect // the live entries, those of one issuer pattern joined
	required  []rect
	known     []rect // required, then allowed
	forms     []Form
	formRects []rect
	familiar  rect
	first     map[string]firstName // by issuer
}

// firstName is what is accepted and what is known under one issuer: the subjects.
type firstName struct{ accepted, known []int }

// compileLive turns the live patterns into automata, and into the tests that confirm
// the witnesses; the next two do so with the signers and the forms. Each reports
// whether the proof can go on.
func (p *proof) compileLive() bool {
	byIssuer := map[string]int{}
	for i, e := range p.question.Live {
		for _, field := range []struct{ name, text string }{{"issuer", e.Issuer}, {"subject", e.Subject}} {
			if _, err := regexp.Compile(field.text); err != nil {
				p.answer.Invalid = append(p.answer.Invalid, InvalidPattern{i, field.name, field.text, err})
			}
		}
		if len(p.answer.Invalid) > 0 {
			continue
		}
		r, err1 := p.plane.rect(e.issuer(), e.subject())
		test, err2 := e.matcher()
		if err := errors.Join(err1, err2); err != nil {
			p.answer.Invalid = append(p.answer.Invalid, InvalidPattern{i, "issuer", e.Issuer, err})
			continue
		}
		p.live = append(p.live, r)
		g, ok := byIssuer[e.Issuer]
		if !ok {
			g = len(p.groups)
			byIssuer[e.Issuer] = g
			p.groups = append(p.groups, rect{issuer: r.issuer})
		}
		p.groups[g].subject = append(p.groups[g].subject, r.subject...)
		p.confirm.live = append(p.confirm.live, test)
	}
	return len(p.answer.Invalid) == 0
}

func (p *proof) compileKnown() bool {
	for i, s := range slices.Concat(p.question.Required, p.question.Allowed) {
		ask, tests := askMissing, &p.confirm.required
		if i >= len(p.question.Required) {
			ask, tests = askTooWide, &p.confirm.allowed
		}
		test, err := s.matcher()
		if err != nil {
			p.answer.Undecided = append(p.answer.Undecided, Undecided{ask, s.String(), err})
			continue
		}
		r, err := p.plane.rect(s.issuer(), s.subject())
		if err != nil {
			p.answer.Undecided = append(p.answer.Undecided, Undecided{ask, s.String(), err})
			continue
		}
		*tests = append(*tests, test)
		p.known = append(p.known, r)
	}
	p.required = p.known[:min(len(p.known), len(p.question.Required))]
	return len(p.answer.Undecided) == 0
}

func (p *proof) compileForms() bool {
	var err error
	if p.anyIssuer, err = p.plane.issuer.add(anyText()); err != nil {
		p.undecided(askTooWide, err)
		return false
	}
	if p.familiar, err = p.plane.rect(familiar().issuer(), familiar().subject()); err != nil {
		p.undecided(askTooWide, err)
		return false
	}
	for _, f := range p.forms {
		r, err := p.plane.rect(f.issuer(), f.subject())
		if err != nil {
			p.undecided(askTooWide, err)
			return false
		}
		test, err := f.test()
		if err != nil {
			p.undecided(askTooWide, err)
			return false
		}
		p.formRects = append(p.formRects, r)
		p.confirm.forms = append(p.confirm.forms, test)
		p.confirm.second = append(p.confirm.second, f.SecondNameOf)
	}
	return true
}

// ask gives the question its share of the bound and notes what it left open.
func (p *proof) ask(name string, answer func(*budget) error) {
	b := p.budget()
	err := answer(b)
	p.answer.States += b.states
	if b.err != nil {
		err = b.err
	}
	if err != nil {
		p.undecided(name, err)
	}
}

// budget is the share of one question; the memory that is kept counts for all.
func (p *proof) budget() *budget {
	b := newBudget(p.ctx, p.limit)
	b.hold(p.plane.held())
	return b
}

func (p *proof) undecided(name string, err error) {
	p.answer.Undecided = append(p.answer.Undecided, Undecided{name, p.heaviest(), err})
}

// heaviest names the pattern that took the most states: the one at fault where a
// proof is too large.
func (p *proof) heaviest() string {
	var worst *program
	weigh := func(f *field, numbers []int) {
		for _, n := range numbers {
			g := f.programs[n]
			if worst == nil || g.states > worst.states ||
				g.states == worst.states && len(g.insts) > len(worst.insts) {
				worst = g
			}
		}
	}
	for _, r := range slices.Concat(p.live, p.known) {
		weigh(p.plane.issuer, r.issuer)
		weigh(p.plane.subject, r.subject)
	}
	if worst == nil {
		return ""
	}
	return worst.pattern.text
}

// vacuous: is there anything issuable that the required signer matches?
func (p *proof) vacuous(b *budget) error {
	for i, r := range p.required {
		w := p.shortest(b, func(f int, shorter int) *witness {
			return p.plane.outside(r.box().and(p.formRects[f].box()), nil, shorter, b)
		})
		switch {
		case b.err != nil:
			return b.err
		case w == nil:
			p.answer.Vacuous = append(p.answer.Vacuous, p.question.Required[i])
		default:
			if err := p.confirmed(w, func(id Identity) bool { return p.confirm.vacuous(i, id) }); err != nil {
				return err
			}
			p.plane.guide(*w.identity())
		}
	}
	return nil
}

// missing: is every issuable identity of the required signer accepted?
func (p *proof) missing(b *budget) error {
	for i, r := range p.required {
		w := p.shortest(b, func(f int, shorter int) *witness {
			return p.plane.outside(r.box().and(p.formRects[f].box()), p.live, shorter, b)
		})
		switch {
		case b.err != nil:
			return b.err
		case w == nil:
		default:
			if err := p.confirmed(w, func(id Identity) bool { return p.confirm.missing(i, id) }); err != nil {
				return err
			}
			p.answer.Missing = append(p.answer.Missing, Missing{p.question.Required[i], *w.identity()})
		}
	}
	return nil
}

// tooWide: is every issuable identity that is accepted a known one?
func (p *proof) tooWide(b *budget) error {
	w := p.shortest(b, func(f int, shorter int) *witness {
		var best *witness
		for _, g := range p.groups {
			for _, excuse := range p.excuses(f) {
				w := p.plane.outside(g.box().and(p.formRects[f].box()), slices.Concat(p.known, excuse), shorter, b)
				if w != nil {
					best, shorter = w, w.length()
				}
			}
		}
		return best
	})
	if w == nil || b.err != nil {
		return b.err
	}
	if err := p.confirmed(w, p.confirm.tooWide); err != nil {
		return err
	}
	p.answer.TooWide = w.identity()
	p.answer.Familiar = p.example()
	return nil
}

// example looks for an identity of the familiar form that is too wide.
func (p *proof) example() *Identity {
	if p.question.Everything {
		return nil
	}
	b := p.budget()
	var best *witness
	shorter := anyLength
	for _, g := range p.groups {
		if w := p.plane.outside(g.box().and(p.familiar.box()), p.known, shorter, b); w != nil {
			best, shorter = w, w.length()
		}
	}
	p.answer.States += b.states
	if best == nil || b.err != nil || p.confirmed(best, p.confirm.tooWide) != nil {
		return nil
	}
	return best.identity()
}

// maxConfirm bounds the work of confirming one witness: the length of its texts
// times the instructions of the patterns.
const maxConfirm = 60_000_000

// confirmed has the witness confirmed by package regexp.
func (p *proof) confirmed(w *witness, test func(Identity) bool) error {
	if len(w.issuer)*p.plane.issuer.insts()+len(w.subject)*p.plane.subject.insts() > maxConfirm {
		return fmt.Errorf("%w: the counterexample has %d characters, too many to confirm it", ErrTooLarge, w.length())
	}
	if !test(*w.identity()) {
		return ErrUnconfirmed
	}
	return nil
}

// excuses returns what may, beside the known signers, be accepted in the form. An
// identity under a second name is excused if its first name is both accepted and
// known; outside of both is outside of one of the two, so there are two searches.
func (p *proof) excuses(form int) [][]rect {
	if p.forms[form].SecondNameOf == "" {
		return [][]rect{nil}
	}
	accepted, known := p.firstNames(p.forms[form].SecondNameOf)
	return [][]rect{{{p.anyIssuer, accepted}}, {{p.anyIssuer, known}}}
}

// firstNames returns the subjects that are accepted, and those that are known,
// under the issuer.
// It compiles every issuer pattern, so it is done once for each issuer.
func (p *proof) firstNames(issuer string) (accepted, known []int) {
	if f, ok := p.first[issuer]; ok {
		return f.accepted, f.known
	}
	defer func() {
		if p.first == nil {
			p.first = map[string]firstName{}
		}
		p.first[issuer] = firstName{accepted, known}
	}()
	for i, e := range p.question.Live {
		if ok, err := (Entry{Issuer: e.Issuer}).Accepts(Identity{Issuer: issuer}); ok && err == nil {
			accepted = append(accepted, p.live[i].subject...)
		}
	}
	for i, s := range slices.Concat(p.question.Required, p.question.Allowed) {
		if test, err := s.issuer()[0].matcher(); err == nil && test(issuer) {
			known = append(known, p.known[i].subject...)
		}
	}
	return accepted, known
}

// loose: is everything that is accepted known, or an identity of somebody else?
func (p *proof) loose(b *budget) error {
	var best *witness
	shorter := anyLength
	try := func(in box, out []rect) {
		if w := p.plane.outside(in, out, shorter, b); w != nil {
			best, shorter = w, w.length()
		}
	}
	for _, g := range p.groups {
		try(g.box(), slices.Concat(p.known, p.formRects))
		for i, f := range p.forms {
			if f.SecondNameOf == "" {
				continue
			}
			accepted, known := p.firstNames(f.SecondNameOf)
			firstName := box{subject: [][]int{accepted, known}}
			others := slices.Delete(slices.Clone(p.formRects), i, i+1)
			try(g.box().and(p.formRects[i].box()).and(firstName), slices.Concat(p.known, others))
		}
	}
	if best == nil || b.err != nil {
		return b.err
	}
	if err := p.confirmed(best, p.confirm.loose); err != nil {
		return err
	}
	p.answer.Loose = best.identity()
	return nil
}

// shortest asks every form for a witness shorter than that of the forms before.
func (p *proof) shortest(b *budget, ask func(form, shorter int) *witness) *witness {
	var best *witness
	shorter := anyLength
	for f := range p.formRects {
		if w := ask(f, shorter); w != nil && b.err == nil {
			best, shorter = w, w.length()
		}
		if b.err != nil {
			return nil
		}
	}
	return best
}

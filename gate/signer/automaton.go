package signer

import (
	"regexp/syntax"
	"slices"
)

// program is the code of one pattern in one field.
type program struct {
	*code
	pattern pattern
	sets    []int          // by instruction: the set of runes it takes, -1 for none
	ids     [][sides]int32 // by instruction and what stands behind: the state, plus one
	states  int            // made so far
	sink    int            // the state after a match that needs no more of the text
}

type stateKey struct {
	pc     uint32
	behind side
}

// state is where a pattern can stand between two runes: before an instruction,
// knowing what stands behind. The states of a pattern and its exits form a
// nondeterministic automaton without empty moves.
type state struct {
	program int
	key     stateKey
	sink    bool    // everything from here on matches
	exits   []exits // by what stands ahead; only one if that does not matter
	reach   bitset  // the classes that lead to another state
}

// exit returns the ways on if that stands ahead; none before the state is expanded.
func (s *state) exit(ahead side) *exits {
	switch len(s.exits) {
	case 0:
		return &exits{}
	case 1:
		return &s.exits[0]
	}
	return &s.exits[ahead]
}

// exits are the ways on from a state.
type exits struct {
	match bool // the pattern has matched already
	moves []move
}

// move takes one rune of a set and stands before an instruction then.
type move struct {
	set int
	pc  uint32
}

// field is one of the two strings of an identity, with every pattern that a
// proof asks of it. Patterns are added first; seal makes the field ready.
type field struct {
	alphabet *alphabet
	programs []*program
	index    map[pattern]int
	states   []state
	held     int      // bytes, about, that the field has taken so far; it keeps them
	mark     []uint32 // scratch: instructions seen in this closure
	round    uint32
}

// hold counts memory that the field keeps until the end of the proof.
func (f *field) hold(bytes int, b *budget) {
	f.held += bytes
	b.hold(bytes)
}

// seal ends the adding of patterns.
func (f *field) seal(b *budget) {
	f.hold(f.insts()*80, b)
	before := b.bytes
	f.alphabet.seal(b)
	f.held += b.bytes - before
}

func newField() *field {
	return &field{alphabet: newAlphabet(), index: map[pattern]int{}}
}

// add compiles the patterns of the language and returns their program numbers.
func (f *field) add(l language) ([]int, error) {
	var numbers []int
	for _, p := range l {
		n, ok := f.index[p]
		if !ok {
			c, err := p.code()
			if err != nil {
				return nil, err
			}
			n = len(f.programs)
			f.index[p] = n
			f.programs = append(f.programs, newProgram(p, c, f.alphabet))
		}
		if !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// insts counts the instructions of all programs.
func (f *field) insts() int {
	n := 0
	for _, g := range f.programs {
		n += len(g.insts)
	}
	return n
}

func newProgram(p pattern, c *code, a *alphabet) *program {
	g := &program{code: c, pattern: p, sets: make([]int, len(c.insts)), ids: make([][sides]int32, len(c.insts)), sink: -1}
	for pc, runes := range c.runes {
		g.sets[pc] = -1
		if runes != nil {
			g.sets[pc] = a.add(runes)
		}
	}
	a.words = a.words || c.words
	return g
}

// state returns the number of the state before pc with that behind it, or -1 if
// no match can follow. Sides that no assertion ahead of the next rune tells apart
// are one.
func (f *field) state(program int, pc uint32, behind side, b *budget) int {
	g := f.programs[program]
	if behind != edge && !g.alive[pc] {
		return -1
	}
	asserts := g.behind[pc]
	if behind == edge && asserts&(syntax.EmptyBeginText|syntax.EmptyBeginLine) == 0 ||
		behind == word && asserts&looksAtWords == 0 ||
		behind == newline && asserts&syntax.EmptyBeginLine == 0 {
		behind = other
	}
	id := &g.ids[pc][behind]
	if *id == 0 {
		*id = 1 + int32(f.newState(state{program: program, key: stateKey{pc, behind}}, b))
	}
	return int(*id) - 1
}

// sinkOf returns the state of the program after a match.
func (f *field) sinkOf(program int, b *budget) int {
	g := f.programs[program]
	if g.sink < 0 {
		g.sink = f.newState(state{program: program, sink: true, exits: []exits{{match: true}}, reach: f.alphabet.all}, b)
	}
	return g.sink
}

func (f *field) newState(s state, b *budget) int {
	f.hold(150, b)
	f.programs[s.program].states++
	f.states = append(f.states, s)
	return len(f.states) - 1
}

// expand fills the exits of the state, unless the budget is spent.
func (f *field) expand(id int, b *budget) *state {
	s := &f.states[id]
	if s.exits != nil || b.err != nil {
		return s
	}
	g := f.programs[s.program]
	s.reach = newBitset(len(f.alphabet.classes))
	f.hold(8*len(s.reach)+32, b)
	if !g.ahead[s.key.pc] {
		s.exits = []exits{f.closure(g, s.key, other, b)}
		f.addReach(s, s.exits[0], f.alphabet.all, b)
		return s
	}
	s.exits = make([]exits, sides)
	for ahead := range sides {
		s.exits[ahead] = f.closure(g, s.key, ahead, b)
		f.addReach(s, s.exits[ahead], f.alphabet.bySide[ahead], b)
	}
	return s
}

// addReach adds to the state the classes of one side that an exit takes.
func (f *field) addReach(s *state, e exits, among bitset, b *budget) {
	if e.match {
		s.reach.or(among)
		return
	}
	last := -1
	for _, m := range e.moves {
		if m.set != last {
			s.reach.orAnd(f.alphabet.members[m.set], among)
			b.step(len(among)/8 + 1)
		}
		last = m.set
	}
}

// closure follows the instructions that take no rune from a position between
// two sides.
func (f *field) closure(g *program, from stateKey, ahead side, b *budget) exits {
	holds := syntax.EmptyOpContext(from.behind.sample(), ahead.sample())
	if len(f.mark) < len(g.insts) {
		f.mark = make([]uint32, len(g.insts))
		f.round = 0
	}
	f.round++
	var e exits
	todo := []uint32{from.pc}
	for len(todo) > 0 && b.err == nil {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if f.mark[pc] == f.round {
			continue
		}
		f.mark[pc] = f.round
		b.step(1)
		inst := &g.insts[pc]
		switch {
		case inst.Op == syntax.InstMatch:
			e.match = true
		case consumes(inst.Op):
			if g.alive[inst.Out] {
				e.moves = append(e.moves, move{g.sets[pc], inst.Out})
			}
		case inst.Op == syntax.InstEmptyWidth && syntax.EmptyOp(inst.Arg)&^holds != 0:
		default:
			todo = append(todo, g.successors(pc)...)
		}
	}
	f.hold(16*len(e.moves)+32, b)
	return e
}

// accepts reports whether a text that ends at the state matches.
func (f *field) accepts(id int, b *budget) bool {
	s := f.expand(id, b)
	return s.exit(edge).match
}

// follow calls yield with each state that the class leads to.
func (f *field) follow(id, class int, b *budget, yield func(next int)) {
	s := f.expand(id, b)
	if s.sink {
		yield(id)
		return
	}
	side := f.alphabet.classes[class].side
	e := s.exit(side)
	program := s.program
	if e.match {
		yield(f.sinkOf(program, b))
		return
	}
	b.step(1 + len(e.moves))
	for _, m := range e.moves {
		if b.err != nil {
			return
		}
		if f.alphabet.members[m.set].has(class) {
			if next := f.state(program, m.pc, side, b); next >= 0 {
				yield(next)
			}
		}
	}
}

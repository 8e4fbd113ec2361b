package signer

import (
	"regexp/syntax"
	"slices"
)

// code is one pattern as the engine of package regexp/syntax compiles it, with what
// the proof needs to know of its instructions. It is never changed.
type code struct {
	insts  []syntax.Inst
	start  uint32
	runes  [][]rune         // by instruction: the runes it takes, as sorted pairs lo, hi
	behind []syntax.EmptyOp // by instruction: assertions on what stands behind, before the next rune
	ahead  []bool           // by instruction: whether an assertion looks ahead, before the next rune
	alive  []bool           // by instruction: whether a match can follow once the text has begun
	words  bool             // an assertion looks at words or lines
}

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

// code compiles the pattern; those of the forms are compiled once.
func (p pattern) code() (*code, error) {
	if c, ok := formCodes()[p]; ok {
		return c, nil
	}
	return p.compile()
}

func (p pattern) compile() (*code, error) {
	re, err := p.parse()
	if err != nil {
		return nil, err
	}
	compiled, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, err
	}
	return newCode(compiled), nil
}

func newCode(compiled *syntax.Prog) *code {
	n := len(compiled.Inst)
	c := &code{
		insts:  compiled.Inst,
		start:  uint32(compiled.Start),
		runes:  make([][]rune, n),
		behind: make([]syntax.EmptyOp, n),
		ahead:  make([]bool, n),
		alive:  make([]bool, n),
	}
	for pc := range c.insts {
		inst := &c.insts[pc]
		if consumes(inst.Op) {
			c.runes[pc] = runesOf(inst)
		}
		if inst.Op == syntax.InstEmptyWidth && syntax.EmptyOp(inst.Arg)&looksAtRunes != 0 {
			c.words = true
		}
	}
	c.lookBack()
	return c
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

// Assertions by what they look at.
const (
	looksBehind = syntax.EmptyBeginText | syntax.EmptyBeginLine | looksAtWords
	looksAhead  = syntax.EmptyEndText | syntax.EmptyEndLine | looksAtWords

	looksAtWords = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
	looksAtRunes = syntax.EmptyBeginLine | syntax.EmptyEndLine | looksAtWords
)

func consumes(o syntax.InstOp) bool {
	switch o {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

// successors returns the instructions that may follow pc.
func (g *code) successors(pc uint32) []uint32 {
	inst := &g.insts[pc]
	switch inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return []uint32{inst.Out, inst.Arg}
	case syntax.InstMatch, syntax.InstFail:
		return nil
	}
	return []uint32{inst.Out}
}

// lookBack fills what each instruction leads to: assertions before the next
// rune, and a match. It walks the program backwards from these.
func (g *code) lookBack() {
	before := make([][]uint32, len(g.insts))
	for pc := range g.insts {
		for _, next := range g.successors(uint32(pc)) {
			before[next] = append(before[next], uint32(pc))
		}
	}
	spread := func(from uint32, through func(pc uint32) bool, set func(pc uint32) (changed bool)) {
		todo := []uint32{from}
		set(from)
		for len(todo) > 0 {
			pc := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, prev := range before[pc] {
				if through(prev) && set(prev) {
					todo = append(todo, prev)
				}
			}
		}
	}
	for pc := range g.insts {
		inst := &g.insts[pc]
		switch inst.Op {
		case syntax.InstMatch:
			spread(uint32(pc), func(pc uint32) bool {
				inst := &g.insts[pc]
				return inst.Op != syntax.InstEmptyWidth || syntax.EmptyOp(inst.Arg)&syntax.EmptyBeginText == 0
			}, func(pc uint32) bool {
				changed := !g.alive[pc]
				g.alive[pc] = true
				return changed
			})
		case syntax.InstEmptyWidth:
			asserts := syntax.EmptyOp(inst.Arg)
			spread(uint32(pc), func(pc uint32) bool { return !consumes(g.insts[pc].Op) }, func(pc uint32) bool {
				behind, ahead := g.behind[pc]|asserts&looksBehind, g.ahead[pc] || asserts&looksAhead != 0
				changed := behind != g.behind[pc] || ahead != g.ahead[pc]
				g.behind[pc], g.ahead[pc] = behind, ahead
				return changed
			})
		}
	}
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

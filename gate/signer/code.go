package signer

import "regexp/syntax"

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

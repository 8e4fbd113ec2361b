package signer

import (
	"context"
	"regexp/syntax"
	"testing"
)

// TestClasses: no instruction tells two runes of one class apart, by the word of the
// engine itself.
func TestClasses(t *testing.T) {
	t.Parallel()
	f := newField()
	for _, text := range []string{
		`(?i)kelvin`, `[^a-f\n]`, `\pL\PL`, `\p{Greek}[[:alpha:]]\d`, `(?i)[k-s]ſ`, `.`, `(?s).`, `\bx\B`, `[\x{D7FF}-\x{E000}]`, `[\x{10FFFF}]`,
		`[^\x00-\x{10FFFF}]`,
	} {
		if _, err := f.add(language{{text, searched}}); err != nil {
			t.Fatal(err)
		}
	}
	b := newBudget(context.Background(), Limit{}.orDefault())
	f.alphabet.seal(b)
	if b.err != nil {
		t.Fatal(b.err)
	}
	// Past the first runes only those at the ends of a piece can differ.
	var runes []rune
	for r := range rune(0x800) {
		runes = append(runes, r)
	}
	for _, p := range f.alphabet.pieces {
		runes = append(runes, p.lo, p.hi)
	}
	for _, r := range runes {
		number := f.alphabet.classOf(r)
		c := f.alphabet.classes[number]
		if got := sideOf(r); got != c.side {
			t.Fatalf("%U is on side %d, its class on side %d", r, got, c.side)
		}
		for _, g := range f.programs {
			for pc := range g.insts {
				inst := &g.insts[pc]
				if !consumes(inst.Op) {
					continue
				}
				if got, want := f.alphabet.members[g.sets[pc]].has(number), matches(inst, r); got != want {
					t.Fatalf("%q, instruction %d, %U: the class says %t, the engine %t", g.pattern.text, pc, r, got, want)
				}
			}
		}
	}
}

func matches(inst *syntax.Inst, r rune) bool {
	switch inst.Op {
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return r != '\n'
	}
	return inst.MatchRune(r)
}

// TestReadability: of several characters the plainest makes the counterexample.
func TestReadability(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]rune{
		`.`: 'a', `[^a-z]`: '0', `[A-Z_]`: '_', `\W`: '-', `[^\x20-\x7e]`: 'µ', `\s`: ' ', `[\x00-\x1f]`: 0, `[Ω-ω]`: 'ά',
	} {
		f := newField()
		if _, err := f.add(language{{text, whole}}); err != nil {
			t.Fatal(err)
		}
		f.alphabet.seal(newBudget(context.Background(), Limit{}.orDefault()))
		s := search{field: f, all: [][]int{{0}}, longest: anyLength, budget: newBudget(context.Background(), Limit{}.orDefault())}
		s.run(func(found found) bool {
			if got := found.text[0]; got != want {
				t.Errorf("%q: got %q, want %q", text, got, want)
			}
			return false
		})
	}
}

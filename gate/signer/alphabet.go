package signer

import (
	"regexp/syntax"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// side is what stands on one side of a position in a text: all that the empty
// assertions of RE2 (^ $ \A \z \b \B) can see.
type side uint8

const (
	other side = iota
	word       // 0-9 A-Z a-z _
	newline
	edge // nothing: the text begins or ends here
	sides
)

// sample is a rune that syntax.EmptyOpContext takes for the side.
func (s side) sample() rune { return [sides]rune{' ', 'a', '\n', -1}[s] }

func sideOf(r rune) side {
	switch {
	case r == '\n':
		return newline
	case syntax.IsWordChar(r):
		return word
	}
	return other
}

// class is a set of runes that no pattern at hand tells apart.
type class struct {
	sample rune // the most readable rune of the class
	side   side // what its runes are to an assertion beside them
}

// alphabet divides all runes into classes. Sets of runes are added first; seal
// then forms the classes, the most readable first.
type alphabet struct {
	sets  [][]rune // sorted pairs lo, hi
	ids   map[string]int
	words bool // an assertion looks at words or lines

	pieces  []piece
	numbers []int // by piece: its class
	classes []class
	members []bitset      // by set: the classes it consists of
	bySide  [sides]bitset // the classes of each side
	all     bitset
}

func newAlphabet() *alphabet { return &alphabet{ids: map[string]int{}} }

// add returns the number of the set of runes given as sorted pairs lo, hi.
func (a *alphabet) add(pairs []rune) int {
	key := string(runeBytes(pairs))
	id, ok := a.ids[key]
	if !ok {
		id = len(a.sets)
		a.ids[key] = id
		a.sets = append(a.sets, pairs)
	}
	return id
}

// runeBytes is a map key for runes; UTF-8 will not do, as pairs may begin or end
// inside the surrogates.
func runeBytes(runes []rune) []byte {
	key := make([]byte, 0, 3*len(runes))
	for _, r := range runes {
		key = append(key, byte(r), byte(r>>8), byte(r>>16))
	}
	return key
}

// runesOf returns the runes that a consuming instruction takes, as sorted pairs
// lo, hi; it mirrors syntax.Inst.MatchRunePos.
func runesOf(inst *syntax.Inst) []rune {
	switch inst.Op {
	case syntax.InstRuneAny:
		return []rune{0, unicode.MaxRune}
	case syntax.InstRuneAnyNotNL:
		return []rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune}
	}
	if len(inst.Rune) != 1 {
		return inst.Rune
	}
	folds := []rune{inst.Rune[0]}
	if syntax.Flags(inst.Arg)&syntax.FoldCase != 0 {
		for r := unicode.SimpleFold(folds[0]); r != folds[0]; r = unicode.SimpleFold(r) {
			folds = append(folds, r)
		}
	}
	slices.Sort(folds)
	pairs := make([]rune, 0, 2*len(folds))
	for _, r := range folds {
		pairs = append(pairs, r, r)
	}
	return pairs
}

// Runes between these are no characters, and stand in no valid UTF-8.
const (
	surrogateMin = 0xD800
	surrogateMax = 0xDFFF
)

// seal forms the classes: it cuts the runes at every border of every set, and
// then splits the pieces by set after set until each class lies inside or
// outside of each.
func (a *alphabet) seal(b *budget) {
	sets := a.sets
	if a.words {
		sets = append(slices.Clone(sets), []rune{'\n', '\n'}, []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'})
	}
	pieces := cut(sets)
	classOf := make([]int, len(pieces))
	size := []int{len(pieces)}
	for _, set := range sets {
		inside := map[int]int{} // by class: how many of its pieces lie in the set
		forPieces(pieces, set, func(i int) { inside[classOf[i]]++; b.step(1) })
		split := map[int]int{}
		for c, n := range inside {
			if n < size[c] {
				split[c] = -1
			}
		}
		forPieces(pieces, set, func(i int) {
			old := classOf[i]
			fresh, ok := split[old]
			if !ok {
				return
			}
			if fresh < 0 {
				fresh = len(size)
				split[old] = fresh
				size = append(size, 0)
			}
			classOf[i] = fresh
			size[old]--
			size[fresh]++
		})
		if b.round() != nil {
			return
		}
	}
	b.hold(len(a.sets)*(len(size)/8+64) + 32*len(pieces))
	if b.round() != nil {
		return
	}
	a.order(pieces, classOf, len(size))
	a.fill(pieces, classOf)
	a.pieces, a.numbers = pieces, classOf
}

// classOf returns the class of the rune, which is no surrogate.
func (a *alphabet) classOf(r rune) int {
	i, _ := slices.BinarySearchFunc(a.pieces, r, func(p piece, r rune) int {
		switch {
		case p.hi < r:
			return -1
		case p.lo > r:
			return 1
		}
		return 0
	})
	return a.numbers[i]
}

// piece is a run of runes, lo to hi, that no set cuts.
type piece struct{ lo, hi rune }

func cut(sets [][]rune) []piece {
	borders := []rune{0, surrogateMin, surrogateMax + 1, unicode.MaxRune + 1}
	for _, set := range sets {
		for i := 0; i < len(set); i += 2 {
			borders = append(borders, set[i], set[i+1]+1)
		}
	}
	slices.Sort(borders)
	borders = slices.Compact(borders)
	var pieces []piece
	for i, lo := range borders[:len(borders)-1] {
		if lo < surrogateMin || lo > surrogateMax {
			pieces = append(pieces, piece{lo, borders[i+1] - 1})
		}
	}
	return pieces
}

// forPieces calls f with the index of every piece that lies in the set.
func forPieces(pieces []piece, set []rune, f func(i int)) {
	for s := 0; s < len(set); s += 2 {
		i := sort.Search(len(pieces), func(i int) bool { return pieces[i].lo >= set[s] })
		for ; i < len(pieces) && pieces[i].hi <= set[s+1]; i++ {
			f(i)
		}
	}
}

// order picks the most readable rune of each class as its sample, sorts the
// classes by it, and renumbers classOf.
func (a *alphabet) order(pieces []piece, classOf []int, n int) {
	best := make([]int, n) // the lowest rank
	samples := make([]rune, n)
	for i := range best {
		best[i] = -1
	}
	for i, p := range pieces {
		c := classOf[i]
		for r := p.lo; r <= p.hi && r < p.lo+unicode.MaxASCII; r++ {
			if rank := readability(r); best[c] < 0 || rank < best[c] {
				best[c], samples[c] = rank, r
			}
		}
	}
	byRank := make([]int, n)
	for i := range byRank {
		byRank[i] = i
	}
	slices.SortStableFunc(byRank, func(x, y int) int { return best[x] - best[y] })
	number := make([]int, n)
	for i, c := range byRank {
		number[c] = i
		a.classes = append(a.classes, class{sample: samples[c], side: sideOf(samples[c])})
	}
	for i, c := range classOf {
		classOf[i] = number[c]
	}
}

func (a *alphabet) fill(pieces []piece, classOf []int) {
	n := len(a.classes)
	a.all = newBitset(n)
	for i := range a.bySide {
		a.bySide[i] = newBitset(n)
	}
	for i, c := range a.classes {
		a.all.add(i)
		a.bySide[c.side].add(i)
	}
	for _, set := range a.sets {
		members := newBitset(n)
		forPieces(pieces, set, func(i int) { members.add(classOf[i]) })
		a.members = append(a.members, members)
	}
}

// readable lists the characters of a counterexample from the plainest on.
const readable = "abcdefghijklmnopqrstuvwxyz0123456789-._/ABCDEFGHIJKLMNOPQRSTUVWXYZ" +
	"@+=~:,;!?#%&$*'()[]{}^|`<>\\\" "

var readabilityOf = func() (ranks [utf8.RuneSelf]int) {
	for i := range ranks {
		ranks[i] = 1000 + i // control characters: what a person reads last
	}
	for i, r := range readable {
		ranks[r] = i
	}
	return ranks
}()

// readability ranks a rune; the lower, the easier to read.
func readability(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		return readabilityOf[r]
	case r == utf8.RuneError:
		return 900
	case unicode.IsLower(r):
		return 200
	case unicode.IsLetter(r):
		return 300
	case unicode.IsPrint(r):
		return 400
	}
	return 2000
}

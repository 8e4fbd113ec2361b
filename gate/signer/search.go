package signer

import "slices"

// maxAll is the largest number of languages that one search intersects.
const maxAll = 4

// search walks the texts that lie in every one of some languages, the shortest
// first, and knows of each which other patterns it matches.
//
// It is an inclusion check by antichains (De Wulf, Doyen, Henzinger, Raskin:
// Antichains, CAV 2006): the languages that must match stay nondeterministic, one
// state of each at a time (a tuple), and only the patterns beside them are made
// deterministic, on the fly, as the set of states where they can stand. A tuple
// with a set is dropped if the same tuple was reached, not later, with a subset:
// whatever escapes the larger set escapes the smaller one.
type search struct {
	field  *field
	all    [][]int // languages that must match, each the union of some programs
	beside []int   // programs that are watched
	// avoid drops a text as soon as a watched program is sure to match it.
	avoid bool
	// longest is the length of the longest text that is of interest.
	longest int
	// guides are texts that a person knows. Of two texts of one length, the one that
	// follows a guide for longer is found first; then the one that goes on as a guide
	// does behind the same three runes, and then the plainer one. (Not strictly: where a later text of that length can
	// escape more patterns, it takes the place of the earlier.)
	guides *guides
	budget *budget

	sets    []stateSet
	setIDs  map[string]int
	after   map[setClass]int  // the set after another one and a class
	reached map[tuple]reach   // by tuple: a smallest set it was reached with
	more    map[tuple][]reach // and others, if there are any
	nodes   []node
	marks   []uint32
	round   uint32
}

// reach is a set that a tuple was reached with, and the length of the text.
type reach struct{ set, length int32 }

func (n node) reach() reach { return reach{int32(n.set), int32(n.length)} }

// found is one text that lies in all languages.
type found struct {
	text    []rune
	matched []int // the watched programs that match it, ascending
}

// run calls yield with the texts found until it returns false; they come by
// length. It does not yield every text: one is left out if another, not longer,
// is matched by no other watched programs.
func (s *search) run(yield func(found) bool) {
	s.setIDs = map[string]int{}
	s.after = map[setClass]int{}
	s.reached = map[tuple]reach{}
	s.more = map[tuple][]reach{}
	if !s.begin(yield) {
		return
	}
	for next := 0; next < len(s.nodes); next++ {
		if s.budget.round() != nil || s.nodes[next].length >= s.longest {
			return
		}
		if !s.extend(next, yield) {
			return
		}
	}
}

// begin makes the node of the empty text.
func (s *search) begin(yield func(found) bool) bool {
	var watched []int
	for _, p := range s.beside {
		if id := s.field.state(p, s.field.programs[p].start, edge, s.budget); id >= 0 {
			watched = append(watched, id)
		}
	}
	tuples := []tuple{{-1, -1, -1, -1}}
	for i, programs := range s.all {
		var longer []tuple
		for _, p := range programs {
			id := s.field.state(p, s.field.programs[p].start, edge, s.budget)
			for _, t := range tuples {
				t[i] = int32(id)
				longer = append(longer, t)
			}
		}
		tuples = longer
	}
	guides := make([]int, s.guides.len())
	for i := range guides {
		guides[i] = i
	}
	return s.enter(node{parent: -1, set: s.intern(watched), tuples: tuples, guides: guides}, yield)
}

// extend makes the nodes of all texts one rune longer than that of the node.
func (s *search) extend(parent int, yield func(found) bool) bool {
	at := s.nodes[parent]
	tuples := slices.DeleteFunc(at.tuples, func(t tuple) bool {
		return !s.stands(t, at.reach()) // a smaller set has come since
	})
	s.nodes[parent].tuples = nil // never needed again
	parts := s.split(tuples, s.sets[at.set].states)
	extendBy := func(class int, last rune, guides []int) bool {
		set := s.step(at.set, class)
		if s.avoid && s.sets[set].sunk {
			return true
		}
		var next tupleSet
		for _, t := range tuples {
			if s.budget.err != nil {
				return false
			}
			s.product(t, 0, class, &next)
		}
		n := node{parent: parent, last: last, length: at.length + 1, set: set, tuples: next.list, guides: guides}
		return s.enter(n, yield) && s.budget.err == nil
	}
	for _, last := range s.preferred(at) {
		class := s.field.alphabet.classOf(last)
		i := slices.IndexFunc(parts, func(part bitset) bool { return part.has(class) })
		if i < 0 {
			continue
		}
		parts = slices.Delete(parts, i, i+1)
		if !extendBy(class, last, s.following(at, last)) {
			return false
		}
	}
	for _, part := range parts {
		class := part.first()
		if !extendBy(class, s.field.alphabet.classes[class].sample, nil) {
			return false
		}
	}
	return true
}

// split returns the classes that lead on from some tuple, in parts that lead to the
// same states from every tuple and every watched state; the most readable first.
func (s *search) split(tuples []tuple, watched []int) []bitset {
	a := s.field.alphabet
	n := len(a.classes)
	candidates, both := newBitset(n), newBitset(n)
	relevant := newBitset(len(a.sets))
	look := func(id int) {
		st := s.field.expand(id, s.budget)
		for _, e := range st.exits {
			for _, m := range e.moves {
				relevant.add(m.set)
			}
			s.budget.step(1 + len(e.moves)/4)
		}
	}
	for _, id := range watched {
		look(id)
	}
	for _, t := range tuples {
		if s.budget.err != nil {
			return nil
		}
		copy(both, a.all)
		for i := range s.all {
			both.and(s.field.expand(int(t[i]), s.budget).reach)
			look(int(t[i]))
		}
		candidates.or(both)
	}
	parts := []bitset{candidates}
	cut := func(by bitset) {
		for i := range parts {
			if in, out := parts[i].cut(by); in != nil {
				parts[i] = in
				parts = append(parts, out)
			}
			s.budget.step(1 + len(by)/8)
		}
	}
	relevant.each(func(set int) bool {
		cut(a.members[set])
		return s.budget.err == nil
	})
	if a.words {
		cut(a.bySide[word])
		cut(a.bySide[newline])
	}
	slices.SortFunc(parts, func(x, y bitset) int { return x.first() - y.first() })
	if len(parts) == 1 && candidates.first() < 0 {
		return nil
	}
	return parts
}

// preferred returns the runes that the guides propose behind the text of the node.
func (s *search) preferred(n node) []rune {
	var runes []rune
	for _, g := range n.guides {
		if text := s.guides.texts[g]; len(text) > n.length {
			runes = append(runes, text[n.length])
		}
	}
	if s.guides.len() == 0 {
		return runes
	}
	var last [guideContext]rune
	for i := guideContext - 1; i >= 0 && n.parent >= 0; i-- {
		last[i] = n.last
		n = s.nodes[n.parent]
	}
	return append(runes, s.guides.after[last]...)
}

// following returns the guides of the node that go on with the rune.
func (s *search) following(n node, r rune) []int {
	var guides []int
	for _, g := range n.guides {
		if text := s.guides.texts[g]; len(text) > n.length && text[n.length] == r {
			guides = append(guides, g)
		}
	}
	return guides
}

// product adds the tuples that follow t on the class.
func (s *search) product(t tuple, from, class int, into *tupleSet) {
	if from == len(s.all) {
		into.add(t)
		return
	}
	s.field.follow(int(t[from]), class, s.budget, func(next int) {
		longer := t
		longer[from] = int32(next)
		s.product(longer, from+1, class, into)
	})
}

// enter keeps the node with those of its tuples that are new, if any, and yields
// its text if it lies in all languages. It reports whether the search goes on.
func (s *search) enter(n node, yield func(found) bool) bool {
	var fresh []tuple
	for _, t := range n.tuples {
		if !s.reach(t, n.reach()) {
			continue
		}
		fresh = append(fresh, t)
		s.budget.visit(100)
	}
	if len(fresh) == 0 {
		return true
	}
	n.tuples = fresh
	s.nodes = append(s.nodes, n)
	s.budget.hold(100)
	for _, t := range fresh {
		if s.inAll(t) {
			return yield(found{s.text(len(s.nodes) - 1), s.matched(n.set)})
		}
	}
	return true
}

func (s *search) inAll(t tuple) bool {
	for i := range s.all {
		if !s.field.accepts(int(t[i]), s.budget) {
			return false
		}
	}
	return true
}

// reach notes that the tuple was reached, unless that was so before with a subset.
func (s *search) reach(t tuple, r reach) bool {
	first, ok := s.reached[t]
	if !ok {
		s.reached[t] = r
		return true
	}
	more := s.more[t]
	if s.subset(int(first.set), int(r.set)) ||
		slices.ContainsFunc(more, func(old reach) bool { return s.subset(int(old.set), int(r.set)) }) {
		return false
	}
	// A smaller set takes the place of a larger one, unless the text of the larger is
	// shorter and yet to be extended: it may lead to a shorter text.
	replaced := func(old reach) bool { return old.length != r.length-1 && s.subset(int(r.set), int(old.set)) }
	if len(more) > 0 {
		more = slices.DeleteFunc(more, replaced)
	}
	if replaced(first) {
		s.reached[t] = r
	} else {
		more = append(more, r)
	}
	if len(more) > 0 || s.more[t] != nil {
		s.more[t] = more
		s.budget.hold(16)
	}
	return true
}

// stands reports whether no smaller set has taken the place of the one.
func (s *search) stands(t tuple, r reach) bool {
	return s.reached[t] == r || slices.Contains(s.more[t], r)
}

// text spells the text of a node.
func (s *search) text(n int) []rune {
	text := make([]rune, s.nodes[n].length)
	for ; s.nodes[n].parent >= 0; n = s.nodes[n].parent {
		text[s.nodes[n].length-1] = s.nodes[n].last
	}
	return text
}

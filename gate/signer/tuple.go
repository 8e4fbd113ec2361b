package signer

import "slices"

// tuple is one state of each language that must match; the rest is -1.
type tuple [maxAll]int32

// node is one text, with what was first reached by it.
type node struct {
	parent int
	last   rune
	length int
	set    int
	tuples []tuple
	guides []int // the guides that the text follows
}

// tupleSet is a set of tuples in the order in which they came.
type tupleSet struct {
	list []tuple
	seen map[tuple]bool // nil as long as the list is short
}

func (s *tupleSet) add(t tuple) {
	const short = 8
	switch {
	case s.seen == nil && slices.Contains(s.list, t), s.seen[t]:
		return
	case s.seen == nil && len(s.list) == short:
		s.seen = map[tuple]bool{}
		for _, old := range s.list {
			s.seen[old] = true
		}
	}
	s.list = append(s.list, t)
	if s.seen != nil {
		s.seen[t] = true
	}
}

package signer

import (
	"encoding/binary"
	"slices"
)

// stateSet is where the watched programs can stand, all at once.
type stateSet struct {
	states []int // ascending
	sunk   bool  // one of them is a sink
}

type setClass struct{ set, class int }

// subset reports whether the states of set a are all in set b.
func (s *search) subset(a, b int) bool {
	if a == b {
		return true
	}
	x, y := s.sets[a].states, s.sets[b].states
	if len(x) > len(y) {
		return false
	}
	s.budget.step(1 + len(y)/8)
	for len(x) > 0 {
		if len(x) > len(y) {
			return false
		}
		switch {
		case x[0] == y[0]:
			x, y = x[1:], y[1:]
		case x[0] < y[0]:
			return false
		default:
			y = y[1:]
		}
	}
	return true
}

// step returns the set after one rune of the class.
func (s *search) step(set, class int) int {
	if next, ok := s.after[setClass{set, class}]; ok {
		return next
	}
	var states []int
	s.round++
	for _, id := range s.sets[set].states {
		s.field.follow(id, class, s.budget, func(next int) {
			if len(s.marks) <= next {
				s.marks = append(s.marks, make([]uint32, 2*next+64-len(s.marks))...)
			}
			if s.marks[next] != s.round {
				s.marks[next] = s.round
				states = append(states, next)
			}
		})
	}
	next := s.intern(s.dropSunk(states))
	s.after[setClass{set, class}] = next
	s.budget.hold(40)
	return next
}

// dropSunk leaves of a program that is sure to match only the sink.
func (s *search) dropSunk(states []int) []int {
	var sunk []int
	for _, id := range states {
		if s.field.states[id].sink {
			sunk = append(sunk, s.field.states[id].program)
		}
	}
	if sunk == nil {
		return states
	}
	return slices.DeleteFunc(states, func(id int) bool {
		st := &s.field.states[id]
		return !st.sink && slices.Contains(sunk, st.program)
	})
}

// intern returns the number of the set of states.
func (s *search) intern(states []int) int {
	slices.Sort(states)
	key := make([]byte, 0, 4*len(states))
	for _, id := range states {
		key = binary.LittleEndian.AppendUint32(key, uint32(id))
	}
	id, ok := s.setIDs[string(key)]
	if !ok {
		id = len(s.sets)
		s.setIDs[string(key)] = id
		s.sets = append(s.sets, stateSet{states: states, sunk: slices.ContainsFunc(states, func(id int) bool {
			return s.field.states[id].sink
		})})
		s.budget.visit(12*len(states) + 120)
	}
	return id
}

// matched returns the watched programs that match a text that ends in the set.
func (s *search) matched(set int) []int {
	var programs []int
	for _, id := range s.sets[set].states {
		if s.field.accepts(id, s.budget) {
			programs = append(programs, s.field.states[id].program)
		}
	}
	slices.Sort(programs)
	return slices.Compact(programs)
}

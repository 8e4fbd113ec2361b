package signer

import "math/bits"

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(size int) bitset { return make(bitset, (size+63)/64) }

func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bitset) remove(i int) { b[i/64] &^= 1 << (i % 64) }

// or adds the members of other.
func (b bitset) or(other bitset) {
	for i, w := range other {
		b[i] |= w
	}
}

// orAnd adds the members that x and y share.
func (b bitset) orAnd(x, y bitset) {
	for i := range b {
		b[i] |= x[i] & y[i]
	}
}

// and keeps only the members of other.
func (b bitset) and(other bitset) {
	for i, w := range other {
		b[i] &= w
	}
}

// each calls f with the members in ascending order, until f returns false.
func (b bitset) each(f func(i int) bool) {
	for i, w := range b {
		for w != 0 {
			if !f(i*64 + bits.TrailingZeros64(w)) {
				return
			}
			w &= w - 1
		}
	}
}

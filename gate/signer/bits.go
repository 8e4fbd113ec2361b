package signer

import "math/bits"

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(size int) bitset { return make(bitset, (size+63)/64) }

func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// first returns the smallest member, or -1.
func (b bitset) first() int {
	for i, w := range b {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// cut returns the members inside and outside of by, if there are both; else nil.
func (b bitset) cut(by bitset) (in, out bitset) {
	var any, all uint64
	for i, w := range b {
		any |= w & by[i]
		all |= w &^ by[i]
	}
	if any == 0 || all == 0 {
		return nil, nil
	}
	in, out = make(bitset, len(b)), make(bitset, len(b))
	for i, w := range b {
		in[i], out[i] = w&by[i], w&^by[i]
	}
	return in, out
}

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

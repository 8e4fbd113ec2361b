package signer

import (
	"context"
	"fmt"
)

// The default bound of one proof, for a zero Limit. On the 2-core machine that
// measured docs/policy-proof.md it is met after well under two seconds.
const (
	defaultStates = 400_000
	defaultSteps  = 12_000_000
	defaultBytes  = 64 << 20
)

func (l Limit) orDefault() Limit {
	if l.States <= 0 {
		l.States = defaultStates
	}
	if l.Steps <= 0 {
		l.Steps = defaultSteps
	}
	if l.Bytes <= 0 {
		l.Bytes = defaultBytes
	}
	return l
}

// share is the part of the bound that each of n questions may use, so that one
// that is too large does not leave the others undecided.
func (l Limit) share(n int) Limit {
	return Limit{States: l.States / n, Steps: l.Steps / n, Bytes: l.Bytes}
}

// budget counts the work of one question down. It is sticky: after the first
// failure err stays, and callers look at it once per round of work.
type budget struct {
	ctx    context.Context
	limit  Limit
	states int // visited so far
	steps  int
	bytes  int
	err    error
}

func newBudget(ctx context.Context, limit Limit) *budget {
	b := &budget{ctx: ctx, limit: limit}
	b.round()
	return b
}

// visit counts one more state and the bytes that it takes.
func (b *budget) visit(bytes int) {
	b.states++
	if b.err == nil && b.states > b.limit.States {
		b.err = fmt.Errorf("%w: more than %d states", ErrTooLarge, b.limit.States)
	}
	b.hold(bytes)
}

// hold counts memory taken, about.
func (b *budget) hold(bytes int) {
	b.bytes += bytes
	if b.err == nil && b.bytes > b.limit.Bytes {
		b.err = fmt.Errorf("%w: more than %d MiB", ErrTooLarge, b.limit.Bytes>>20)
	}
}

// step counts transitions looked at.
func (b *budget) step(n int) {
	b.steps += n
	if b.err == nil && b.steps > b.limit.Steps {
		b.err = fmt.Errorf("%w: more than %d transitions", ErrTooLarge, b.limit.Steps)
	}
}

// round is called between rounds of work; it notices a cancelled context.
func (b *budget) round() error {
	if b.err == nil && b.ctx.Err() != nil {
		b.err = fmt.Errorf("the proof was stopped: %w", context.Cause(b.ctx))
	}
	return b.err
}

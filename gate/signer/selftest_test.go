package signer

import (
	"context"
	"errors"
	"testing"
)

func TestSelfTest(t *testing.T) {
	t.Parallel()
	if err := SelfTest(context.Background()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := SelfTest(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("expected a stopped self-test to fail, found %v", err)
	}
}

// TestSelfTestFails: a proof that gives the same answer to everybody, or leaves one
// kind of answer out, is found out.
func TestSelfTestFails(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Answer){
		"all is well":        func(a *Answer) { *a = Answer{} },
		"all is wrong":       func(a *Answer) { a.TooWide = &Identity{"a", "b"} },
		"nothing is decided": func(a *Answer) { a.Undecided = []Undecided{{Err: ErrTooLarge}} },
		"nothing compiles":   func(a *Answer) { a.Invalid = []InvalidPattern{{Err: ErrBadSigner}} },
		"all is vacuous":     func(a *Answer) { a.Vacuous = []Signer{{}} },
		"never missing":      func(a *Answer) { a.Missing = nil },
		"never too wide":     func(a *Answer) { a.TooWide = nil },
		"never loose":        func(a *Answer) { a.Loose = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := selfTest(context.Background(), func(ctx context.Context, q Question) Answer {
				a := Prove(ctx, q)
				spoil(&a)
				return a
			})
			if err == nil {
				t.Error("expected the self-test to fail")
			}
		})
	}
}

package signer

import "context"

// AcceptsEverything reports whether the live pattern constrains nothing: it is
// empty, or accepts every text of one line, as `.*`, `^.+$` and `a|[^a]` do. No
// certificate holds an empty issuer or subject, nor one with a line break, so a
// pattern that refuses only these is as good as none. It fails if the pattern does
// not compile, or, with ErrTooLarge, if more than the default bound is needed.
func AcceptsEverything(text string) (bool, error) {
	return isEmpty(language{{`.+`, whole}}, language{{text, searched}})
}

// matchesNothing reports whether no value is matched whole by the pattern.
func matchesNothing(text string) (bool, error) {
	return isEmpty(language{{text, whole}}, nil)
}

// isEmpty reports whether no text is in the first language and not in the second.
func isEmpty(in, out language) (bool, error) {
	f := newField()
	all, err := f.add(in)
	if err != nil {
		return false, err
	}
	beside, err := f.add(out)
	if err != nil {
		return false, err
	}
	b := newBudget(context.Background(), Limit{}.orDefault().share(questions))
	f.seal(b)
	if b.err != nil {
		return false, b.err
	}
	empty := true
	s := search{field: f, all: [][]int{all}, beside: beside, avoid: true, longest: anyLength, budget: b}
	s.run(func(found found) bool {
		empty = len(found.matched) > 0
		return empty
	})
	if empty && b.err != nil {
		return false, b.err
	}
	return empty, nil
}

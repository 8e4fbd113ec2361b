package signer

import (
	"context"
	"math"
	"slices"
)

// A signer, a live entry and a form are each a box: every issuer of a language
// paired with every subject of another. A question of the proof is then whether
// one box, cut out of several, lies inside the union of others.
//
// The two strings are never joined into one, so no separator has to be found that
// neither can contain: the issuers are divided first by which of the others they
// fall into, and the subjects are compared once for each such part.

// box is a set of identities: issuers in all of some languages, subjects in all
// of others. Languages are given as program numbers of their field.
type box struct {
	issuer, subject [][]int
}

func (x box) and(y box) box {
	return box{slices.Concat(x.issuer, y.issuer), slices.Concat(x.subject, y.subject)}
}

// rect is a box of one language each.
type rect struct {
	issuer, subject []int
}

func (r rect) box() box { return box{[][]int{r.issuer}, [][]int{r.subject}} }

// plane holds the languages of one proof, by field.
type plane struct {
	issuer, subject             *field
	issuerGuides, subjectGuides guides
}

func newPlane() *plane { return &plane{issuer: newField(), subject: newField()} }

func (p *plane) rect(issuer, subject language) (rect, error) {
	i, err := p.issuer.add(issuer)
	if err != nil {
		return rect{}, err
	}
	s, err := p.subject.add(subject)
	if err != nil {
		return rect{}, err
	}
	return rect{i, s}, nil
}

// seal ends the adding of languages.
func (p *plane) seal(ctx context.Context, limit Limit) error {
	b := newBudget(ctx, limit)
	p.issuer.seal(b)
	p.subject.seal(b)
	return b.err
}

// held is the memory that the fields keep, in bytes.
func (p *plane) held() int { return p.issuer.held + p.subject.held }

// witness is an identity that a question turned up, not yet confirmed.
type witness struct {
	issuer, subject []rune
}

func (w *witness) length() int { return len(w.issuer) + len(w.subject) }

func (w *witness) identity() *Identity {
	if w == nil {
		return nil
	}
	return &Identity{string(w.issuer), string(w.subject)}
}

// outside returns a shortest identity of the box that is in none of the rects;
// nil if there is none shorter than the limit.
func (p *plane) outside(in box, out []rect, shorter int, b *budget) *witness {
	var best *witness
	for _, part := range p.issuerParts(in, out, shorter, b) {
		if best != nil {
			shorter = min(shorter, best.length())
		}
		if len(part.text) >= shorter {
			break
		}
		var avoid []int
		for _, r := range out {
			if intersects(r.issuer, part.matched) {
				avoid = append(avoid, r.subject...)
			}
		}
		slices.Sort(avoid)
		s := search{
			field: p.subject, all: in.subject, beside: slices.Compact(avoid), avoid: true,
			longest: shorter - len(part.text) - 1, budget: b,
			guides: &p.subjectGuides,
		}
		s.run(func(f found) bool {
			if len(f.matched) > 0 {
				return true
			}
			best = &witness{part.text, f.text}
			return false
		})
		if b.err != nil {
			return nil
		}
	}
	return best
}

// issuerParts divides the issuers of the box by the rects that they fall into:
// one shortest issuer of each part. A part is left out where another, with a
// shorter issuer, falls into fewer.
func (p *plane) issuerParts(in box, out []rect, shorter int, b *budget) []found {
	var watched []int
	for _, r := range out {
		watched = append(watched, r.issuer...)
	}
	slices.Sort(watched)
	s := search{
		field: p.issuer, all: in.issuer, beside: slices.Compact(watched),
		longest: shorter - 1, budget: b,
		guides: &p.issuerGuides,
	}
	var parts []found
	s.run(func(f found) bool {
		if !slices.ContainsFunc(parts, func(old found) bool { return contains(f.matched, old.matched) }) {
			parts = append(parts, f)
		}
		return true
	})
	if b.err != nil {
		return nil
	}
	return parts
}

// guide makes the identity one that a person knows.
func (p *plane) guide(id Identity) {
	p.issuerGuides.add(id.Issuer)
	p.subjectGuides.add(id.Subject)
}

// anyLength is the bound on a witness where there is none.
const anyLength = math.MaxInt

// intersects reports whether the sets, of which y is sorted, share a member.
func intersects(x, y []int) bool {
	return slices.ContainsFunc(x, func(n int) bool {
		_, ok := slices.BinarySearch(y, n)
		return ok
	})
}

// contains reports whether all of small, sorted, is in large, sorted.
func contains(large, small []int) bool {
	for _, n := range small {
		if _, ok := slices.BinarySearch(large, n); !ok {
			return false
		}
	}
	return true
}

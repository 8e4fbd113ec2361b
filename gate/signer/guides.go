package signer

import "slices"

// maxGuides bounds the guides of a search: they only decide between equals.
const maxGuides = 16

// guideContext is how many runes of a text are looked up in the guides.
const guideContext = 3

// guides are texts that a person knows. They make a counterexample readable:
// where the proof leaves a choice, it takes what stands in a guide.
type guides struct {
	texts [][]rune
	after map[[guideContext]rune][]rune // what follows these runes in a guide
}

func (g *guides) len() int {
	if g == nil {
		return 0
	}
	return len(g.texts)
}

func (g *guides) add(text string) {
	runes := []rune(text)
	if len(g.texts) == maxGuides || slices.ContainsFunc(g.texts, func(old []rune) bool { return slices.Equal(old, runes) }) {
		return
	}
	g.texts = append(g.texts, runes)
	if g.after == nil {
		g.after = map[[guideContext]rune][]rune{}
	}
	for i := guideContext; i < len(runes); i++ {
		key := [guideContext]rune(runes[i-guideContext : i])
		if !slices.Contains(g.after[key], runes[i]) {
			g.after[key] = append(g.after[key], runes[i])
		}
	}
}

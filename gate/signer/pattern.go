package signer

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// mode is how a pattern meets a value.
type mode uint8

const (
	// searched patterns match anywhere in the value, as the controller does it.
	searched mode = iota
	// whole patterns match the value from its first rune to its last.
	whole
	// exact patterns are no patterns: the value itself.
	exact
)

// pattern is one language of strings, as a person wrote it.
type pattern struct {
	text string
	mode mode
}

// language is a union of patterns; without any, it is empty.
type language []pattern

// anyText is the language of all strings.
func anyText() language { return language{{mode: searched}} }

// parse returns the pattern as a regular expression that spans the value from
// its beginning: a searched one behind any text, the others up to the end. The
// wrapping is done on the parsed tree, because text such as `a\Qb` cannot be
// wrapped by text.
func (p pattern) parse() (*syntax.Regexp, error) {
	if p.mode == exact {
		return concat(op(syntax.OpBeginText), literal(p.text), op(syntax.OpEndText)), nil
	}
	re, err := syntax.Parse(p.text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if p.mode == whole {
		return concat(op(syntax.OpBeginText), re, op(syntax.OpEndText)), nil
	}
	anything := op(syntax.OpStar)
	anything.Sub = []*syntax.Regexp{op(syntax.OpAnyChar)}
	return concat(anything, re), nil
}

func op(o syntax.Op) *syntax.Regexp { return &syntax.Regexp{Op: o} }

func literal(text string) *syntax.Regexp {
	if text == "" {
		return op(syntax.OpEmptyMatch)
	}
	return &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune(text)}
}

func concat(parts ...*syntax.Regexp) *syntax.Regexp {
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: parts}
}

// matcher returns the pattern as a test by package regexp alone: the witness
// check, which shares nothing with the proof.
func (p pattern) matcher() (func(string) bool, error) {
	if p.mode == exact {
		return func(value string) bool { return value == p.text }, nil
	}
	if p.mode == whole && !strings.Contains(p.text, `\Q`) {
		re, err := regexp.Compile(`\A(?:` + p.text + `)\z`)
		if err != nil {
			return nil, err
		}
		return re.MatchString, nil
	}
	re, err := regexp.Compile(p.text)
	if err != nil {
		return nil, err
	}
	if p.mode == searched {
		return re.MatchString, nil
	}
	// A quote that is not ended would swallow the anchors. But a leftmost-longest match
	// spans the value exactly if some match does.
	re.Longest()
	return func(value string) bool {
		span := re.FindStringIndex(value)
		return span != nil && span[0] == 0 && span[1] == len(value)
	}, nil
}

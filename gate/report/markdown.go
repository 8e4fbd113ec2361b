package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// active are the ASCII characters that Markdown, its GitHub extensions (tables,
// autolinks, mentions, issues, emoji, mathematics) or HTML may act on within a
// line. As a numeric character reference none of them does: a reference is text
// (CommonMark 0.31, section 2.5).
const active = "&<>\"'`*_{}[]()|\\~!#:@$^="

// prose encodes a text from outside for a sentence or table cell in Markdown.
// It passes through Escape, so it is one line and can end no cell and no table.
func prose(s string, limit int) string {
	return markdown(EscapeTo(s, limit))
}

// code encodes a text from outside as a code span. It is an HTML element and not
// backticks, in which a reference would be shown as it is written; empty for an
// empty text.
func code(s string, limit int) string {
	if s == "" {
		return ""
	}
	return "<code>" + markdown(EscapeTo(s, limit)) + "</code>"
}

// longWord is the length in characters from which on a word is given places
// where its line may be broken: behind a slash, colon or at sign, and after as
// many characters without one, so that no digest or address widens a table.
const longWord = 24

func markdown(s string) string {
	var b strings.Builder
	for i, word := range strings.Split(s, " ") {
		if i > 0 {
			b.WriteByte(' ')
		}
		markdownWord(&b, word)
	}
	return b.String()
}

func markdownWord(b *strings.Builder, word string) {
	long := utf8.RuneCountInString(word) > longWord
	run := 0
	for i, r := range word {
		switch {
		case r < utf8.RuneSelf && strings.ContainsRune(active, r):
			fmt.Fprintf(b, "&#%d;", r)
		case r == '.' && i >= 3 && strings.EqualFold(word[i-3:i], "www"):
			b.WriteString("&#46;")
		default:
			b.WriteRune(r)
		}
		run++
		next, size := utf8.DecodeRuneInString(word[i+utf8.RuneLen(r):])
		switch {
		case size == 0:
		case long && run == longWord,
			long && strings.ContainsRune("/:@", r) && !strings.ContainsRune("/:@", next),
			// The element also keeps :emoji:, @name and #1 apart, which GitHub
			// looks for in the text after the references are resolved.
			strings.ContainsRune(":@#", r) && (next >= 'a' && next <= 'z' || next >= 'A' && next <= 'Z' || next >= '0' && next <= '9' || next == '+' || next == '-' || next == '_'):
			b.WriteString("<wbr>")
			run = 0
		}
	}
}

// table lays rows of cells that are encoded already under a header, as many as
// fit into budget bytes, and returns how many did not.
func table(header []string, rows [][]string, budget int) (text string, left int) {
	var b strings.Builder
	row := func(cells []string) string {
		return "| " + strings.Join(cells, " | ") + " |\n"
	}
	b.WriteString(row(header))
	b.WriteString("|" + strings.Repeat(" --- |", len(header)) + "\n")
	for i, cells := range rows {
		line := row(cells)
		if b.Len()+len(line) > budget {
			return b.String(), len(rows) - i
		}
		b.WriteString(line)
	}
	return b.String(), 0
}

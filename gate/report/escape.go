package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limit is the size in bytes that Escape allows one text from outside.
const Limit = 2048

// The rest of a cut text is announced in at most cutRoom bytes; a smaller limit
// than minLimit has no room for both.
const (
	cutRoom  = 48
	minLimit = 96
)

// Escape makes a text from outside fit to be printed: one line of at most Limit
// bytes, in which nothing is hidden and nothing is a command to the runner. It
// is idempotent. All text from the cluster, the registry, certificates and
// inputs goes through it before it reaches a log, an annotation, an output or
// the summary.
//
//   - Control characters become their pictures (␍ ␊ ␛), so a line break stays
//     visible and breaks nothing. The runner also cuts lines at a lone CR.
//   - Whatever is neither printable ASCII, nor an accented Latin letter, nor one
//     of a few typographic signs becomes its code point, ⟨U+202E⟩; invalid UTF-8
//     becomes ⟨xFF⟩. The gate compares strings exactly, so two strings that
//     differ must not look the same: that takes in bidirectional and zero-width
//     characters, combining marks, and letters of other scripts that look Latin.
//     The signs that the gate puts before its own lines (✔ ✗) go the same way.
//   - "##" is broken with a backslash, so that no legacy command (##[name]data,
//     which the runner finds anywhere in a line) is left; so is "::" at the
//     start. Runner behaviour: actions/runner v2.336, ActionCommand.cs,
//     OutputManager.cs and ProcessInvoker.cs.
func Escape(s string) string {
	return EscapeTo(s, Limit)
}

// EscapeTo is Escape with another limit, in bytes of the result. What does not
// fit is cut at a character, and the end says how many characters were cut. The
// least limit is 96.
func EscapeTo(s string, limit int) string {
	limit = max(limit, minLimit)
	var b strings.Builder
	var last rune           // the last rune written
	indent := true          // nothing but spaces so far
	fits, rest := 0, len(s) // where to cut: in the result, and in s
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if b.Len() <= limit-cutRoom {
			fits, rest = b.Len(), i
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "⟨x%02X⟩", s[i])
			r = '⟩'
		case r == '#' && last == '#':
			b.WriteString(`\#`)
		case r == ':' && indent && strings.HasPrefix(s[i:], "::"):
			b.WriteString(`\:`)
		case plain(r):
			b.WriteRune(r)
		case r < 0x20:
			r = '\u2400' + r
			b.WriteRune(r)
		case r == 0x7f:
			r = '\u2421'
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			r = '⟩'
		}
		last = r
		indent = indent && r == ' '
		i += size
		if b.Len() > limit {
			return fmt.Sprintf("%s… (%d more characters)", b.String()[:fits], utf8.RuneCountInString(s[rest:]))
		}
	}
	return b.String()
}

// signs are the characters beyond ASCII and Latin letters that Escape leaves:
// typography that the gate's own sentences use, and what Escape itself writes.
const signs = "…·–—‘’“”→←×≠≤≥⟨⟩"

// plain says that a rune shows itself, and only itself, to a reader.
func plain(r rune) bool {
	switch {
	case r < 0x7f:
		return r >= 0x20
	case r >= 0xc0 && r <= 0x17f:
		// Dotless i, kra and long s pass for other letters.
		return unicode.IsLetter(r) && r != 'ı' && r != 'ĸ' && r != 'ſ'
	case r >= 0x2400 && r <= 0x2421:
		return true
	}
	return strings.ContainsRune(signs, r)
}

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"flux-verify-gate/gate"
)

// WriteJSON writes the report as docs/report.schema.json describes it: indented,
// with a line feed at the end, times in RFC 3339 and UTC, no list null.
//
// The values are exact, not escaped by Escape, because a program compares them;
// only invalid UTF-8 is replaced. Everything that could act when the file is
// printed (in a later step, say) is written as \uXXXX, which does not change the
// value: see harmless. A program that prints a value has to escape it itself.
func WriteJSON(w io.Writer, r gate.Report) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(settle(r)); err != nil {
		return fmt.Errorf("failed to encode the report: %w", err)
	}
	if _, err := w.Write(harmless(b.Bytes())); err != nil {
		return fmt.Errorf("failed to write the report: %w", err)
	}
	return nil
}

// harmless rewrites JSON so that printing it yields no command to the runner
// and hides nothing, and leaves its values as they are: characters that Escape
// would replace, and every "#" that follows another, become \uXXXX. Both occur
// within strings only, where JSON allows such an escape for any character.
func harmless(text []byte) []byte {
	out := make([]byte, 0, len(text)+64)
	var last rune
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == '#' && last == '#', r >= 0x7f && !plain(r):
			if r > 0xffff {
				r -= 0x10000
				out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
		default:
			out = append(out, text[i:i+size]...)
		}
		last = r
		i += size
	}
	return out
}

package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"flux-verify-gate/gate"
)

// Symbol is what a log line begins with. It is never a space and never comes
// from outside, so that no text from outside can begin a line.
type Symbol string

// The symbols, as the flux command line uses them where it has them. Passed,
// Failed, Unsure and Noted go with the outcomes of a check; Doing begins a line
// on what is being done and Waits one on what is waited for. Continued begins
// every further line of the same message.
const (
	Passed    Symbol = "✔"
	Failed    Symbol = "✗"
	Unsure    Symbol = "?"
	Noted     Symbol = "•"
	Doing     Symbol = "►"
	Waits     Symbol = "◎"
	Continued Symbol = "│"
)

// How many bytes of one text the log shows.
const (
	sentenceLimit = 700
	valueLimit    = 1400
	nameLimit     = 300
)

// Line is one line for the log, without its line feed: the symbol, a space, and
// the text made harmless by Escape.
func Line(symbol Symbol, text string) string {
	return string(symbol) + " " + Escape(text)
}

// Waiting is what a run waits for.
type Waiting struct {
	// While says what is still wrong, in a few words; text from outside is allowed.
	While string
	// Since is when the wait began, Until when it ends at the latest.
	Since, Now, Until time.Time
}

// Progress is one line for the log, without its line feed, on a wait that goes
// on: because of what, for how long, and until when.
func Progress(w Waiting) string {
	return fmt.Sprintf("%s waiting while %s: %s so far, until %s at the latest",
		Waits, EscapeTo(w.While, sentenceLimit), span(w.Now.Sub(w.Since)), w.Until.UTC().Format("15:04:05 UTC"))
}

func span(d time.Duration) string {
	return max(d, 0).Round(time.Second).String()
}

// WriteLog writes the verdict to a log: the headline, what was looked at, then
// every finding that is not a pass with what was expected, what was found, the
// next step and where its code is explained, then the passes in short. It
// returns the error of w.
func WriteLog(w io.Writer, r gate.Report, s Style) error {
	r = settle(r)
	l := &lines{width: s.width()}

	l.message(verdictSymbol(r.Verdict), headline(r))
	l.field("serving", r.Source.Revision)
	if r.Expected.Digest != "" && !strings.HasSuffix(r.Source.Revision, r.Expected.Digest) {
		l.field("expected", r.Expected.Digest)
	}
	l.field("canary", canaryText(r))
	l.field("looked at", origin(r))
	l.field("judged", timing(r))
	l.field("checks", tally(r))
	l.field("but", standing(r))

	for _, f := range telling(r) {
		l.message(outcomeSymbol(f.Outcome), EscapeTo(string(f.Code), nameLimit)+": "+EscapeTo(f.Title, sentenceLimit))
		l.field("expected", f.Expected)
		l.field("found", f.Found)
		l.field("next", f.Remedy)
		l.field("see", s.link(f.Code))
	}
	for _, sig := range r.Signers {
		symbol, text := signerLine(sig)
		l.message(symbol, text)
		l.field("subject", sig.Subject)
		l.field("issuer", sig.Issuer)
		l.field("key", sig.Key)
		l.field("why not", sig.Why)
	}
	if passed := passes(r); len(passed) > 0 {
		codes := make([]string, len(passed))
		for i, f := range passed {
			codes[i] = EscapeTo(string(f.Code), nameLimit)
		}
		l.message(Passed, "passed: "+strings.Join(codes, ", "))
	}
	if where, text := suggestion(r); text != "" {
		l.message(Doing, "the policy to paste into the "+where+":")
		l.b.WriteString(text)
	}
	_, err := io.WriteString(w, l.b.String())
	return err
}

// headline is the verdict in one line, harmless.
func headline(r gate.Report) string {
	text := string(r.Verdict)
	if r.Verdict != gate.Verified {
		text += " (" + EscapeTo(string(r.Reason), nameLimit) + ")"
	}
	return text + ": " + EscapeTo(object(r), nameLimit)
}

func signerLine(s gate.SignerResult) (Symbol, string) {
	form := " (" + EscapeTo(how(s), nameLimit) + ")"
	switch {
	case s.Verified && s.Counts:
		return Passed, "signed by a required signer" + form
	case s.Verified:
		return Noted, "signed, but it does not count" + form
	}
	return Failed, "a signature that does not verify" + form
}

// how says in what form a signature was found.
func how(s gate.SignerResult) string {
	text := string(s.Layout)
	if s.Kind != "" {
		text = string(s.Kind) + ", " + text
	}
	if s.PredicateType != "" {
		text += ", " + s.PredicateType
	}
	return text
}

func verdictSymbol(v gate.Verdict) Symbol {
	switch v {
	case gate.Verified:
		return Passed
	case gate.Rejected:
		return Failed
	}
	return Unsure
}

func outcomeSymbol(o gate.Outcome) Symbol {
	switch o {
	case gate.Pass:
		return Passed
	case gate.Fail:
		return Failed
	case gate.Note:
		return Noted
	}
	return Unsure
}

// lines collects log lines, each of which begins with a symbol.
type lines struct {
	b     strings.Builder
	width int
}

// message writes a text that is harmless already.
func (l *lines) message(symbol Symbol, text string) {
	l.wrap(string(symbol)+" ", string(Continued)+"   ", text)
}

// labelWidth is as wide as the longest label and a space.
const labelWidth = 10

// field writes a labelled text from outside; nothing if it is empty.
func (l *lines) field(label, text string) {
	if text == "" {
		return
	}
	l.wrap(fmt.Sprintf("%s %-*s", Continued, labelWidth, label), fmt.Sprintf("%s %*s", Continued, labelWidth, ""), EscapeTo(text, valueLimit))
}

// wrap breaks text between words. Spaces within a line stay as they are.
func (l *lines) wrap(first, next, text string) {
	prefix := first
	for {
		head, rest := cutAt(text, l.width-utf8.RuneCountInString(prefix))
		l.b.WriteString(prefix + head + "\n")
		if rest == "" {
			return
		}
		text, prefix = rest, next
	}
}

// cutAt returns the words of text that fit into width characters, at least one,
// and the others.
func cutAt(text string, width int) (head, rest string) {
	column, space := 0, -1
	for i, r := range text {
		if r == ' ' && i > 0 && text[i-1] != ' ' {
			space = i
		}
		if column++; column > width && space > 0 {
			return text[:space], strings.TrimLeft(text[space:], " ")
		}
	}
	return text, ""
}

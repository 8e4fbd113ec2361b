package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"flux-verify-gate/gate"
)

// labelLine is how many characters a line of a label has, so that five nodes
// beside each other can still be read.
const labelLine = 26

// label encodes a text for a quoted Mermaid label of several lines.
func label(s string, limit int) string {
	var b strings.Builder
	rest := []rune(EscapeTo(s, limit))
	for len(rest) > labelLine {
		at := labelLine
		for i := labelLine; i > labelLine/2; i-- {
			if strings.ContainsRune(" /@:", rest[i-1]) {
				at = i
				break
			}
		}
		b.WriteString(mermaid(strings.TrimSuffix(string(rest[:at]), " "), limit) + "<br/>")
		rest = rest[at:]
	}
	return b.String() + mermaid(string(rest), limit)
}

// mermaid encodes a text from outside for a quoted Mermaid label. Everything but
// ASCII letters, digits, spaces, commas and dashes becomes #N;, Mermaid's form of
// a character reference, so that no quote ends, no Markdown in the label acts and
// no directive begins.
func mermaid(s string, limit int) string {
	var b strings.Builder
	for _, r := range EscapeTo(s, limit) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == ' ', r == ',', r == '-':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}

var longDigest = regexp.MustCompile(`(sha256:[0-9a-f]{12})[0-9a-f]{52}`)

// short cuts digests to what tells two apart at a glance, and drops the part of
// a GitHub subject or pattern that all of them have.
func short(s string) string {
	s = longDigest.ReplaceAllString(s, "$1…")
	for _, prefix := range []string{`^https://github\.com/`, "^https://github.com/", "https://github.com/"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			return rest
		}
	}
	return s
}

// state is how a link of the chain stands.
type state int

const (
	unseen  state = iota // no check was made of it
	holds                // every check passed
	unsure               // something could not be looked at
	breaks               // a check failed
	skipped              // nothing but notes
)

// link is one link of the chain in the diagram.
type link struct {
	state state
	label string // what it says if it holds
	codes []string
}

// chain reads the four links off the findings: signers to policy, policy to
// revision, revision to digest, digest to signature.
func chain(r gate.Report) [4]link {
	links := [4]link{
		{label: "accepts them"},
		{label: "verified"},
		{label: "is"},
		{label: "signed"},
	}
	rank := map[gate.Outcome]int{gate.Note: 1, gate.Pass: 2, gate.Unknown: 4, gate.Fail: 5}
	worst := [4]int{}
	for _, f := range r.Findings {
		var i int
		switch sectionOf(f.Code) {
		case sectionPolicy:
			i = 0
		case sectionSource, sectionStatus:
			i = 1
		case sectionDigest:
			i = 2
		case sectionSignature:
			i = 3
		default:
			continue
		}
		n := rank[f.Outcome]
		if f.Code == gate.SignatureSkipped && f.Outcome == gate.Note {
			n = 3 // whatever passed beside it, nobody looked for the signature
		}
		switch {
		case n > worst[i]:
			worst[i] = n
			links[i].codes = []string{string(f.Code)}
		case n == worst[i]:
			links[i].codes = append(links[i].codes, string(f.Code))
		}
	}
	for i, n := range worst {
		links[i].state = [...]state{unseen, skipped, holds, skipped, unsure, breaks}[n]
	}
	if links[1].state == holds && !hasPassed(r, gate.VerificationFailed) {
		// A source without a policy can be Ready and well; nobody verified it.
		links[1] = link{state: skipped, codes: []string{"nothing was verified"}}
	}
	if (links[2].state == holds || links[2].state == skipped) && r.Expected.Digest == gate.DigestAny {
		links[2] = link{state: skipped, codes: []string{"any digest is accepted"}}
	}
	return links
}

// hasPassed says that a check was made and passed.
func hasPassed(r gate.Report, code gate.Code) bool {
	return slices.ContainsFunc(r.Findings, func(f gate.Finding) bool { return f.Code == code && f.Outcome == gate.Pass })
}

// Colours that can be read on a light and on a dark page.
var linkStyles = map[state]string{
	unseen:  "stroke:#8c959f,stroke-width:2px",
	skipped: "stroke:#8c959f,stroke-width:2px",
	holds:   "stroke:#2da44e,stroke-width:2px",
	unsure:  "stroke:#bf8700,stroke-width:3px",
	breaks:  "stroke:#e5534b,stroke-width:4px",
}

// diagram draws the chain in Mermaid, with the links that do not hold marked;
// empty if no check was made of any of them.
func diagram(r gate.Report) string {
	links := chain(r)
	seen := false
	for _, l := range links {
		seen = seen || l.state != unseen
	}
	if !seen {
		return ""
	}
	nodes := nodes(r, links)
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, n := range nodes {
		fmt.Fprintf(&b, "  n%d[\"%s\"]\n", i, n)
	}
	for i, l := range links {
		arrow, label := "-->", "✔ "+l.label
		switch l.state {
		case breaks:
			arrow, label = "--x", "✗ "+some(l.codes)
		case unsure:
			arrow, label = "-.->", "? "+some(l.codes)
		case skipped:
			arrow, label = "-.->", "• "+some(l.codes)
		case unseen:
			arrow, label = "-.->", "not looked at"
		}
		fmt.Fprintf(&b, "  n%d %s|\"%s\"| n%d\n", i, arrow, label, i+1)
	}
	for i, l := range links {
		fmt.Fprintf(&b, "  linkStyle %d %s\n", i, linkStyles[l.state])
	}
	return b.String()
}

func some(codes []string) string {
	text := mermaid(codes[0], 100)
	if n := len(codes) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// nodes are the labels of the five nodes.
func nodes(r gate.Report, links [4]link) [5]string {
	node := func(title, text string, more int) string {
		if text == "" {
			return title
		}
		text = title + "<br/>" + label(short(text), 130)
		if more > 0 {
			text += fmt.Sprintf("<br/>and %d more", more)
		}
		return text
	}
	var n [5]string
	switch required := r.Policy.Required; {
	case len(required) > 0:
		s := required[0]
		text := s.Shorthand
		for _, t := range []string{s.Subject, s.SubjectPattern} {
			if text == "" {
				text = t
			}
		}
		n[0] = node("Required signers", text, len(required)-1)
	case r.Policy.Keys != "":
		n[0] = node("Required keys", "Secret "+r.Policy.Keys, 0)
	default:
		n[0] = "Required signers"
	}
	switch live := r.Policy.Live; {
	case live.Secret != "":
		n[1] = node("Live policy", "Secret "+live.Secret, 0)
	case len(live.Identities) > 0:
		n[1] = node("Live policy", live.Identities[0].Subject, len(live.Identities)-1)
	case live.Present:
		n[1] = node("Live policy", "names no identity", 0)
	case links[0].state == breaks:
		n[1] = node("Live policy", "none", 0)
	default:
		n[1] = "Live policy"
	}
	n[2] = node("Serving", r.Source.Revision, 0)
	n[3] = node("Expected digest", r.Expected.Digest, 0)
	found := ""
	for _, s := range r.Signers {
		if s.Verified && s.Counts {
			found = "by a required signer"
		}
	}
	n[4] = node("Signature", found, 0)
	return n
}

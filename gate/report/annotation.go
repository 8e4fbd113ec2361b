package report

import (
	"fmt"
	"strings"

	"github.com/sethvargo/go-githubactions"

	"flux-verify-gate/gate"
)

// The runner keeps ten annotations of a kind for a step, and of a message the
// first 4096 UTF-16 code units (actions/runner v2.336, ExecutionContext.cs). A
// limit in bytes is never the larger one.
const (
	annotationsKept   = 10
	annotationLimit   = 4096
	annotationReserve = 64
)

// Annotations returns one workflow command, without its line feed, for every
// report whose verdict is not verified: an error where the step fails, as the
// caller knows from the exit status, and else a warning. The first nine are
// said in full; of more, the tenth says how many there are.
//
// A verified source gets none, because what needs no attention should not ask
// for it; the summary tells of it. The one exception is a notice for
// will-refuse: what is right now would be refused next time.
func Annotations(reports []gate.Report, failing bool, s Style) []string {
	level := "warning"
	if failing {
		level = "error"
	}
	var commands, notices, further []string
	for _, r := range reports {
		r = settle(r)
		if r.Verdict == gate.Verified {
			for _, f := range by(r, gate.Note) {
				if f.Code == gate.WillRefuse && len(notices) < annotationsKept {
					notices = append(notices, annotation("notice", r, f, s))
					break
				}
			}
			continue
		}
		if len(commands) == annotationsKept-1 {
			further = append(further, r.Source.Namespace+"/"+r.Source.Name)
			continue
		}
		f, ok := cause(r)
		if !ok {
			f = gate.Finding{Code: r.Reason, Title: "the gate stopped before it had a finding", Remedy: "read the log of this step"}
		}
		commands = append(commands, annotation(level, r, f, s))
	}
	if len(further) > 0 {
		commands = append(commands, command(level, "Flux Verify Gate: more sources",
			fmt.Sprintf("%d more not verified: %s", len(further), strings.Join(further, ", "))))
	}
	return append(commands, notices...)
}

func annotation(level string, r gate.Report, f gate.Finding, s Style) string {
	text := EscapeTo(object(r), nameLimit) + ": " + EscapeTo(f.Title, sentenceLimit)
	for _, part := range []struct {
		label, text string
		limit       int
	}{
		{"expected", f.Expected, 800},
		{"found", f.Found, 800},
		{"next step", f.Remedy, sentenceLimit},
	} {
		if part.text != "" {
			text += "; " + part.label + ": " + EscapeTo(part.text, part.limit)
		}
	}
	if others := others(r, f); others != "" {
		text += "; besides: " + others
	}
	if link := s.link(f.Code); link != "" {
		text += "; see " + link
	}
	title := fmt.Sprintf("Flux Verify Gate: %s (%s)", r.Verdict, EscapeTo(string(f.Code), nameLimit))
	return command(level, title, text)
}

// others counts the findings beside the one that is told, with their codes.
func others(r gate.Report, told gate.Finding) string {
	var parts []string
	skipped := false
	for _, t := range []struct {
		outcome gate.Outcome
		word    string
	}{{gate.Fail, "failed"}, {gate.Unknown, "unknown"}} {
		var codes []string
		for _, f := range by(r, t.outcome) {
			if !skipped && f == told {
				skipped = true
				continue
			}
			codes = append(codes, EscapeTo(string(f.Code), nameLimit))
		}
		if len(codes) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", len(codes), t.word, EscapeTo(strings.Join(codes, ", "), nameLimit)))
		}
	}
	return strings.Join(parts, ", ")
}

// command escapes title and text once more, which leaves what is harmless as it
// is, so that nothing can be forgotten.
func command(level, title, text string) string {
	c := githubactions.Command{
		Name:       level,
		Properties: githubactions.CommandProperties{"title": EscapeTo(title, 2*nameLimit)},
		Message:    EscapeTo(text, annotationLimit-annotationReserve),
	}
	return c.String()
}

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"flux-verify-gate/gate"
)

// Output is one output of the step. Its value is one line.
type Output struct {
	Name  string
	Value string
}

// FindingsLimit is the size in bytes of the output findings. A job's outputs may
// have 1 MB together, but a value is also handed on in an environment variable,
// and Linux starts no process with one of 128 KiB or more.
const FindingsLimit = 32 << 10

var repositoryForm = regexp.MustCompile(`^[A-Za-z0-9._:/\[\]-]+$`)

// Outputs returns every output that action.yml declares, in its order.
// reportPath is where the JSON report was written; empty if it was not.
//
// digest and reference are set, and verified is true, only where a live source
// was verified; a digest or reference that does not have the form of one is
// left empty. findings holds the findings that are not a pass, fails first, as
// JSON on one line, its texts escaped; what exceeds FindingsLimit is left out
// whole, and the last element then says in "more" how many findings that were.
func Outputs(r gate.Report, reportPath string) []Output {
	r = settle(r)
	verified := r.Verdict == gate.Verified && r.Live
	digest, reference := "", ""
	if verified && gate.WellFormedDigest(r.Source.Digest) {
		digest = r.Source.Digest
		if repository, ok := strings.CutSuffix(r.Source.Reference, "@"+digest); ok && repositoryForm.MatchString(repository) {
			reference = r.Source.Reference
		}
	}
	return []Output{
		{"verdict", string(r.Verdict)},
		{"verified", strconv.FormatBool(verified)},
		{"reason", EscapeTo(string(r.Reason), nameLimit)},
		{"digest", digest},
		{"reference", reference},
		{"revision", Escape(r.Source.Revision)},
		{"findings", findings(r, FindingsLimit)},
		{"report", Escape(reportPath)},
	}
}

// NothingKnown returns the outputs of a run that knows nothing yet: undecided,
// not verified, no findings (an empty JSON list, so that fromJSON takes it) and
// everything else empty. Written at the start of a run, they are what a run that
// is killed leaves behind; of two values of a name the runner takes the last.
func NothingKnown() []Output {
	return []Output{
		{"verdict", string(gate.Undecided)},
		{"verified", "false"},
		{"reason", ""},
		{"digest", ""},
		{"reference", ""},
		{"revision", ""},
		{"findings", "[]"},
		{"report", ""},
	}
}

// element is one finding in the output findings.
type element struct {
	Code     string `json:"code,omitempty"`
	Outcome  string `json:"outcome"`
	Title    string `json:"title"`
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	Remedy   string `json:"remedy,omitempty"`
	Class    string `json:"class,omitempty"`
	// More is how many findings were left out.
	More int `json:"more,omitempty"`
}

func findings(r gate.Report, limit int) string {
	const reserve = 160 // for the last element
	all := telling(r)
	var b bytes.Buffer
	b.WriteByte('[')
	for i, f := range all {
		e := encode(element{
			Code:     EscapeTo(string(f.Code), nameLimit),
			Outcome:  EscapeTo(string(f.Outcome), nameLimit),
			Title:    EscapeTo(f.Title, sentenceLimit),
			Expected: EscapeTo(f.Expected, valueLimit),
			Found:    EscapeTo(f.Found, valueLimit),
			Remedy:   EscapeTo(f.Remedy, sentenceLimit),
			Class:    EscapeTo(string(f.Class), nameLimit),
		})
		if i > 0 {
			b.WriteByte(',')
		}
		if b.Len()+len(e) > limit-reserve {
			left := len(all) - i
			b.Write(encode(element{
				Outcome: string(gate.Note),
				Title:   fmt.Sprintf("%d more findings are in the report", left),
				More:    left,
			}))
			break
		}
		b.Write(e)
	}
	b.WriteByte(']')
	return b.String()
}

// encode is JSON on one line that can be printed: see harmless.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null") // cannot be: element holds strings and numbers
	}
	return harmless(bytes.TrimRight(b.Bytes(), "\n"))
}

// ErrNoFile says that the runner named no file to write to, as outside of
// GitHub Actions.
var ErrNoFile = errors.New("no file is named by the runner")

var outputName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// FormatOutputs returns the outputs in the form of the file that GITHUB_OUTPUT
// names, one line name=value each. A name that is not lower-case kebab, or a
// value with a line break, is an error: a value with line breaks would need a
// delimiter, and whoever knows the delimiter writes outputs of his own.
func FormatOutputs(outputs []Output) (string, error) {
	var b strings.Builder
	for _, o := range outputs {
		if !outputName.MatchString(o.Name) {
			return "", fmt.Errorf("output %q: expected a name of lower-case letters, digits and dashes", Escape(o.Name))
		}
		if strings.ContainsAny(o.Value, "\r\n\x00") {
			return "", fmt.Errorf("output %s: expected a value of one line, found a line break; escape it first", o.Name)
		}
		b.WriteString(o.Name + "=" + o.Value + "\n")
	}
	return b.String(), nil
}

// AppendOutputs writes the outputs to the file that GITHUB_OUTPUT names, all of
// them or none. It returns ErrNoFile where the variable is not set.
func AppendOutputs(getenv func(string) string, outputs []Output) error {
	text, err := FormatOutputs(outputs)
	if err != nil {
		return err
	}
	return appendTo(getenv, "GITHUB_OUTPUT", text)
}

// AppendSummary writes Markdown to the file that GITHUB_STEP_SUMMARY names. It
// returns ErrNoFile where the variable is not set.
func AppendSummary(getenv func(string) string, markdown string) error {
	return appendTo(getenv, "GITHUB_STEP_SUMMARY", markdown)
}

func appendTo(getenv func(string) string, variable, text string) (err error) {
	path := getenv(variable)
	if path == "" {
		return fmt.Errorf("%s: %w", variable, ErrNoFile)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("failed to open the file of %s: %w", variable, err)
	}
	defer func() {
		if e := f.Close(); e != nil && err == nil {
			err = fmt.Errorf("failed to close the file of %s: %w", variable, e)
		}
	}()
	if _, err := f.WriteString(text); err != nil {
		return fmt.Errorf("failed to write the file of %s: %w", variable, err)
	}
	return nil
}

package action

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/recordingtest"
)

// lines are what is said of each line of source-controller: those that the
// recordings are from say the version that ran.
var lines = []struct{ minor, flux, trait string }{
	{"1.7", "2.7", "serves v1 and v1beta2; looks for signatures under the tag `sha256-<hex>.sig` only, so a bundle does not explain its word"},
	{"1.8", "2.8", "serves v1 only; looks for bundles first, and where there is one, at nothing else"},
	{"1.9", "2.9", "as 1.8, and knows `trustedRootSecretRef`; verifies and pulls by digest"},
	{"1.10", "", "as 1.9, and writes `status.sourceVerificationFingerprint`, which the gate keeps and does not judge"},
}

// TestFluxVersions holds docs/flux-versions.md, which is made from the
// recordings; -update writes it.
func TestFluxVersions(t *testing.T) {
	t.Parallel()
	recorded := recordedLines(t)
	ran := map[string]string{}
	for line, recordings := range recorded {
		for _, r := range recordings.Runs {
			ran[line] = strings.TrimPrefix(r.Controller, "v")
		}
	}
	var text strings.Builder
	text.WriteString(`# Flux versions

<!-- Made from the recordings in gate/action/testdata by: make record. Do not edit. -->

What the gate's rules rest on, by version of source-controller. *Run*: the scenarios of ` + "`test/e2e`" + ` were run on this
version, and what the gate saw is recorded. *Read*: taken from the source of that version, and not run by us.

| source-controller | Flux | known by | what it does |
|---|---|---|---|
`)
	for _, l := range lines {
		known := "read"
		if r := recorded[l.minor]; r != nil {
			known = fmt.Sprintf("run: %s, %d recordings", ran[l.minor], len(r.Runs))
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", l.minor, l.flux, known, l.trait)
	}
	text.WriteString(`
A newer field under ` + "`spec.verify`" + ` makes the verdict undecided (` + "`verify-field-unknown`" + `); a message that no longer names its revision
in the known form does too (` + "`message-unknown`" + `).

## What was seen

For each run of the gate: the condition SourceVerified as the controller had left it when the gate judged, and what the gate
said. A dash: the scenario needs what that line does not have.

`)
	minors := slices.SortedFunc(maps.Keys(recorded), func(a, b string) int { return strings.Compare(b, a) })
	names := map[string]bool{}
	text.WriteString("| run |")
	for _, minor := range minors {
		text.WriteString(" " + ran[minor] + " | gate |")
		for name := range recorded[minor].Runs {
			names[name] = true
		}
	}
	text.WriteString("\n|---|" + strings.Repeat("---|---|", len(minors)) + "\n")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		text.WriteString("| " + name + " |")
		for _, minor := range minors {
			r, found := recorded[minor].Runs[name]
			if !found {
				text.WriteString(" – | – |")
				continue
			}
			fmt.Fprintf(&text, " %s | %s |", sourceVerified(r.Facts), inWords(r.Live))
		}
		text.WriteString("\n")
	}
	path := filepath.Join("..", "..", "docs", "flux-versions.md")
	if *update {
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != text.String() {
		t.Errorf("%s is not what the recordings say: make update", path)
	}
}

// forArtifact is where a message names the scenario's own artifact.
var forArtifact = regexp.MustCompile(` for '[^']*'`)

var conditionFact = regexp.MustCompile(`^SourceVerified (\S+) (\S+) at (\d+): (.*)$`)

// sourceVerified says in a few words what the condition was.
func sourceVerified(facts []string) string {
	for _, fact := range facts {
		c := conditionFact.FindStringSubmatch(fact)
		if c == nil {
			continue
		}
		if c[1] == "True" {
			return "True"
		}
		message := c[4]
		if _, after, found := strings.Cut(message, "': "); found {
			message = after
		}
		message = forArtifact.ReplaceAllString(message, "")
		if runes := []rune(message); len(runes) > 80 {
			message = string(runes[:80]) + "…"
		}
		return c[1] + ": " + strings.ReplaceAll(message, "|", `\|`)
	}
	return "absent"
}

// inWords says what the gate said.
func inWords(o recordingtest.Outcome) string {
	if o.Reason == gate.ReasonVerified {
		return string(o.Verdict)
	}
	return fmt.Sprintf("%s: %s", o.Verdict, o.Reason)
}

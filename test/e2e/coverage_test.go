package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"flux-verify-gate/gate"
)

var (
	checksSection = regexp.MustCompile(`(?m)^## ([A-G])\. `)
	checksCode    = regexp.MustCompile(`<a id="([a-z-]+)"></a>`)
	// exceptionRow is a row of the table in docs/testing.md of the codes that no
	// scenario raises.
	exceptionRow = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (.+) \\|$")
)

// checkCoverage holds that every code of the sections A to E of docs/checks.md
// was raised by a scenario, or that docs/testing.md says why none can. Both
// ways: what was raised is no exception.
func checkCoverage(t *testing.T, raised map[gate.Code]int) {
	t.Helper()
	checks, err := os.ReadFile(filepath.Join("..", "..", "docs", "checks.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	var exceptions []gate.Code
	for _, row := range exceptionRow.FindAllStringSubmatch(string(page), -1) {
		exceptions = append(exceptions, gate.Code(row[1]))
	}
	starts := checksSection.FindAllSubmatchIndex(checks, -1)
	codes := 0
	for i, start := range starts {
		if letter := string(checks[start[2]:start[3]]); letter > "E" {
			continue
		}
		end := len(checks)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		for _, m := range checksCode.FindAllSubmatch(checks[start[0]:end], -1) {
			codes++
			code := gate.Code(m[1])
			switch excepted := slices.Contains(exceptions, code); {
			case raised[code] == 0 && !excepted:
				t.Errorf("no scenario raises %s, and docs/testing.md does not say why", code)
			case raised[code] > 0 && excepted:
				t.Errorf("a scenario raises %s: remove it from the exceptions in docs/testing.md", code)
			}
		}
	}
	if codes < 40 {
		t.Errorf("found %d codes in docs/checks.md, which cannot be all", codes)
	}
}

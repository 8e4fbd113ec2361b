package gate_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"flux-verify-gate/gate"
)

// checksPage is docs/checks.md, which documents every code.
type checksPage struct {
	// anchors are the codes in the order in which the page explains them.
	anchors []gate.Code
	// sections are the same by the letter of their section.
	sections map[string][]gate.Code
	// waits is the column "waits" of the tables that have one.
	waits map[gate.Code]string
	text  string
}

var (
	pageSection = regexp.MustCompile(`^## ([A-G])\. `)
	pageRow     = regexp.MustCompile("^\\| <a id=\"([a-z-]+)\"></a>`([a-z-]+)` \\|((?: [^|]*)?) \\|")
)

func readChecksPage(t *testing.T) checksPage {
	t.Helper()
	data, err := os.ReadFile("../docs/checks.md")
	if err != nil {
		t.Fatal(err)
	}
	page := checksPage{sections: map[string][]gate.Code{}, waits: map[gate.Code]string{}, text: string(data)}
	section, hasWaits := "", false
	for _, line := range strings.Split(page.text, "\n") {
		if m := pageSection.FindStringSubmatch(line); m != nil {
			section = m[1]
		}
		if strings.HasPrefix(line, "| code |") {
			hasWaits = strings.HasPrefix(line, "| code | waits |")
		}
		m := pageRow.FindStringSubmatch(line)
		if m == nil {
			if strings.Contains(line, "<a id=") {
				t.Errorf("an anchor that this test cannot read: %s", line)
			}
			continue
		}
		if m[1] != m[2] {
			t.Errorf("the anchor %s stands at the code %s", m[1], m[2])
		}
		code := gate.Code(m[1])
		page.anchors = append(page.anchors, code)
		page.sections[section] = append(page.sections[section], code)
		if hasWaits {
			page.waits[code] = strings.TrimSpace(m[3])
		}
	}
	return page
}

func TestEveryCodeIsDocumentedInOrder(t *testing.T) {
	t.Parallel()
	page := readChecksPage(t)
	if !slices.Equal(page.anchors, gate.AllCodes) {
		t.Errorf("docs/checks.md explains\n%v\nand the codes are\n%v", page.anchors, gate.AllCodes)
	}
}

// TestCodesAreWellFormed: a code is an anchor and the value of an output.
func TestCodesAreWellFormed(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[gate.Code]bool{}
	for _, code := range gate.AllCodes {
		if !form.MatchString(string(code)) {
			t.Errorf("%q is not lower-case words with hyphens", code)
		}
		if seen[code] {
			t.Errorf("%s stands twice", code)
		}
		seen[code] = true
	}
	if seen[gate.ReasonVerified] {
		t.Error("a code is called like the reason of a run that is verified")
	}
}

// TestReasonOrder holds the order of reasons to the one in docs/checks.md.
func TestReasonOrder(t *testing.T) {
	t.Parallel()
	page := readChecksPage(t)
	_, rest, ok := strings.Cut(page.text, "**Order of reasons.**")
	if !ok {
		t.Fatal("docs/checks.md has no order of reasons")
	}
	paragraph, _, _ := strings.Cut(rest, "\n\n")
	var want []gate.Code
	for _, m := range regexp.MustCompile("`([a-z-]+)`|section ([A-G])").FindAllStringSubmatch(paragraph, -1) {
		if m[2] != "" {
			want = append(want, page.sections[m[2]]...)
		} else {
			want = append(want, gate.Code(m[1]))
		}
	}
	if !slices.Equal(want, gate.ReasonOrder) {
		t.Errorf("docs/checks.md orders\n%v\nand the code\n%v", want, gate.ReasonOrder)
	}
	for _, code := range gate.AllCodes {
		if !slices.Contains(gate.ReasonOrder, code) && !slices.Contains(onlyNotes, code) {
			t.Errorf("%s can fail, and has no place in the order of reasons", code)
		}
	}
}

// onlyNotes are the codes that are never a reason.
var onlyNotes = []gate.Code{gate.SourceInsecure, gate.TimeoutShort, gate.SignerShared, gate.WillRefuse, gate.SignatureSkipped}

// TestOnlyNotesDecideNothing holds that they are nothing but notes.
func TestOnlyNotesDecideNothing(t *testing.T) {
	t.Parallel()
	for _, v := range readVariants(t) {
		if !slices.Contains(onlyNotes, v.Fails) {
			continue
		}
		r := v.judge(t)
		for _, code := range onlyNotes {
			if outcome := worst(r, code); outcome != "" && outcome != gate.Note {
				t.Errorf("%s: %s is a %s", v.Name, code, outcome)
			}
		}
	}
}

// documentedWaits are the words of the column "waits" and what they mean.
var documentedWaits = []struct {
	words string
	wait  gate.Wait
}{
	{"no", gate.WaitNone}, {"60 s", gate.WaitMinute}, {"deadline", gate.WaitDeadline}, {"one more read", gate.WaitOnceMore},
	{"quiet", gate.WaitQuiet},
	{"by class", gate.WaitOnceMore}, {"by class", gate.WaitMinute}, {"by class", gate.WaitDeadline},
}

// TestWaitsAreAsDocumented compares the column "waits" with what the fails of
// all variants wait for. Section B has no such column: all of it waits for a
// quiet source, and matchers-multiple may wait to the deadline.
func TestWaitsAreAsDocumented(t *testing.T) {
	t.Parallel()
	wholeOnly(t)
	page := readChecksPage(t)
	for _, code := range page.sections["B"] {
		page.waits[code] = "quiet"
	}
	page.waits[gate.MatchersMultiple] = "quiet; deadline"

	waits := map[gate.Code]map[gate.Wait]bool{}
	for _, v := range readVariants(t) {
		for _, f := range v.judge(t).Findings {
			if f.Outcome != gate.Fail {
				continue
			}
			if waits[f.Code] == nil {
				waits[f.Code] = map[gate.Wait]bool{}
			}
			waits[f.Code][f.Wait] = true
		}
	}
	checked := 0
	for code, cell := range page.waits {
		want := map[gate.Wait]bool{}
		for _, d := range documentedWaits {
			if regexp.MustCompile(`(^|; )` + d.words + `($|;| )`).MatchString(cell) {
				want[d.wait] = true
			}
		}
		if len(waits[code]) == 0 {
			continue // a note only, or not built yet: see TestVariantsCoverEveryCode
		}
		checked++
		if !maps.Equal(want, waits[code]) {
			t.Errorf("%s: docs/checks.md says %q, and its fails wait %q", code, cell, slices.Sorted(maps.Keys(waits[code])))
		}
	}
	if checked < 34 {
		t.Errorf("only %d codes were compared", checked)
	}
}

// TestClassesAreAsDocumented compares the table of classes with the code.
func TestClassesAreAsDocumented(t *testing.T) {
	t.Parallel()
	page := readChecksPage(t)
	_, rest, _ := strings.Cut(page.text, "| class | waits |")
	table, _, _ := strings.Cut(rest, "\n\n")
	documented := map[gate.Class]gate.Wait{}
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(row, " | ")
		if len(cells) != 3 || !strings.HasPrefix(row, "| `") {
			continue
		}
		for _, d := range documentedWaits {
			if cells[1] == d.words {
				for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cells[0], -1) {
					documented[gate.Class(m[1])] = d.wait
				}
			}
		}
	}
	if len(documented) != 10 {
		t.Errorf("docs/checks.md has %d classes, want 10: %v", len(documented), documented)
	}
	for class, wait := range documented {
		if got := gate.ClassWait(class); got != wait {
			t.Errorf("%s: docs/checks.md says %q, the code %q", class, wait, got)
		}
		if class != gate.ClassUnknown && gate.ClassRemedy(class) == gate.ClassRemedy(gate.ClassUnknown) {
			t.Errorf("%s has no remedy of its own", class)
		}
	}
}

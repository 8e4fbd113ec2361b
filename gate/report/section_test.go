package report_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"sync"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
)

var codes = func() func(t *testing.T) []gate.Code {
	read := sync.OnceValues(func() ([]gate.Code, error) {
		file, err := parser.ParseFile(token.NewFileSet(), "../code.go", nil, 0)
		if err != nil {
			return nil, err
		}
		var found []gate.Code
		for _, decl := range file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, s := range d.Specs {
				text, err := strconv.Unquote(s.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
				if err != nil {
					return nil, err
				}
				found = append(found, gate.Code(text))
			}
		}
		return found, nil
	})
	// codes returns every code of the gate, read from its source.
	return func(t *testing.T) []gate.Code {
		found, err := read()
		if t != nil && (err != nil || len(found) < 50) {
			t.Fatalf("%d codes were found: %v", len(found), err)
		}
		return found
	}
}()

// TestEveryCodeHasItsPlace holds the table of sections against gate/code.go.
func TestEveryCodeHasItsPlace(t *testing.T) {
	t.Parallel()
	for _, c := range codes(t) {
		if !report.HasSection(c) {
			t.Errorf("%s has no section in section.go", c)
		}
	}
	if n, want := report.Sections(), len(codes(t)); n != want {
		t.Errorf("section.go has %d codes, gate/code.go %d", n, want)
	}
}

// TestEveryCodeIsLinked holds that the log and the summary lead to the
// explanation of every code.
func TestEveryCodeIsLinked(t *testing.T) {
	t.Parallel()
	style := report.Style{DocsURL: "https://example.com/checks.md"}
	for _, c := range codes(t) {
		r := gate.Report{Findings: []gate.Finding{{Code: c, Outcome: gate.Fail, Title: "it is wrong"}}}
		link := "https://example.com/checks.md#" + string(c)
		if log := logOf(t, r, style); !strings.Contains(log, link) {
			t.Errorf("the log has no link %s:\n%s", link, log)
		}
		if summary := report.Summary(r, style); !strings.Contains(summary, "]("+link+")") {
			t.Errorf("the summary has no link %s:\n%s", link, summary)
		}
	}
}

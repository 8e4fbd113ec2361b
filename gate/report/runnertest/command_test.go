package runnertest_test

import (
	"reflect"
	"testing"

	"flux-verify-gate/gate/report/runnertest"
)

func TestLines(t *testing.T) {
	t.Parallel()
	got := runnertest.Lines("a\nb\rc\r\nd\n\re")
	if want := []string{"a", "b", "c", "d", "", "e"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	type command struct{ grammar, name, data, property string }
	for name, test := range map[string]struct {
		in   string
		want []command
	}{
		"modern":                    {"::error title=a%2Cb::c%0Ad", []command{{"modern", "error", "c\nd", "a,b"}}},
		"modern, any case":          {"::ERROR::c", []command{{"modern", "error", "c", ""}}},
		"modern after white space":  {" \u0085\u3000\t::error::c", []command{{"modern", "error", "c", ""}}},
		"modern after text":         {"a ::error::c", nil},
		"modern, unknown":           {"::nothing::c", nil},
		"modern, not closed":        {"::error c", nil},
		"modern eats the line":      {"::error::##[warning]c", []command{{"modern", "error", "##[warning]c", ""}}},
		"unknown modern, legacy":    {"::nothing::##[warning]c", []command{{"legacy", "warning", "c", ""}}},
		"legacy anywhere":           {"a ##[set-output title=v%3B;x=y]c%5D", []command{{"legacy", "set-output", "c]", "v;"}}},
		"legacy, unknown":           {"##[command]c", nil},
		"legacy, broken":            {`#\#[error]c`, nil},
		"a lone CR begins a line":   {"a\r::error::c", []command{{"modern", "error", "c", ""}}},
		"percent is decoded last":   {"::error::a%250Ab", []command{{"modern", "error", "a%0Ab", ""}}},
		"stopped":                   {"::stop-commands::T\n::error::c\n::t::\n::error::d", []command{{"modern", "stop-commands", "T", ""}, {"modern", "error", "d", ""}}},
		"stopped by a legacy one":   {"x ##[stop-commands]T\n::error::c", []command{{"legacy", "stop-commands", "T", ""}}},
		"two legacy ones in a line": {"##[x]##[error]c", []command{{"legacy", "error", "c", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []command
			for _, c := range runnertest.Commands(test.in) {
				got = append(got, command{c.Grammar, c.Name, c.Data, c.Properties["title"]})
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestFormed(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{
		"::nothing::c": 1, "##[nothing]c": 1, "#\u200b#[x]c": 1, "\u200b::x::c": 1, "#\x00#[x]": 1,
		"::stop-commands::t\n::error::c": 2, "a ::x::c": 0, `#\#[x]c`: 0, "##[x": 0, "": 0,
	} {
		if got := len(runnertest.Formed(in)); got != want {
			t.Errorf("%q: got %d, want %d", in, got, want)
		}
	}
}

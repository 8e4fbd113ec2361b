package runnertest_test

import (
	"reflect"
	"strings"
	"testing"

	"flux-verify-gate/gate/report/runnertest"
)

func TestOutputs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   string
		want map[string]string
		err  string
	}{
		"name and value":          {in: "a=b\nc=d=e<<f\n\n", want: map[string]string{"a": "b", "c": "d=e<<f"}},
		"empty value":             {in: "a=\n", want: map[string]string{"a": ""}},
		"heredoc":                 {in: "a<<E\nb=c\n\nd\nE\ne=f", want: map[string]string{"a": "b=c\n\nd", "e": "f"}},
		"the last wins":           {in: "a=b\na=c\n", want: map[string]string{"a": "c"}},
		"a value with a CR":       {in: "a=b\rverdict=verified\n", want: map[string]string{"a": "b", "verdict": "verified"}},
		"earlier ones stay":       {in: "a=b\nx\nc=d\n", want: map[string]string{"a": "b"}, err: "line 2"},
		"no name":                 {in: "=b\n", want: map[string]string{}, err: "no name"},
		"heredoc without end":     {in: "a<<E\nb\n", want: map[string]string{}, err: "does not end"},
		"heredoc without a limit": {in: "a<<\nb\n", want: map[string]string{}, err: "no delimiter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := runnertest.Outputs(test.in)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got error %v, want %q", err, test.err)
			}
		})
	}
}

package gate_test

import (
	"strings"
	"testing"

	"flux-verify-gate/gate"
)

func TestParseObjectName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]gate.ObjectName{
		"flux-system/canary":            {Namespace: "flux-system", Name: "canary"},
		"a/b.c-d":                       {Namespace: "a", Name: "b.c-d"},
		"0/0":                           {Namespace: "0", Name: "0"},
		"a/" + strings.Repeat("b", 253): {Namespace: "a", Name: strings.Repeat("b", 253)},
	} {
		got, err := gate.ParseObjectName(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "/", "a", "a/", "/b", "a/b/c", "a//b", "a b/c", " a/b", "a/b ", "A/b", "a/B", "a.b/c", "a/-b", "-a/b", "a/b-", "a/.b", "a/b..c",
		"a/b\n", "a/b\x00", "a/..", "../b", "a/b?watch=1", "a/b%2fc", "ä/b", "a/" + strings.Repeat("b", 254), strings.Repeat("a", 64) + "/b",
	} {
		if got, err := gate.ParseObjectName(text); err == nil || got != (gate.ObjectName{}) {
			t.Errorf("%q: got %v, %v, want an error", text, got, err)
		}
	}
}

func FuzzParseObjectName(f *testing.F) {
	for _, text := range []string{"flux-system/canary", "a/b/c", "/", "", "a/b\n", "A/b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := gate.ParseObjectName(text)
		switch {
		case err != nil && n != (gate.ObjectName{}):
			t.Errorf("%q: %v beside an error", text, n)
		case err == nil && (n.String() != text || strings.Count(text, "/") != 1 || strings.ContainsAny(text, " \t\r\n?#%\\")):
			t.Errorf("%q: got %v", text, n)
		}
	})
}

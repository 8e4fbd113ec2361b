package signer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hostile are patterns that somebody might write to make the proof give up, or the
// gate run out of memory.
func hostile() map[string]string {
	var classes, alternatives, singles strings.Builder
	for i := range 400 {
		fmt.Fprintf(&classes, `[\p{L}\x{%x}-\x{%x}]?`, 0x3000+i*7, 0x9000+i*13)
	}
	for i := range 1000 {
		fmt.Fprintf(&alternatives, "https://github\\.com/acme/repo%d/\\.github/workflows/cd%d\\.yaml@refs/heads/main|", i, i)
	}
	for i := range 20_000 {
		fmt.Fprintf(&singles, "%c", rune(0x4E00+i))
	}
	return map[string]string{
		"star of stars":            `^(a|a)*$`,
		"nested stars":             `^((a*)*)*b$`,
		"a far look back":          `.*a.{200}b.*`,
		"a far look back, twice":   `.*a.{200}b.*c.{200}d.*`,
		"a far look back, at ends": `^(.*a.{500})|(.*b.{499})$`,
		"counted":                  `^((a{1,10}){1,10}){1,10}$`,
		"counted words":            `^(\w{1,30}[-._]?){1,30}$`,
		"many optionals":           `^(a?){1000}$`,
		"many optional letters":    strings.Repeat("a?", 25_000),
		"many stars":               "^" + strings.Repeat(".*a", 3000) + "$",
		"huge classes":             "^" + classes.String() + "$",
		"all of Unicode":           "^[" + singles.String() + "]+$",
		"different letters":        singles.String(),
		"a long text":              "^" + strings.Repeat("https://github.com/acme/", 4000) + "$",
		"a long text, unanchored":  strings.Repeat("abcdefghij", 10_000),
		"a thousand alternatives":  "^(" + strings.TrimSuffix(alternatives.String(), "|") + ")$",
		"folded":                   `(?i)` + strings.Repeat("kſ", 2000),
		"words":                    strings.Repeat(`\b.\B.`, 2000),
		"overlapping":              `^(.*a|.*b|.*c|.*d|.*e|.*f|.*g|.*h).{12}x.*$`,
		"every subset":             `^(.{0,99}a)?(.{0,99}b)?(.{0,99}c)?(.{0,99}d)?.*$`,
	}
}
func TestTmpH(t *testing.T) {
	const issuer = "https://token.actions.githubusercontent.com"
	sig := Signer{Issuer: issuer, Subject: "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main"}
	for name, text := range hostile() {
		for i, q := range []Question{
			{Live: []Entry{{`^https://token\.actions\.githubusercontent\.com$`, text}}, Required: []Signer{sig}},
			{Live: []Entry{{text, text}}, Required: []Signer{sig}},
			{Live: []Entry{{text, text}}, Required: []Signer{{IssuerPattern: text, SubjectPattern: text}}, Everything: true},
			{Live: []Entry{{`^https://token\.actions\.githubusercontent\.com$`, `.*`}}, Required: []Signer{{Issuer: issuer, SubjectPattern: text}}},
			{Live: []Entry{{`^https://token\.actions\.githubusercontent\.com$`, `.*` + text}}, Required: []Signer{{Issuer: issuer, SubjectPattern: ".*a.{150}"}, {Issuer: issuer, SubjectPattern: text}}, Everything: true},
		} {
			var m1, m2 runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m1)
			t0 := time.Now()
			a := Prove(context.Background(), q)
			el := time.Since(t0)
			runtime.ReadMemStats(&m2)
			und := ""
			for _, u := range a.Undecided {
				und += u.Question + ": " + u.Err.Error() + "; "
				if !errors.Is(u.Err, ErrTooLarge) {
					und += "!!!!"
				}
			}
			if el > 500*time.Millisecond || und != "" {
				t.Log(name, i, el, a.States, (m2.TotalAlloc-m1.TotalAlloc)>>20, "MiB", und)
			}
		}
	}
}

package signer

import (
	"fmt"
	"testing"
)

// BenchmarkManyEntries: the entries of a policy are free, so the work must not grow
// with their square.
func BenchmarkManyEntries(b *testing.B) {
	required := Signer{Issuer: gitHubIssuer, Subject: "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main"}
	for _, n := range []int{100, 1000} {
		q := Question{Required: []Signer{required}}
		for i := range n {
			q.Live = append(q.Live, Entry{
				Issuer:  fmt.Sprintf(`^https://token\.actions\.githubusercontent\.com$|x%d`, i),
				Subject: fmt.Sprintf(`^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$|x%d`, i),
			})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Prove(b.Context(), q)
			}
		})
	}
}

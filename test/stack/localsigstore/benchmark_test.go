package localsigstore_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
	"flux-verify-gate/test/stack/localsigstore"
)

func BenchmarkStart(b *testing.B) {
	for i := range b.N {
		s, err := localsigstore.Start(b.Context(), localsigstore.Options{Dir: filepath.Join(b.TempDir(), fmt.Sprint(i))})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Stop(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkSignKeyless also reports the memory of the four services.
func BenchmarkSignKeyless(b *testing.B) {
	s, registry := sharedSigstore(b), startRegistry(b)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		reference := push(b, registry, fmt.Sprintf("benchmark/%d", i))
		b.StartTimer()
		if err := s.SignKeyless(b.Context(), reference, token(b, s, githubtoken.Claims{})); err != nil {
			b.Fatal(err)
		}
	}
	var sum int
	for _, name := range localsigstore.Services() {
		pid, _ := s.PID(name)
		kib := residentKiB(b, pid)
		b.Logf("%s: %d MiB", name, kib/1024)
		sum += kib
	}
	b.ReportMetric(float64(sum)/1024, "MiB-services")
}

func BenchmarkVerifyKeyless(b *testing.B) {
	s, registry := sharedSigstore(b), startRegistry(b)
	reference := push(b, registry, "benchmark/verify")
	if err := s.SignKeyless(b.Context(), reference, token(b, s, githubtoken.Claims{})); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.VerifyKeyless(b.Context(), reference, githubtoken.Issuer, subject); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSignKey(b *testing.B) {
	s, registry := sharedSigstore(b), startRegistry(b)
	key, err := s.GenerateKey(b.Context(), b.TempDir(), "release")
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		reference := push(b, registry, fmt.Sprintf("benchmark/%d", i))
		b.StartTimer()
		if err := s.SignKey(b.Context(), reference, key, cosigncli.Bundle); err != nil {
			b.Fatal(err)
		}
	}
}

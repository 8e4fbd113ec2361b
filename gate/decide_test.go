package gate_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/cluster"
	"flux-verify-gate/gate/signer"
)

// judgedAt is the time that the tests pass in for the clock.
var judgedAt = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

// recordedCase is one line of testdata/cases/expected.yaml.
type recordedCase struct {
	Object  string           `yaml:"object"`
	Keys    *recordedKeys    `yaml:"required-keys"`
	Signers []recordedSigner `yaml:"required-signers"`
	Verdict gate.Verdict     `yaml:"verdict"`
	Reason  gate.Code        `yaml:"reason"`
}

type recordedKeys struct {
	Secret string `yaml:"secret"`
}

type recordedSigner struct {
	Issuer  string `yaml:"issuer"`
	Subject string `yaml:"subject"`
}

// policy is what the case asks for, with digest: any and signature: skip.
func (c recordedCase) policy(t *testing.T) gate.Policy {
	t.Helper()
	want := gate.Requirements{Digest: gate.DigestAny, Signature: gate.SignatureSkip}
	if c.Keys != nil {
		want.Keys = &gate.Keys{Secret: c.Keys.Secret}
	}
	for _, s := range c.Signers {
		want.Required = append(want.Required, signer.Signer{Issuer: s.Issuer, Subject: s.Subject})
	}
	return mustPolicy(t, want)
}

func mustPolicy(t *testing.T, want gate.Requirements) gate.Policy {
	t.Helper()
	p, err := gate.NewPolicy(want)
	if err != nil {
		t.Fatalf("policy: %v", err)
	}
	return p
}

// readSource reads a recorded object of testdata/cases.
func readSource(t *testing.T, path string) *gate.Source {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "cases", path))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	source, err := cluster.ReadRecording(file, "", "")
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return &source
}

func readCases(t *testing.T) []recordedCase {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "cases", "expected.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []recordedCase
	if err := yaml.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no recorded cases")
	}
	return cases
}

func TestDecideRecordedCases(t *testing.T) {
	t.Parallel()
	for _, c := range readCases(t) {
		t.Run(c.Object, func(t *testing.T) {
			t.Parallel()
			report := gate.Decide(context.Background(), c.policy(t), gate.Evidence{Source: readSource(t, c.Object)}, judgedAt)
			want := c.Reason
			if c.Verdict == gate.Verified {
				want = gate.ReasonVerified
			}
			if report.Verdict != c.Verdict || report.Reason != want {
				t.Errorf("got %s (%s), want %s (%s)", report.Verdict, report.Reason, c.Verdict, want)
				for _, f := range report.Findings {
					if f.Outcome != gate.Pass {
						t.Logf("%s %s: %s (found %s)", f.Outcome, f.Code, f.Title, f.Found)
					}
				}
			}
		})
	}
}

package gate

import (
	"context"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate/signer"
)

// TestTooWideNamesAUsualIdentity holds that beside the shortest identity, which
// may look like nobody's, the finding names one that people know.
func TestTooWideNamesAUsualIdentity(t *testing.T) {
	t.Parallel()
	source := serving(&sourcev1.OCIRepositoryVerification{
		Provider: providerCosign,
		MatchOIDCIdentity: []sourcev1.OIDCIdentityMatch{{
			Issuer: `^https://token\.actions\.githubusercontent\.com$`, Subject: `^https://github\.com/acme/plat`,
		}},
	}, metav1.ConditionTrue, "")
	f := &facts{ctx: context.Background(), source: source, evidence: Evidence{Source: source}, want: Requirements{
		Required: []signer.Signer{{
			Issuer: githubIssuer, Subject: "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main",
		}},
	}}
	findings := checkTooWide(f)
	if len(findings) != 1 || findings[0].Outcome != Fail {
		t.Fatalf("got %+v, want one fail", findings)
	}
	shortest, usual, both := strings.Cut(findings[0].Found, "in the usual shape, ")
	if !both || !strings.Contains(shortest, "https://github.com/acme/plat") || !strings.Contains(usual, "/.github/workflows/") {
		t.Errorf("got %q, want the shortest identity and one of a workflow", findings[0].Found)
	}
}

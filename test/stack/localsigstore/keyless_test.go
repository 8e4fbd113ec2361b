package localsigstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
	"flux-verify-gate/test/stack/localsigstore"
)

const (
	subject     = "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main"
	otherPerson = "eve@acme.test"
	provenance  = "https://slsa.dev/provenance/v1"
)

func token(tb testing.TB, s *localsigstore.Sigstore, claims githubtoken.Claims) string {
	tb.Helper()
	token, err := s.Tokens().Token(claims)
	if err != nil {
		tb.Fatal(err)
	}
	return token
}

// refused fails the test unless cosign ran and said why it refused.
func refused(t *testing.T, what string, err error, want string) {
	t.Helper()
	var failure *cosigncli.Error
	if !errors.As(err, &failure) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want cosign's refusal with %q", what, err, want)
	}
}

func TestSignKeyless(t *testing.T) {
	t.Parallel()
	s, registry := sharedSigstore(t), startRegistry(t)
	person, err := s.Tokens().EmailToken("ann@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		token, issuer, subject string
		extensions             map[int]string
	}{
		"push": {
			token: token(t, s, githubtoken.Claims{}), issuer: githubtoken.Issuer, subject: subject,
			extensions: map[int]string{
				8: githubtoken.Issuer, 11: "github-hosted", 12: "https://github.com/acme/platform", 14: "refs/heads/main",
				15: "1001", 17: "2001", 18: subject, 20: "push", 21: "https://github.com/acme/platform/actions/runs/3001/attempts/1", 22: "private",
			},
		},
		"reusable workflow for a tag on an own runner": {
			token: token(t, s, githubtoken.Claims{
				Ref: "refs/tags/v1", RunnerEnvironment: "self-hosted",
				JobWorkflowRef: "acme/shared/.github/workflows/sign.yaml@refs/heads/main",
			}),
			issuer: githubtoken.Issuer, subject: "https://github.com/acme/shared/.github/workflows/sign.yaml@refs/heads/main",
			extensions: map[int]string{
				11: "self-hosted", 12: "https://github.com/acme/platform", 14: "refs/tags/v1",
				18: "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/tags/v1",
			},
		},
		"pull request": {
			token:  token(t, s, githubtoken.Claims{EventName: "pull_request", Ref: "refs/pull/7/merge"}),
			issuer: githubtoken.Issuer, subject: "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/pull/7/merge",
			extensions: map[int]string{14: "refs/pull/7/merge", 20: "pull_request"},
		},
		"enterprise with an issuer of its own": {
			token:  token(t, s, githubtoken.Claims{Enterprise: "acme-corp"}),
			issuer: githubtoken.Issuer + "/acme-corp", subject: subject,
			extensions: map[int]string{8: githubtoken.Issuer + "/acme-corp"},
		},
		"person": {
			token: person, issuer: githubtoken.EmailIssuer, subject: "ann@acme.test",
			extensions: map[int]string{8: githubtoken.EmailIssuer, 12: ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reference := push(t, registry, "keyless/"+strings.ReplaceAll(name, " ", "-"))
			bundle := filepath.Join(t.TempDir(), "bundle.json")
			if err := s.SignKeyless(t.Context(), reference, test.token, "--bundle", bundle); err != nil {
				t.Fatal(err)
			}
			if _, err := s.VerifyKeyless(t.Context(), reference, test.issuer, test.subject); err != nil {
				t.Error(err)
			}
			_, err := s.VerifyKeyless(t.Context(), reference, test.issuer, otherPerson)
			refused(t, "another subject", err, `expected SAN value "`+otherPerson+`", got "`+test.subject+`"`)
			_, err = s.VerifyKeyless(t.Context(), reference, "https://issuer.acme.test", test.subject)
			refused(t, "another issuer", err, `expected issuer value "https://issuer.acme.test", got "`+test.issuer+`"`)

			certificate := readCertificate(t, bundle)
			for number, want := range test.extensions {
				if got := extension(t, certificate, number); got != want {
					t.Errorf("extension %d of the certificate: got %q, want %q", number, got, want)
				}
			}
		})
	}
}

func TestSignKeylessRefused(t *testing.T) {
	t.Parallel()
	s, registry := sharedSigstore(t), startRegistry(t)
	reference := push(t, registry, "keyless/refused")
	stranger, err := githubtoken.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	forged, err := stranger.Token(githubtoken.Claims{})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "a token that the issuer did not sign", s.SignKeyless(t.Context(), reference, forged), "There was an error processing the identity token")
	refused(t, "a token for somebody else", s.SignKeyless(t.Context(), reference, token(t, s, githubtoken.Claims{Audience: "vault"})), "There was an error processing the identity token")
	_, err = s.VerifyKeyless(t.Context(), reference, githubtoken.Issuer, subject)
	refused(t, "an artifact without a signature", err, "no signatures found")
}

// TestSignInJob signs as a job does: cosign itself asks for the token.
func TestSignInJob(t *testing.T) {
	t.Parallel()
	s, registry := sharedSigstore(t), startRegistry(t)
	reference := push(t, registry, "keyless/job")
	url, bearer, err := s.Tokens().Job(githubtoken.Claims{})
	if err != nil {
		t.Fatal(err)
	}
	job := *s.Cosign
	job.Env = []string{"ACTIONS_ID_TOKEN_REQUEST_URL=" + url, "ACTIONS_ID_TOKEN_REQUEST_TOKEN=" + bearer}
	if _, err := job.Run(t.Context(), "sign", "--yes", "--signing-config", s.SigningConfig(), "--trusted-root", s.TrustedRoot(), reference); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifyKeyless(t.Context(), reference, githubtoken.Issuer, subject); err != nil {
		t.Error(err)
	}
}

func TestAttestKeyless(t *testing.T) {
	t.Parallel()
	s, registry := sharedSigstore(t), startRegistry(t)
	reference := push(t, registry, "keyless/attested")
	predicate := filepath.Join(t.TempDir(), "predicate.json")
	if err := os.WriteFile(predicate, []byte(`{"buildDefinition":{"buildType":"https://stack.test/build"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.AttestKeyless(t.Context(), reference, token(t, s, githubtoken.Claims{}), provenance, predicate); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifyAttestationKeyless(t.Context(), reference, githubtoken.Issuer, subject, provenance); err != nil {
		t.Error(err)
	}
	_, err := s.VerifyAttestationKeyless(t.Context(), reference, githubtoken.Issuer, subject, "https://cyclonedx.org/bom")
	refused(t, "another type", err, "none of the attestations matched the predicate type")
	_, err = s.VerifyAttestationKeyless(t.Context(), reference, githubtoken.Issuer, otherPerson, provenance)
	refused(t, "another subject", err, "expected SAN value")
}

// TestAnother has two Sigstores that certify the same identities.
func TestAnother(t *testing.T) {
	t.Parallel()
	s, registry := sharedSigstore(t), startRegistry(t)
	other := start(t, localsigstore.Options{Tokens: s.Tokens()})
	reference := push(t, registry, "keyless/untrusted")
	if err := other.SignKeyless(t.Context(), reference, token(t, s, githubtoken.Claims{})); err != nil {
		t.Fatal(err)
	}
	if _, err := other.VerifyKeyless(t.Context(), reference, githubtoken.Issuer, subject); err != nil {
		t.Error(err)
	}
	_, err := s.VerifyKeyless(t.Context(), reference, githubtoken.Issuer, subject)
	refused(t, "a signature of another Sigstore", err, "not enough verified log entries from transparency log: 0 < 1")
}

func TestSignKey(t *testing.T) {
	t.Parallel()
	s, registry := sharedSigstore(t), startRegistry(t)
	dir := t.TempDir()
	key, err := s.GenerateKey(t.Context(), dir, "release")
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.GenerateKey(t.Context(), dir, "other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.GenerateKey(t.Context(), dir, "other"); err == nil {
		t.Error("a key pair was overwritten")
	}
	for _, layout := range []cosigncli.Layout{cosigncli.Bundle, cosigncli.Tag} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			reference := push(t, registry, "key/"+layout.String())
			if err := s.SignKey(t.Context(), reference, key, layout); err != nil {
				t.Fatal(err)
			}
			if _, err := s.VerifyKey(t.Context(), reference, key, layout); err != nil {
				t.Error(err)
			}
			_, err := s.VerifyKey(t.Context(), reference, other, layout)
			refused(t, "another key", err, "")
			tagged, referring := signatures(t, reference)
			if want := layout == cosigncli.Tag; tagged != want {
				t.Errorf("the tag of a signature: got %t, want %t", tagged, want)
			}
			if want := layout == cosigncli.Bundle; referring != want {
				t.Errorf("a bundle that refers to the artifact: got %t, want %t", referring, want)
			}
		})
	}
}

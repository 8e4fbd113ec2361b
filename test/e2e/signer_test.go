package e2e

import (
	"os"
	"path/filepath"
	"regexp"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/yaml"

	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
	"flux-verify-gate/test/stack/localsigstore"
)

// The signer of most scenarios: a push to main of acme/platform, in cd.yaml.
// It is what the zero githubtoken.Claims give.
const (
	issuer  = githubtoken.Issuer
	subject = "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main"
)

// rootSecret is the name of the Secret with the stack's trusted root.
const rootSecret = "sigstore-root"

// withSigner makes the scenario a keyless one under the stack's own Sigstore:
// the Secret with its trusted root, a policy that accepts exactly the default
// signer, and a gate that requires it.
func (s *stage) withSigner() {
	s.t.Helper()
	s.trustRoot(s.stack.Sigstore.TrustedRoot())
	verifyBy(exactly(issuer, subject))(&s.desired.Spec)
	s.requireSigners(in{"issuer": issuer, "subject": subject})
}

// trustRoot puts a trusted root into the Secret that policies name, and gives
// it to the gate.
func (s *stage) trustRoot(path string) {
	s.t.Helper()
	s.secret(rootSecret, map[string]string{"trusted_root.json": path})
	s.also(in{"trusted-root": path})
}

// requireSigners sets the gate's required signers, each a map of the fields
// that the input has.
func (s *stage) requireSigners(signers ...in) {
	s.t.Helper()
	text, err := yaml.Marshal(signers)
	s.check(err)
	s.also(in{"required-signers": string(text)})
}

// allowRelease lets the policy accept the second workflow too.
func (s *stage) allowRelease() {
	s.t.Helper()
	text, err := yaml.Marshal([]in{{"issuer": issuer, "subject": releaseSubject}})
	s.check(err)
	s.also(in{"allowed-signers": string(text)})
}

// also adds inputs to those of every run of the gate.
func (s *stage) also(more in) {
	if s.required == nil {
		s.required = in{}
	}
	for name, value := range more {
		s.required[name] = value
	}
}

// exactly is a Flux policy entry for one issuer and subject and nobody else.
func exactly(issuer, subject string) sourcev1.OIDCIdentityMatch {
	return sourcev1.OIDCIdentityMatch{Issuer: "^" + regexp.QuoteMeta(issuer) + "$", Subject: "^" + regexp.QuoteMeta(subject) + "$"}
}

// verifyBy is the policy with these entries, under the stack's trusted root.
func verifyBy(entries ...sourcev1.OIDCIdentityMatch) func(*sourcev1.OCIRepositorySpec) {
	return func(spec *sourcev1.OCIRepositorySpec) {
		spec.Verify = &sourcev1.OCIRepositoryVerification{
			Provider: "cosign", MatchOIDCIdentity: entries, TrustedRootSecretRef: &meta.LocalObjectReference{Name: rootSecret},
		}
	}
}

// signKey signs a digest with a key.
func (s *stage) signKey(digest string, key cosigncli.Key, layout cosigncli.Layout) {
	s.t.Helper()
	s.check(s.stack.Sigstore.SignKey(s.t.Context(), s.reference(digest), key, layout))
}

// pushSigned pushes an artifact and signs it with our key, under a .sig tag.
func (s *stage) pushSigned(tag, content string) string {
	s.t.Helper()
	return s.pushSignedIn(cosigncli.Tag, tag, content)
}

// pushSignedIn is pushSigned in either layout.
func (s *stage) pushSignedIn(layout cosigncli.Layout, tag, content string) string {
	s.t.Helper()
	digest := s.push(tag, content)
	s.signKey(digest, s.ours, layout)
	return digest
}

// signAsPerson signs a digest with a certificate for an e-mail address.
func (s *stage) signAsPerson(digest, email string) {
	s.t.Helper()
	token, err := s.stack.Sigstore.Tokens().EmailToken(email)
	s.check(err)
	s.check(s.stack.Sigstore.SignKeyless(s.t.Context(), s.reference(digest), token))
}

// signAs signs a digest with a certificate that the stack's Fulcio issues for a
// job's token.
func (s *stage) signAs(digest string, claims githubtoken.Claims) {
	s.t.Helper()
	s.signAt(s.stack.Sigstore, digest, claims)
}

// signAt is signAs at another Sigstore than the stack's.
func (s *stage) signAt(sigstore *localsigstore.Sigstore, digest string, claims githubtoken.Claims) {
	s.t.Helper()
	token, err := sigstore.Tokens().Token(claims)
	s.check(err)
	s.check(sigstore.SignKeyless(s.t.Context(), s.reference(digest), token))
}

// pushSignedAs pushes an artifact under a tag, signed as signAs signs.
func (s *stage) pushSignedAs(tag string, claims githubtoken.Claims) string {
	s.t.Helper()
	digest := s.push(tag, tag)
	s.signAs(digest, claims)
	return digest
}

// attestAs attests something about a digest with a certificate for a job's
// token.
func (s *stage) attestAs(digest string, claims githubtoken.Claims, predicateType, predicate string) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "predicate.json")
	s.check(os.WriteFile(path, []byte(predicate), 0o600))
	token, err := s.stack.Sigstore.Tokens().Token(claims)
	s.check(err)
	s.check(s.stack.Sigstore.AttestKeyless(s.t.Context(), s.reference(digest), token, predicateType, path))
}

// attestProvenance is attestAs for a provenance.
func (s *stage) attestProvenance(digest string, claims githubtoken.Claims) {
	s.t.Helper()
	s.attestAs(digest, claims, "slsaprovenance1", `{
	  "buildDefinition": {"buildType": "https://actions.github.io/buildtypes/workflow/v1", "externalParameters": {}},
	  "runDetails": {"builder": {"id": "https://github.com/actions/runner/github-hosted"}}
	}`)
}

package gate_test

import (
	"slices"
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signer"
)

const (
	judgedDigest  = "sha256:e8d7f448604e253343398bc99be904cfe6d8f00570cc26b337eefd7b3b740bef"
	actionsIssuer = "https://token.actions.githubusercontent.com"
	provenance    = "https://slsa.dev/provenance/v1"
)

func workflow(repository, file, ref string) string {
	return "https://github.com/" + repository + "/.github/workflows/" + file + "@" + ref
}

var (
	cdSubject    = workflow("acme/platform", "cd.yaml", "refs/heads/main")
	cdSigner     = signer.Signer{Issuer: actionsIssuer, Subject: cdSubject}
	auditSubject = workflow("acme/audit", "sign.yaml", "refs/heads/main")
	auditSigner  = signer.Signer{Issuer: actionsIssuer, Subject: auditSubject}
)

// signedBy is a verified cosign signature by a workflow of GitHub Actions.
func signedBy(subject string, change ...func(*gate.Signature)) gate.Signature {
	s := gate.Signature{
		Layout: gate.LayoutBundle, Kind: gate.KindSignature, PredicateType: "https://sigstore.dev/cosign/sign/v1",
		Identity: signer.Identity{Issuer: actionsIssuer, Subject: subject}, Verified: true,
		Claims: signer.Claims{
			SourceRepository: "https://github.com/acme/platform", SourceRepositoryID: "695555555", SourceRef: "refs/heads/main",
			RunnerEnvironment: "github-hosted", BuildTrigger: "push", BuildSignerURI: subject,
		},
	}
	if subject == auditSubject {
		s.Claims.SourceRepository = "https://github.com/acme/audit"
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func attesting(s *gate.Signature) { s.Kind, s.PredicateType = gate.KindAttestation, provenance }

func refusedAt(step gate.Step) func(*gate.Signature) {
	return func(s *gate.Signature) { s.Verified, s.Step, s.Why = false, step, "expected this, found that" }
}

func selfHosted(s *gate.Signature) { s.Claims.RunnerEnvironment = "self-hosted" }

func byKey(s *gate.Signature) {
	s.Identity, s.Claims, s.Key = signer.Identity{}, signer.Claims{}, "abcd"
}

// TestJudgeSignatures is the rule book of section D, line by line.
func TestJudgeSignatures(t *testing.T) {
	t.Parallel()
	unreachable := gate.Failure{Code: gate.RegistryUnreachable, Title: "t", Found: "timeout", Transient: true}
	denied := gate.Failure{Code: gate.RegistryDenied, Title: "t", Found: "401"}
	hosted := cdSigner
	hosted.Claims.RunnerEnvironment = "github-hosted"
	pattern := signer.Signer{Issuer: actionsIssuer, SubjectPattern: `https://github\.com/acme/[^/]+/\.github/workflows/[^/]+@refs/heads/main`}
	one := gate.Requirements{Required: []signer.Signer{cdSigner}}
	both := gate.Requirements{Required: []signer.Signer{cdSigner, auditSigner}, RequireAll: true}
	keys := gate.Requirements{Keys: &gate.Keys{Secret: "s", PEM: []string{"k"}}}
	cases := []struct {
		name     string
		want     gate.Requirements
		found    []gate.Signature
		failures []gate.Failure
		// codes are the fails and unknowns, in order; none: it is signed.
		codes []gate.Code
		// notes are the notes that there must be.
		notes  []gate.Code
		wait   gate.Wait
		counts []bool
	}{
		{name: "signed", want: one, found: []gate.Signature{signedBy(cdSubject)}, counts: []bool{true}},
		{name: "signed under the tag", want: one, found: []gate.Signature{signedBy(cdSubject, func(s *gate.Signature) { s.Layout, s.PredicateType = gate.LayoutTag, "" })}},
		{name: "nothing", want: one, codes: []gate.Code{gate.Unsigned}, wait: gate.WaitMinute},
		{name: "nothing is required", found: []gate.Signature{signedBy(cdSubject)}, codes: []gate.Code{gate.SignedByOthers}},
		{name: "others", want: one, found: []gate.Signature{signedBy(auditSubject)}, codes: []gate.Code{gate.SignedByOthers}, counts: []bool{false}},
		{name: "an allowed signer only", want: gate.Requirements{Required: []signer.Signer{cdSigner}, Allowed: []signer.Signer{auditSigner}}, found: []gate.Signature{signedBy(auditSubject)}, codes: []gate.Code{gate.SignedByOthers}, counts: []bool{false}},
		{name: "another issuer", want: one, found: []gate.Signature{signedBy(cdSubject, func(s *gate.Signature) { s.Identity.Issuer = "https://issuer.example" })}, codes: []gate.Code{gate.SignedByOthers}},
		{name: "others beside", want: one, found: []gate.Signature{signedBy(auditSubject), signedBy(cdSubject)}, counts: []bool{false, true}},
		{name: "invalid", want: one, found: []gate.Signature{signedBy(cdSubject, refusedAt(gate.StepLog))}, codes: []gate.Code{gate.SignatureInvalid}},
		{name: "about another artifact", want: one, found: []gate.Signature{signedBy(cdSubject, refusedAt(gate.StepBinding))}, codes: []gate.Code{gate.SignatureInvalid}},
		{name: "invalid beside", want: one, found: []gate.Signature{signedBy(cdSubject, refusedAt(gate.StepLog)), signedBy(cdSubject)}, notes: []gate.Code{gate.SignatureInvalid}, counts: []bool{false, true}},
		{name: "invalid and others", want: one, found: []gate.Signature{signedBy(cdSubject, refusedAt(gate.StepLog)), signedBy(auditSubject)}, codes: []gate.Code{gate.SignatureInvalid, gate.SignedByOthers}},
		{name: "others', invalid", want: one, found: []gate.Signature{signedBy(auditSubject, refusedAt(gate.StepLog))}, codes: []gate.Code{gate.Unsigned}, wait: gate.WaitMinute},
		{name: "others', invalid, beside", want: one, found: []gate.Signature{signedBy(auditSubject, refusedAt(gate.StepLog)), signedBy(cdSubject)}, counts: []bool{false, true}},
		{name: "garbage", want: one, found: []gate.Signature{{Layout: gate.LayoutBundle, Step: gate.StepParse, Why: "w"}}, codes: []gate.Code{gate.Unsigned}, wait: gate.WaitMinute},
		{name: "an attestation", want: one, found: []gate.Signature{signedBy(cdSubject, attesting)}, codes: []gate.Code{gate.NotASignature}},
		{name: "an attestation that counts", want: gate.Requirements{Required: []signer.Signer{cdSigner}, Attestations: []string{provenance}}, found: []gate.Signature{signedBy(cdSubject, attesting)}, counts: []bool{true}},
		{name: "another attestation than counts", want: gate.Requirements{Required: []signer.Signer{cdSigner}, Attestations: []string{"https://spdx.dev/Document"}}, found: []gate.Signature{signedBy(cdSubject, attesting)}, codes: []gate.Code{gate.NotASignature}},
		{name: "an attestation beside", want: one, found: []gate.Signature{signedBy(cdSubject, attesting), signedBy(cdSubject)}, counts: []bool{false, true}},
		{name: "a kind that is not known", want: one, found: []gate.Signature{signedBy(cdSubject, func(s *gate.Signature) { s.Kind = "" })}, codes: []gate.Code{gate.NotASignature}},
		{name: "claims", want: gate.Requirements{Required: []signer.Signer{hosted}}, found: []gate.Signature{signedBy(cdSubject)}},
		{name: "other claims", want: gate.Requirements{Required: []signer.Signer{hosted}}, found: []gate.Signature{signedBy(cdSubject, selfHosted)}, codes: []gate.Code{gate.ClaimsMismatch}},
		{name: "other claims beside", want: gate.Requirements{Required: []signer.Signer{hosted}}, found: []gate.Signature{signedBy(cdSubject, selfHosted), signedBy(cdSubject)}, counts: []bool{false, true}},
		{name: "a claim that is missing", want: gate.Requirements{Required: []signer.Signer{hosted}}, found: []gate.Signature{signedBy(cdSubject, func(s *gate.Signature) { s.Claims = signer.Claims{} })}, codes: []gate.Code{gate.ClaimsMismatch}},
		{name: "one of two required", want: gate.Requirements{Required: []signer.Signer{cdSigner, auditSigner}}, found: []gate.Signature{signedBy(auditSubject)}},
		{name: "all of two required", want: both, found: []gate.Signature{signedBy(cdSubject), signedBy(auditSubject)}, counts: []bool{true, true}},
		{name: "one of two where all must", want: both, found: []gate.Signature{signedBy(auditSubject)}, codes: []gate.Code{gate.SignedByOthers}, wait: gate.WaitMinute},
		{name: "none of two where all must", want: both, codes: []gate.Code{gate.Unsigned}, wait: gate.WaitMinute},
		{name: "one twice where all must", want: both, found: []gate.Signature{signedBy(auditSubject), signedBy(auditSubject)}, codes: []gate.Code{gate.SignedByOthers}, wait: gate.WaitMinute},
		{name: "one signer for two entries", want: gate.Requirements{Required: []signer.Signer{cdSigner, pattern}, RequireAll: true}, found: []gate.Signature{signedBy(cdSubject), signedBy(cdSubject)}, codes: []gate.Code{gate.SignedByOthers}, wait: gate.WaitMinute},
		{name: "two signers for two entries, the wide one first", want: gate.Requirements{Required: []signer.Signer{pattern, cdSigner}, RequireAll: true}, found: []gate.Signature{signedBy(cdSubject), signedBy(auditSubject)}},
		{name: "two signers for two entries, the wide one last", want: gate.Requirements{Required: []signer.Signer{cdSigner, pattern}, RequireAll: true}, found: []gate.Signature{signedBy(cdSubject), signedBy(auditSubject)}},
		{name: "two entries alike", want: gate.Requirements{Required: []signer.Signer{pattern, pattern}, RequireAll: true}, found: []gate.Signature{signedBy(cdSubject)}, codes: []gate.Code{gate.SignedByOthers}, wait: gate.WaitMinute},
		{name: "all must, and one only attested", want: both, found: []gate.Signature{signedBy(cdSubject), signedBy(auditSubject, attesting)}, codes: []gate.Code{gate.NotASignature}},
		{name: "all must, and one does not hold", want: both, found: []gate.Signature{signedBy(cdSubject), signedBy(auditSubject, refusedAt(gate.StepSCT))}, codes: []gate.Code{gate.SignatureInvalid}},
		{name: "could not look", want: one, failures: []gate.Failure{unreachable}, codes: []gate.Code{gate.RegistryUnreachable}, wait: gate.WaitDeadline},
		{name: "was not let in", want: one, failures: []gate.Failure{denied}, codes: []gate.Code{gate.RegistryDenied}},
		{name: "no root", want: one, failures: []gate.Failure{{Code: gate.TrustedRootUnavailable}}, codes: []gate.Code{gate.TrustedRootUnavailable}},
		{name: "others, and could not look everywhere", want: one, found: []gate.Signature{signedBy(auditSubject)}, failures: []gate.Failure{unreachable}, codes: []gate.Code{gate.RegistryUnreachable}, wait: gate.WaitDeadline},
		{name: "invalid, and could not look everywhere", want: one, found: []gate.Signature{signedBy(cdSubject, refusedAt(gate.StepLog))}, failures: []gate.Failure{denied}, codes: []gate.Code{gate.RegistryDenied}},
		{name: "signed, and could not look everywhere", want: one, found: []gate.Signature{signedBy(cdSubject)}, failures: []gate.Failure{unreachable}, notes: []gate.Code{gate.RegistryUnreachable}},
		{name: "key", want: keys, found: []gate.Signature{signedBy("", byKey)}, counts: []bool{true}},
		{name: "key, attested", want: keys, found: []gate.Signature{signedBy("", byKey, attesting)}, codes: []gate.Code{gate.NotASignature}},
		{name: "key, and a certificate verified", want: keys, found: []gate.Signature{signedBy(cdSubject)}, codes: []gate.Code{gate.NotASignature}},
		{name: "a key where signers are required", want: one, found: []gate.Signature{signedBy("", byKey)}, codes: []gate.Code{gate.Unsigned}, wait: gate.WaitMinute},
		{name: "another key", want: keys, found: []gate.Signature{{Layout: gate.LayoutTag, Step: gate.StepSignature, Why: "w"}}, codes: []gate.Code{gate.SignatureInvalid}},
		{name: "a certificate where a key is required", want: keys, found: []gate.Signature{signedBy(cdSubject, refusedAt(gate.StepCertificate))}, codes: []gate.Code{gate.SignedByOthers}},
		{name: "a reusable workflow", want: gate.Requirements{Required: []signer.Signer{{Issuer: actionsIssuer, Subject: workflow("acme/shared", "sign.yaml", "refs/heads/main")}}}, found: []gate.Signature{signedBy(workflow("acme/shared", "sign.yaml", "refs/heads/main"))}, notes: []gate.Code{gate.SignerShared}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := gate.Signatures{Digest: judgedDigest, ManifestRead: true, Complete: len(c.failures) == 0, Found: c.found, Failures: c.failures}
			findings, results := gate.JudgeSignatures(c.want, s, judgedDigest)
			var codes, notes, passes []gate.Code
			for _, f := range findings {
				switch f.Outcome {
				case gate.Fail, gate.Unknown:
					codes = append(codes, f.Code)
					if f.Wait != c.wait {
						t.Errorf("expected %s to wait %q, found %q", f.Code, c.wait, f.Wait)
					}
				case gate.Note:
					notes = append(notes, f.Code)
				case gate.Pass:
					passes = append(passes, f.Code)
				}
			}
			if !slices.Equal(codes, c.codes) || !slices.Equal(notes, c.notes) {
				t.Errorf("expected %v with notes %v, found %+v", c.codes, c.notes, findings)
			}
			if got, want := c.want.SignedBy(c.found), len(c.codes) == 0; got != want {
				t.Errorf("expected signed %v, found %v", want, got)
			}
			if (len(c.codes) > 0) == (len(passes) > 0) {
				t.Errorf("expected passes if and only if it is signed, found %v", passes)
			}
			if len(results) != len(c.found) {
				t.Fatalf("expected every candidate to be told, found %+v", results)
			}
			for n, r := range results {
				if c.counts != nil && r.Counts != c.counts[n] {
					t.Errorf("candidate %d: expected counts %v, found %+v", n, c.counts[n], r)
				}
				if (r.Why == "") != r.Counts || r.Counts && !r.Verified {
					t.Errorf("candidate %d: expected a reason exactly where it does not count, found %+v", n, r)
				}
			}
		})
	}
}

// TestJudgeOtherDigest never uses the signatures of another digest, nor those of
// a search that was not made.
func TestJudgeOtherDigest(t *testing.T) {
	t.Parallel()
	want := gate.Requirements{Required: []signer.Signer{cdSigner}}
	good := gate.Signatures{Digest: judgedDigest, ManifestRead: true, Complete: true, Found: []gate.Signature{signedBy(cdSubject)}}
	for name, c := range map[string]struct {
		s      gate.Signatures
		digest string
	}{
		"another":       {good, strings.Replace(judgedDigest, "e8", "e9", 1)},
		"none":          {gate.Signatures{}, ""},
		"not made":      {gate.Signatures{Digest: judgedDigest}, judgedDigest},
		"no manifest":   {gate.Signatures{Digest: judgedDigest, Complete: true}, judgedDigest},
		"not completed": {gate.Signatures{Digest: judgedDigest, ManifestRead: true}, judgedDigest},
	} {
		findings, _ := gate.JudgeSignatures(want, c.s, c.digest)
		if len(findings) != 1 || findings[0].Outcome != gate.Unknown {
			t.Errorf("%s: expected an unknown, found %+v", name, findings)
		}
	}
}

// TestNearMiss tells what differs, and the line that would put it right.
func TestNearMiss(t *testing.T) {
	t.Parallel()
	renamed := cdSigner
	renamed.Claims.SourceRepositoryID = "695555555"
	elsewhere := func(s *gate.Signature) { s.Claims.SourceRepository = "https://github.com/" + "other/repo" }
	shared := workflow("acme/shared", "sign.yaml", "v1")
	cases := []struct {
		name     string
		required signer.Signer
		found    gate.Signature
		text     string
		remedy   string
	}{
		{"branch", cdSigner, signedBy(workflow("acme/platform", "cd.yaml", "refs/heads/next")), "the branch refs/heads/next instead of refs/heads/main", "subject: '" + workflow("acme/platform", "cd.yaml", "refs/heads/next") + "'"},
		{"tag", cdSigner, signedBy(workflow("acme/platform", "cd.yaml", "refs/tags/v1")), "the tag refs/tags/v1 instead of", "@refs/tags/v1'"},
		{"commit", cdSigner, signedBy(workflow("acme/platform", "cd.yaml", "e63307d8")), "the commit e63307d8 instead of", ""},
		{"pull request", cdSigner, signedBy(workflow("acme/platform", "cd.yaml", "refs/pull/7/merge")), "a build of a pull request, refs/pull/7/merge", "not from a pull request"},
		{"pull request and a pattern", signer.Signer{Issuer: actionsIssuer, SubjectPattern: ".*@refs/heads/main"}, signedBy(workflow("acme/platform", "cd.yaml", "refs/pull/7/merge")), "does not match .*@refs/heads/main; a build of a pull request", "not from a pull request"},
		{"merge queue", cdSigner, signedBy(workflow("acme/platform", "cd.yaml", "refs/heads/gh-readonly-queue/main/pr-7-e63307d8")), "a build of the merge queue", ""},
		{"workflow file", cdSigner, signedBy(workflow("acme/platform", "release.yaml", "refs/heads/main")), "another workflow file, .github/workflows/release.yaml instead of .github/workflows/cd.yaml", ""},
		{"two things", cdSigner, signedBy(workflow("acme/platform", "release.yaml", "refs/heads/next")), "another workflow file, .github/workflows/release.yaml instead of .github/workflows/cd.yaml; the branch refs/heads/next", ""},
		{"reusable workflow", cdSigner, signedBy(shared), "it was built in acme/platform, but a reusable workflow of acme/shared signed", "subject: '" + shared + "', source-repository-id: '695555555'}"},
		{"enterprise", cdSigner, signedBy(cdSubject, func(s *gate.Signature) { s.Identity.Issuer += "/acme" }), "the issuer is the enterprise's own, " + actionsIssuer + "/acme", "issuer: '" + actionsIssuer + "/acme'"},
		{"no enterprise", signer.Signer{Issuer: actionsIssuer + "/acme", Subject: cdSubject}, signedBy(cdSubject), "the issuer is GitHub's and not the enterprise's own", ""},
		{"case", cdSigner, signedBy(workflow("Acme/Platform", "cd.yaml", "refs/heads/main")), "the subject differs in upper and lower case only", ""},
		{"case of the repository and a branch", cdSigner, signedBy(workflow("Acme/platform", "cd.yaml", "refs/heads/next"), elsewhere), "the repository differs in upper and lower case only, Acme/platform; the branch", ""},
		{"case of the issuer", cdSigner, signedBy(cdSubject, func(s *gate.Signature) { s.Identity.Issuer = strings.ToUpper(actionsIssuer) }), "the issuer differs in upper and lower case only", ""},
		{"former name", renamed, signedBy(workflow("acme/fleet", "cd.yaml", "refs/heads/main"), elsewhere), "the same repository (id 695555555) under another name, acme/fleet", ""},
		{"another repository", cdSigner, signedBy(workflow("evil/platform", "cd.yaml", "refs/heads/main"), elsewhere), "another repository, evil/platform", ""},
		{"another kind of subject", cdSigner, signedBy("jane@acme.example"), "another subject", "subject: 'jane@acme.example'"},
		{"another issuer", cdSigner, signedBy(cdSubject, func(s *gate.Signature) { s.Identity.Issuer = "https://gitlab.com" }), "another issuer, https://gitlab.com", ""},
		{"an issuer pattern", signer.Signer{IssuerPattern: "https://gitlab.*", Subject: cdSubject}, signedBy(cdSubject), "an issuer that does not match https://gitlab.*", ""},
		{"a quote", cdSigner, signedBy("it's"), "another subject", "subject: 'it''s'"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := gate.Signatures{Digest: judgedDigest, ManifestRead: true, Complete: true, Found: []gate.Signature{c.found}}
			// A required signer that is nothing like it must not be preferred.
			far := signer.Signer{Issuer: "https://far.example", Subject: "far@away.example"}
			findings, results := gate.JudgeSignatures(gate.Requirements{Required: []signer.Signer{far, c.required}}, s, judgedDigest)
			if len(findings) != 1 || findings[0].Code != gate.SignedByOthers {
				t.Fatalf("expected signed-by-others, found %+v", findings)
			}
			f := findings[0]
			if !strings.Contains(f.Found, c.text) || !strings.Contains(results[0].Why, c.text) {
				t.Errorf("expected to be told %q, found %q and %q", c.text, f.Found, results[0].Why)
			}
			if !strings.Contains(f.Remedy, c.remedy) || !strings.Contains(f.Remedy, "required-signers: - {issuer: '") {
				t.Errorf("expected the line %q, found %q", c.remedy, f.Remedy)
			}
		})
	}
}

// TestJudgeSelfTest fails where the verifier accepts what it must refuse.
func TestJudgeSelfTest(t *testing.T) {
	t.Parallel()
	keyless := gate.Requirements{Required: []signer.Signer{cdSigner}}
	keys := gate.Requirements{Keys: &gate.Keys{}}
	found := []gate.Signature{signedBy(cdSubject)}
	test := func(digest, identity gate.Step) *gate.VerifierTest {
		return &gate.VerifierTest{DigestRefusedAt: digest, IdentityRefusedAt: identity}
	}
	for name, c := range map[string]struct {
		want    gate.Requirements
		s       gate.Signatures
		outcome gate.Outcome // empty: no finding
	}{
		"passed":              {keyless, gate.Signatures{Found: found, SelfTest: test(gate.StepBinding, gate.StepIdentity)}, gate.Pass},
		"passed, keys":        {keys, gate.Signatures{Found: found, SelfTest: test(gate.StepBinding, gate.StepSignature)}, gate.Pass},
		"as if with keys":     {keyless, gate.Signatures{Found: found, SelfTest: test(gate.StepBinding, gate.StepSignature)}, gate.Fail},
		"as if without":       {keys, gate.Signatures{Found: found, SelfTest: test(gate.StepBinding, gate.StepIdentity)}, gate.Fail},
		"digest accepted":     {keyless, gate.Signatures{Found: found, SelfTest: test("", gate.StepIdentity)}, gate.Fail},
		"identity accepted":   {keyless, gate.Signatures{Found: found, SelfTest: test(gate.StepBinding, "")}, gate.Fail},
		"digest refused late": {keyless, gate.Signatures{Found: found, SelfTest: test(gate.StepSignature, gate.StepIdentity)}, gate.Fail},
		"not tested":          {keyless, gate.Signatures{Found: found}, gate.Unknown},
		"nothing to test":     {keyless, gate.Signatures{Found: []gate.Signature{signedBy(cdSubject, refusedAt(gate.StepLog))}}, ""},
	} {
		findings := gate.JudgeSelfTest(c.want, c.s)
		if c.outcome == "" {
			if len(findings) != 0 {
				t.Errorf("%s: expected no finding, found %+v", name, findings)
			}
			continue
		}
		if len(findings) != 1 || findings[0].Outcome != c.outcome || findings[0].Code != gate.SelfTest {
			t.Errorf("%s: expected %s, found %+v", name, c.outcome, findings)
		}
	}
}

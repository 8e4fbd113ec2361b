package gate

import (
	"context"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"

	"flux-verify-gate/gate/signer"
)

// serving makes a source that serves digestA under a policy, with one
// SourceVerified condition.
func serving(verify *sourcev1.OCIRepositoryVerification, status metav1.ConditionStatus, message string) *Source {
	s := &Source{}
	s.Object.Generation = 1
	s.Object.Spec.Verify = verify
	s.Object.Status.Artifact = &meta.Artifact{Revision: "v1@" + digestA}
	reason := "VerificationError"
	if status == metav1.ConditionTrue {
		reason, message = meta.SucceededReason, verifiedPrefix+"v1@"+digestA
	}
	s.Object.Status.Conditions = []metav1.Condition{{
		Type: sourcev1.SourceVerifiedCondition, Status: status, Reason: reason, Message: message, ObservedGeneration: 1,
	}}
	return s
}

func TestCheckController(t *testing.T) {
	t.Parallel()
	const (
		wrongSigner = "failed to verify the signature using provider 'cosign keyless': no matching attestations: failed to verify certificate identity: no matching CertificateIdentity found, last error: x"
		unsigned    = "failed to verify the signature using provider 'cosign keyless': no signatures found"
		trouble     = "failed to verify the signature using provider 'cosign keyless': unable to initialize trusted root: x"
	)
	bundle, tag := signatureBy(LayoutBundle, "main"), signatureBy(LayoutTag, "main")
	foreign := attestationBy("other")
	tests := []struct {
		name       string
		verify     *sourcev1.OCIRepositoryVerification
		status     metav1.ConditionStatus
		message    string
		found      []Signature
		incomplete bool
		want       string // code:outcome, in order
	}{
		{"both accept", keylessPolicy("^main$"), metav1.ConditionTrue, "", []Signature{bundle}, false, "controller-disagrees:pass"},
		{"the controller accepts what is not there", keylessPolicy("^main$"), metav1.ConditionTrue, "", nil, false, "controller-disagrees:fail"},
		{"what could not be looked at is the cause", keylessPolicy("^main$"), metav1.ConditionTrue, "", nil, true, ""},
		{"a search that was not complete may explain it", keylessPolicy("^main$", "^x$"), metav1.ConditionTrue, "", []Signature{bundle}, true, "controller-disagrees:unknown"},
		{"the policy changed while it verified", keylessPolicy("^new$"), metav1.ConditionTrue, "", []Signature{bundle}, false, "controller-disagrees:fail"},
		{"several identities cannot have accepted a bundle", keylessPolicy("^main$", "^x$"), metav1.ConditionTrue, "", []Signature{bundle}, false, "controller-disagrees:fail"},
		{"several identities accept a tag signature", keylessPolicy("^main$", "^x$"), metav1.ConditionTrue, "", []Signature{tag}, false, "controller-disagrees:pass"},
		{"a bundle came later and hides the tag signature", keylessPolicy("^main$"), metav1.ConditionTrue, "", []Signature{tag, foreign}, false, "controller-disagrees:pass will-refuse:note"},
		{"a bundle that cannot be read came later", keylessPolicy("^main$"), metav1.ConditionTrue, "", []Signature{tag, refusedAt(LayoutBundle, StepParse)}, false, "controller-disagrees:pass"},
		{"only what cannot be read explains it", keylessPolicy("^main$"), metav1.ConditionTrue, "", []Signature{refusedAt(LayoutBundle, StepParse)}, false, "controller-disagrees:note"},
		{"an attestation by the signer explains it", keylessPolicy("^main$"), metav1.ConditionTrue, "", []Signature{attestationBy("main")}, false, "controller-disagrees:pass"},
		{"both refuse", keylessPolicy("^main$"), metav1.ConditionFalse, wrongSigner, []Signature{signatureBy(LayoutBundle, "other")}, false, "controller-disagrees:pass"},
		{"the controller refuses what it should accept", keylessPolicy("^main$"), metav1.ConditionFalse, wrongSigner, []Signature{bundle, tag}, false, "controller-disagrees:fail"},
		{"an old controller, which sees no bundle, refuses for another reason", keylessPolicy("^main$"), metav1.ConditionFalse, wrongSigner, []Signature{bundle}, false, "controller-disagrees:fail"},
		{"an unreadable bundle may explain anything", keylessPolicy("^main$"), metav1.ConditionFalse, wrongSigner, []Signature{refusedAt(LayoutBundle, StepParse)}, false, "controller-disagrees:note"},
		{"the signature came later", keylessPolicy("^main$"), metav1.ConditionFalse, unsigned, []Signature{bundle}, false, "controller-disagrees:note"},
		{"trouble says nothing about signatures", keylessPolicy("^main$"), metav1.ConditionFalse, trouble, []Signature{bundle}, false, ""},
		{"neither does an unknown status", keylessPolicy("^main$"), metav1.ConditionUnknown, "", []Signature{bundle}, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &facts{
				ctx:    context.Background(),
				want:   Requirements{Signature: SignatureVerify, Digest: digestA, Required: []signer.Signer{{Issuer: actionsIssuer, Subject: "main"}}},
				source: serving(tt.verify, tt.status, tt.message),
			}
			f.evidence.Signatures = &Signatures{Digest: digestA, Found: tt.found, Complete: !tt.incomplete, ManifestRead: true}
			var got []string
			for _, finding := range checkController(f) {
				got = append(got, string(finding.Code)+":"+string(finding.Outcome))
				if finding.Outcome != Pass && (finding.Found == "" || finding.Remedy == "") {
					t.Errorf("%s does not say what was found or what to do", finding.Code)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, want %q", strings.Join(got, " "), tt.want)
			}
			f.evidence.Signatures.Digest = digestB
			if checkController(f) != nil {
				t.Error("signatures of another digest were compared")
			}
		})
	}
}

// comparing makes the facts of a run that looked at some signatures.
func comparing(s *Source, found ...Signature) *facts {
	f := &facts{
		ctx:    context.Background(),
		want:   Requirements{Signature: SignatureVerify, Digest: digestA, Required: []signer.Signer{{Issuer: actionsIssuer, Subject: "main"}}},
		source: s,
	}
	f.evidence.Signatures = &Signatures{Digest: digestA, Found: found, Complete: true, ManifestRead: true}
	return f
}

func outcomes(findings []Finding) string {
	var got []string
	for _, finding := range findings {
		got = append(got, string(finding.Code)+":"+string(finding.Outcome))
	}
	return strings.Join(got, " ")
}

// TestNotCompared holds that nothing is compared where the two verify under
// different trust.
func TestNotCompared(t *testing.T) {
	t.Parallel()
	keyless := func() *facts { return comparing(serving(keylessPolicy("^main$"), metav1.ConditionTrue, "")) }
	keyed := func() *facts {
		f := comparing(serving(keyPolicy(), metav1.ConditionTrue, ""))
		f.want.Required, f.want.Keys = nil, &Keys{Secret: "k"}
		return f
	}
	for _, f := range []*facts{keyless(), keyed()} {
		if got := outcomes(checkController(f)); got != "controller-disagrees:fail" {
			t.Fatalf("what is compared says %q", got)
		}
	}
	for name, change := range map[string]func() *facts{
		"skipped":                    func() *facts { f := keyless(); f.want.Signature = SignatureSkip; return f },
		"another provider":           func() *facts { f := keyless(); f.source.Object.Spec.Verify.Provider = "notation"; return f },
		"no policy":                  func() *facts { f := keyless(); f.source.Object.Spec.Verify = nil; return f },
		"a private root of our own":  func() *facts { f := keyless(); f.evidence.PrivateRoot = true; return f },
		"a key where none is wanted": func() *facts { f := keyless(); f.source.Object.Spec.Verify = keyPolicy(); return f },
		"another Secret":             func() *facts { f := keyed(); f.want.Keys.Secret = "other"; return f },
		"no Secret":                  func() *facts { f := keyed(); f.source.Object.Spec.Verify = keylessPolicy("^main$"); return f },
		"nobody looked":              func() *facts { f := keyless(); f.evidence.Signatures = nil; return f },
	} {
		if got := outcomes(checkController(change())); got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestLookAhead notes what the next verification will say of a generation that
// has not been verified, and only where there is no doubt.
func TestLookAhead(t *testing.T) {
	t.Parallel()
	bundle, tag := signatureBy(LayoutBundle, "main"), signatureBy(LayoutTag, "main")
	for _, tt := range []struct {
		name   string
		change func(*facts)
		found  []Signature
		want   string
	}{
		{"nobody whom it accepts has signed", nil, []Signature{bundle, tag}, "will-refuse:note"},
		{"nobody has signed", nil, nil, "will-refuse:note"},
		{"one version accepts", nil, []Signature{signatureBy(LayoutTag, "new"), bundle}, ""},
		{"one version may accept", nil, []Signature{bundle, refusedAt(LayoutTag, StepParse)}, ""},
		{"the search was not complete", func(f *facts) { f.evidence.Signatures.Complete = false }, []Signature{bundle}, ""},
		{"it was refused before", func(f *facts) { f.source.Object.Status.Conditions[0].Status = metav1.ConditionFalse }, []Signature{bundle}, ""},
		{"it is not known", func(f *facts) { f.source.Object.Status.Conditions[0].Status = metav1.ConditionUnknown }, []Signature{bundle}, ""},
		{"there is no condition", func(f *facts) { f.source.Object.Status.Conditions = nil }, []Signature{bundle}, ""},
		{"another revision was verified", func(f *facts) { f.source.Object.Status.Conditions[0].Message = verifiedPrefix + "v0@" + digestA }, []Signature{bundle}, ""},
		{"no revision is named", func(f *facts) { f.source.Object.Status.Conditions[0].Message = "verified" }, []Signature{bundle}, ""},
		{"a newer generation was verified", func(f *facts) { f.source.Object.Status.Conditions[0].ObservedGeneration = 3 }, []Signature{bundle}, ""},
		{"this generation was verified, for another reason", func(f *facts) {
			f.source.Object.Status.Conditions[0].ObservedGeneration, f.source.Object.Status.Conditions[0].Reason = 2, "x"
		}, []Signature{bundle}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := comparing(serving(keylessPolicy("^new$"), metav1.ConditionTrue, ""), tt.found...)
			f.source.Object.Generation = 2
			if tt.change != nil {
				tt.change(f)
			}
			if got := outcomes(checkController(f)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestRefusedOfSomethingElse holds that a refusal is compared only with the
// signatures of the artifact and under the policy that it is about.
func TestRefusedOfSomethingElse(t *testing.T) {
	t.Parallel()
	const wrongSigner = "failed to verify the signature using provider 'cosign keyless': no matching CertificateIdentity found, last error: x"
	refused := func() *facts {
		return comparing(serving(keylessPolicy("^main$"), metav1.ConditionFalse, wrongSigner), signatureBy(LayoutBundle, "main"))
	}
	if got := outcomes(checkController(refused())); got != "controller-disagrees:fail" {
		t.Fatalf("what is compared says %q", got)
	}
	for name, change := range map[string]func(*Source){
		"an older generation": func(s *Source) { s.Object.Generation = 2 },
		"a newer revision": func(s *Source) {
			s.Object.Status.Conditions = append(s.Object.Status.Conditions, metav1.Condition{
				Type: sourcev1.ArtifactOutdatedCondition, Status: metav1.ConditionTrue, Message: "new revision 'v2@" + digestB + "' for 'oci://x'",
			})
		},
		"a class that says nothing": func(s *Source) {
			s.Object.Status.Conditions[0].Message = "failed to verify the signature using provider 'cosign keyless': something new"
		},
	} {
		f := refused()
		change(f.source)
		if got := outcomes(checkController(f)); got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	// A refusal of every class is explained by a policy that has it.
	for message, verify := range map[string]*sourcev1.OCIRepositoryVerification{
		"multiple identities are not supported":   keylessPolicy("^main$", "^x$"),
		"without providing at least one identity": keylessPolicy(),
		"error parsing regexp":                    keylessPolicy("(?!x)"),
	} {
		text := "failed to verify the signature using provider 'cosign keyless': " + message
		by, other := signatureBy(LayoutBundle, "main"), signatureBy(LayoutBundle, "other")
		if got := outcomes(checkController(comparing(serving(verify, metav1.ConditionFalse, text), other))); got != "controller-disagrees:pass" {
			t.Errorf("%s: got %q", message, got)
		}
		findings := checkController(comparing(serving(verify, metav1.ConditionFalse, text), by))
		if got := outcomes(findings); got != "controller-disagrees:note" || !strings.Contains(findings[0].Remedy, "nothing newer is taken in") {
			t.Errorf("%s, and a required signer has signed: got %+v", message, findings)
		}
		if got := outcomes(checkController(comparing(serving(keylessPolicy("^main$"), metav1.ConditionFalse, text), by))); got != "controller-disagrees:fail" {
			t.Errorf("%s, under a policy that has it not: got %q", message, got)
		}
	}
}

// TestWhyNext names the cause of each class.
func TestWhyNext(t *testing.T) {
	t.Parallel()
	bundle, tag := signatureBy(LayoutBundle, "main"), signatureBy(LayoutTag, "main")
	for _, tt := range []struct {
		verify *sourcev1.OCIRepositoryVerification
		found  []Signature
		cause  string
	}{
		{keylessPolicy("^main$", "^x$"), []Signature{bundle}, "several identities"},
		{keylessPolicy(), []Signature{bundle}, "no whole identity"},
		{keylessPolicy("(?!x)"), []Signature{bundle}, "does not compile"},
		{keylessPolicy("^main$"), []Signature{tag, signatureBy(LayoutBundle, "other")}, "hides"},
		{keyPolicy(), []Signature{signedWithKey(LayoutTag), attestationBy("other")}, "hides"},
		{keylessPolicy("^x$"), []Signature{tag, signatureBy(LayoutBundle, "other")}, "nobody"},
		{keylessPolicy("^other$"), []Signature{signatureBy(LayoutTag, "x")}, "nobody"},
		{keylessPolicy("^x$"), nil, "nobody"},
	} {
		c := comparison{facts: comparing(serving(tt.verify, metav1.ConditionTrue, "")), verify: tt.verify, found: tt.found, versions: supported}
		if cause, remedy := c.whyNext(c.now(supported[2])); !strings.Contains(cause, tt.cause) || remedy == "" {
			t.Errorf("%v: got %q, %q, want %q", tt.found, cause, remedy, tt.cause)
		}
	}
}

// TestSides lists what is needed to compare, and no more.
func TestSides(t *testing.T) {
	t.Parallel()
	verify := keylessPolicy("^main$")
	side := func(found ...Signature) string {
		c := comparison{facts: comparing(serving(verify, metav1.ConditionTrue, "")), verify: verify, found: found, versions: supported}
		return c.sides()
	}
	main, provenance := signatureBy(LayoutBundle, "main"), attestationBy("main")
	refused := refusedAt(LayoutBundle, StepLog)
	other := signatureBy(LayoutBundle, "other")
	for _, tt := range []struct {
		found []Signature
		holds []string
		not   string
	}{
		{nil, []string{"the gate sees nothing. source-controller 1.7 to 1.10 finds no signature"}, "looks at"},
		{[]Signature{main}, []string{"a valid signature in a bundle, by main. ", "1.7 finds no signature; 1.8 to 1.10 looks at the bundles only and accepts it"}, "(1)"},
		{[]Signature{refused, provenance, main}, []string{"(1) a signature in a bundle, refused at the step log, by main", "accepts (2)"}, "log entry"},
		{[]Signature{provenance, main}, []string{"accepts (1)"}, "accepts (2)"},
		{[]Signature{other, signatureBy(LayoutTag, "main"), main}, []string{"1.7 looks at the .sig tag and accepts (2)", "accepts (3)"}, "more"},
		{[]Signature{other, other, other, other, main}, []string{"(5) a valid", "accepts (5)"}, "more"},
		{[]Signature{other, other, other, other, main, main}, []string{"(4) a valid", "and 2 more", "accepts (5)"}, "(5) a valid"},
		{[]Signature{loggedAs(main, "hashedrekord/0.0.2")}, []string{"accepts it"}, "log entry"},
		{[]Signature{loggedAs(refusedAt(LayoutBundle, StepParse), "dsse/0.0.2")}, []string{"with a log entry dsse/0.0.2", "1.8 may be able to read"}, "and may be"},
		{[]Signature{{Layout: LayoutTag, Step: StepFetch}}, []string{"a candidate under the .sig tag, refused at the step fetch. "}, "by"},
	} {
		got := side(tt.found...)
		for _, text := range tt.holds {
			if !strings.Contains(got, text) {
				t.Errorf("got %q, want it to hold %q", got, text)
			}
		}
		if strings.Contains(got, tt.not) {
			t.Errorf("got %q, which holds %q", got, tt.not)
		}
	}
	verify = keyPolicy()
	second := signedWithKey(LayoutTag)
	second.Key = "second"
	if got := side(refusedAt(LayoutTag, StepSignature), second); !strings.Contains(got, "accepts (2)") || !strings.Contains(got, "by a required key") {
		t.Errorf("got %q", got)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for want, list := range map[string][]series{
		"":               nil,
		"1.8":            supported[1:2],
		"1.7, 1.8":       supported[:2],
		"1.8 to 1.10":    supported[1:],
		"1.7, 1.9, 1.10": {supported[0], supported[2], supported[3]},
	} {
		if got := names(list); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

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

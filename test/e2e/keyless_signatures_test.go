package e2e

import (
	"bytes"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
)

// scanType is the type of what is attested beside or instead of a signature.
const scanType = "https://acme.example/scan/v1"

// servedWith is the scenario of an artifact that the controller has verified and
// serves, and whose signature in the registry is another one by the time the
// gate looks.
func servedWith(name string, core bool, change func(s *stage, digest string, bundle image), reason gate.Code, told ...string) scenario {
	return scenario{name: name, core: core, newer: true, run: func(s *stage) {
		s.withSigner()
		a := s.signed(githubtoken.Claims{})
		s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
		s.gate(in{"digest": a}, briefly).verified(a)
		change(s, a, s.bundleOf(a))
		got := s.gate(in{"digest": a}, briefly).apart("the signature was changed after the controller had verified").rejected(reason, gate.ControllerDisagrees)
		found := got.Finding(s.t, reason)
		for _, text := range told {
			if !strings.Contains(found.Found, text) {
				s.t.Errorf("the finding does not tell %q: %s", text, found.Found)
			}
		}
		for _, r := range got.Report.Signers {
			if r.Counts {
				s.t.Errorf("a signature counts: %+v", r)
			}
		}
	}}
}

// refusedWith is the scenario of an artifact whose only signature does not hold,
// deployed for the first time.
func refusedWith(name string, put func(s *stage, digest string)) scenario {
	return scenario{name: name, newer: true, run: func(s *stage) {
		s.withSigner()
		a := s.push("v1", "a")
		put(s, a)
		s.apply()
		s.gate(in{"digest": a}, patiently).rejected(gate.VerificationFailed, gate.ArtifactMissing)
	}}
}

// copied puts the signature of another artifact under a digest.
func copied(s *stage, digest string) {
	b := s.push("v2", "b")
	s.signAs(b, githubtoken.Claims{})
	s.attach(digest, s.bundleOf(b).layer)
}

// tampered puts a signature under a digest that was made for it and changed
// afterwards.
func tampered(s *stage, digest string) {
	s.signAs(digest, githubtoken.Claims{})
	bundle := s.bundleOf(digest)
	s.remove(bundle.digest)
	s.attach(digest, spoil(s, bundle.layer))
}

// spoil changes the signature in a bundle.
func spoil(s *stage, bundle []byte) []byte {
	mark := []byte(`"sig":"`)
	at := bytes.Index(bundle, mark)
	if at < 0 {
		s.t.Fatalf("expected a bundle with an envelope, found %s", bundle)
	}
	spoilt := bytes.Clone(bundle)
	place := at + len(mark) + 40 // in the middle of the base64
	if spoilt[place] == 'A' {
		spoilt[place] = 'B'
	} else {
		spoilt[place] = 'A'
	}
	return spoilt
}

// keylessSignatures are about what lies in the registry.
func keylessSignatures() []scenario {
	return []scenario{
		servedWith("keyless-signature-deleted", true, func(s *stage, _ string, bundle image) {
			s.remove(bundle.digest)
		}, gate.Unsigned, "no bundle among the referrers"),
		servedWith("keyless-signature-tampered", false, func(s *stage, a string, bundle image) {
			s.remove(bundle.digest)
			s.attach(a, spoil(s, bundle.layer))
		}, gate.SignatureInvalid, subject),
		servedWith("keyless-signature-of-another-digest", true, func(s *stage, a string, bundle image) {
			s.remove(bundle.digest)
			copied(s, a)
		}, gate.SignatureInvalid, "at the step binding"),
		servedWith("keyless-signature-replaced-by-a-stranger", false, func(s *stage, a string, bundle image) {
			s.remove(bundle.digest)
			s.signAs(a, stranger)
		}, gate.SignedByOthers, "mallory/platform"),
		servedWith("keyless-signature-replaced-by-a-key", false, func(s *stage, a string, bundle image) {
			s.remove(bundle.digest)
			s.signKey(a, s.ours, cosigncli.Bundle)
		}, gate.Unsigned),
		refusedWith("keyless-copied-bundle", copied),
		refusedWith("keyless-tampered-bundle", tampered),
		refusedWith("keyless-unsigned", func(*stage, string) {}),
		{name: "keyless-attestation-only", core: true, newer: true, run: func(s *stage) {
			// The controller takes any bundle for a signature.
			s.withSigner()
			a := s.push("v1", "a")
			s.attestAs(a, githubtoken.Claims{}, scanType, `{"found": 0}`)
			s.apply()
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.gate(in{"digest": a}, briefly).rejected(gate.NotASignature)
			s.gate(in{"digest": a, "attestations": "https://slsa.dev/provenance/v1"}, briefly).rejected(gate.NotASignature)
			s.gate(in{"digest": a, "attestations": "https://slsa.dev/provenance/v1\n" + scanType}).verified(a)
		}},
		{name: "keyless-attested-by-a-stranger", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.attestAs(a, stranger, scanType, `{"found": 0}`)
			s.apply()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-provenance-beside", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.push("v1", "a")
			s.attestAs(a, githubtoken.Claims{}, scanType, `{"found": 0}`)
			s.signAs(a, githubtoken.Claims{})
			s.apply()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-stranger-beside", core: true, newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.signed(githubtoken.Claims{}, stranger)
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-broken-bundle-beside", newer: true, run: func(s *stage) {
			// Whoever can push must not be able to turn the gate red.
			s.withSigner()
			a := s.signed(githubtoken.Claims{})
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.attach(a, spoil(s, s.bundleOf(a).layer))
			s.attach(a, []byte("no bundle at all"))
			s.gate(in{"digest": a}, briefly).verified(a, gate.SignatureInvalid)
		}},
		{name: "keyless-signed-late", newer: true, run: func(s *stage) {
			// The gate is there before the signature.
			s.withSigner()
			a := s.push("v1", "a")
			s.apply()
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			waiting := s.gate(in{"digest": a})
			waiting.waits(gate.VerificationFailed)
			s.signAs(a, githubtoken.Claims{})
			waiting.verified(a)
		}},
		{name: "keyless-mirror-without-signatures", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.signed(githubtoken.Claims{})
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			mirror := s.repository() + "-mirror"
			s.copyTo(mirror, "v1", a)
			s.apply(func(spec *sourcev1.OCIRepositorySpec) { spec.URL = "oci://" + mirror })
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a, "url": "oci://" + mirror}, patiently).rejected(gate.VerificationFailed, gate.Unsigned)
		}},
		{name: "keyless-index", newer: true, run: func(s *stage) {
			s.withSigner()
			index, _ := s.pushIndex("v1")
			s.signAs(index, githubtoken.Claims{})
			s.apply()
			s.gate(in{"digest": index}).verified(index)
		}},
		{name: "keyless-index-with-a-signed-child", newer: true, run: func(s *stage) {
			s.withSigner()
			index, children := s.pushIndex("v1")
			for _, child := range children {
				s.signAs(child, githubtoken.Claims{})
			}
			s.serveUnverified(index)
			found := s.gate(in{"digest": index}, patiently).rejected(gate.VerificationFailed, gate.Unsigned).Finding(s.t, gate.Unsigned)
			if !strings.Contains(found.Found, "sign the index itself") {
				s.t.Errorf("the finding does not tell that a child is signed: %s", found.Found)
			}
		}},
		{name: "keyless-child-of-a-signed-index", newer: true, run: func(s *stage) {
			s.withSigner()
			index, children := s.pushIndex("v1")
			s.signAs(index, githubtoken.Claims{})
			s.desired.Spec.Reference = &sourcev1.OCIRepositoryRef{Digest: children[0]}
			s.serveUnverified(children[0])
			found := s.gate(in{"digest": children[0]}, patiently).rejected(gate.VerificationFailed, gate.Unsigned).Finding(s.t, gate.Unsigned)
			if !strings.Contains(found.Found, index) {
				s.t.Errorf("the finding does not tell that the index is signed: %s", found.Found)
			}
		}},
		{name: "keyless-with-a-pinned-digest", newer: true, run: func(s *stage) {
			s.withSigner()
			a := s.pushSignedAs("v1", githubtoken.Claims{})
			s.desired.Spec.Reference = &sourcev1.OCIRepositoryRef{Digest: a}
			s.apply()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "keyless-hidden-tag-signature", newer: true, run: func(s *stage) {
			// With a key, because Rekor v2 has nothing for the older layout.
			s.withKey()
			a := s.pushSigned("v1", "a")
			s.apply()
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.signAs(a, stranger)
			note := s.gate(in{"digest": a}, briefly).apart(later).verified(a, gate.WillRefuse).Finding(s.t, gate.WillRefuse)
			if note.Outcome != gate.Note {
				s.t.Errorf("got the outcome %s, want a note", note.Outcome)
			}
			s.apply(touch)
			s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
			s.gate(in{"digest": a}, briefly).rejected(gate.VerificationFailed)
		}},
	}
}

// serveUnverified has the controller take a digest in without a policy, and then
// refuse it under the scenario's.
func (s *stage) serveUnverified(digest string) {
	s.t.Helper()
	verify := s.desired.Spec.Verify
	s.apply(noVerify)
	s.awaitServing(digest)
	s.apply(func(spec *sourcev1.OCIRepositorySpec) { spec.Verify = verify })
	s.awaitCondition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse)
}

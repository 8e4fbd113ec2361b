package signature

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signature/internal/testsigstore"
)

// badCase is one way to be wrong.
type badCase struct {
	name string
	step gate.Step
	make func(t *testing.T, s *testsigstore.Sigstore, digest string) evidence
	// root makes a Sigstore of its own for a case that changes the root.
	root func(t *testing.T) *testsigstore.Sigstore
}

var otherDigest = digestOf([]byte("another artifact"))

// signing changes how a bundle is signed, and then what was made.
func signing(change func(w *testsigstore.Signing, digest string), spoil func(b *protobundle.Bundle)) func(*testing.T, *testsigstore.Sigstore, string) evidence {
	return func(t *testing.T, s *testsigstore.Sigstore, digest string) evidence {
		t.Helper()
		w := testsigstore.Signing{Identity: requiredIdentity(), At: at, Payload: testsigstore.Statement(cosignPredicate, digest)}
		if change != nil {
			change(&w, digest)
		}
		b := makeBundle(t, s, w)
		if spoil != nil {
			spoil(b)
		}
		return bundleEvidence(marshal(t, b))
	}
}

// statement signs these bytes, in which DIGEST stands for the hex digest.
func statement(text string) func(*testing.T, *testsigstore.Sigstore, string) evidence {
	return signing(func(w *testsigstore.Signing, digest string) {
		w.Payload = []byte(strings.ReplaceAll(text, "DIGEST", strings.TrimPrefix(digest, "sha256:")))
	}, nil)
}

// rewritten changes the JSON of a good bundle.
func rewritten(change func(raw []byte) []byte) func(*testing.T, *testsigstore.Sigstore, string) evidence {
	return func(t *testing.T, s *testsigstore.Sigstore, digest string) evidence {
		t.Helper()
		e := goodBundle(t, s, digest)
		e.bundle = change(e.bundle)
		return e
	}
}

// layer changes how a layer is signed, and then what was made.
func layer(change func(w *testsigstore.Signing, digest string), spoil func(e *evidence)) func(*testing.T, *testsigstore.Sigstore, string) evidence {
	return func(t *testing.T, s *testsigstore.Sigstore, digest string) evidence {
		t.Helper()
		w := testsigstore.Signing{
			Identity: requiredIdentity(), At: at, Log: testsigstore.LogV1Promise, Payload: testsigstore.Payload("registry.example/acme/platform", digest),
		}
		if change != nil {
			change(&w, digest)
		}
		e := makeLayer(t, s, w)
		if spoil != nil {
			spoil(&e)
		}
		return e
	}
}

func payloadOf(text string) func(*testing.T, *testsigstore.Sigstore, string) evidence {
	return layer(func(w *testsigstore.Signing, digest string) {
		w.Payload = []byte(strings.ReplaceAll(text, "DIGEST", digest))
	}, nil)
}

// annotated changes one annotation of a good layer; nil removes it.
func annotated(name string, change func(string) string) func(*testing.T, *testsigstore.Sigstore, string) evidence {
	return layer(nil, func(e *evidence) {
		if change == nil {
			delete(e.annotations, name)
			return
		}
		e.annotations[name] = change(e.annotations[name])
	})
}

func replaced(from, to string) func([]byte) []byte {
	return func(raw []byte) []byte { return bytes.Replace(raw, []byte(from), []byte(to), 1) }
}

// ended makes an instance in whose root something has ended before the
// signature was made.
func ended(name string) func(t *testing.T) *testsigstore.Sigstore {
	return func(t *testing.T) *testsigstore.Sigstore {
		t.Helper()
		s := newSigstore(t)
		s.EndLog(name, at.Add(-time.Hour))
		return s
	}
}

func foreign(t *testing.T) *testsigstore.Sigstore { t.Helper(); return newSigstore(t) }

const (
	statementHead = `{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{},`
	subjectGood   = `"subject":[{"digest":{"sha256":"DIGEST"}}]}`
	payloadGood   = `{"critical":{"identity":{"docker-reference":"a"},"image":{"docker-manifest-digest":"DIGEST"},"type":"cosign container image signature"},"optional":null}`
)

func badCases(t *testing.T) []badCase {
	other := foreign(t)
	elsewhere := func(change func(*testsigstore.Signing)) func(*testsigstore.Signing, string) {
		return func(w *testsigstore.Signing, _ string) { change(w) }
	}
	key, _, err := testsigstore.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	// another is a good bundle of the same signer about another artifact.
	another := func(t *testing.T, s *testsigstore.Sigstore) *protobundle.Bundle {
		t.Helper()
		return makeBundle(t, s, testsigstore.Signing{Identity: requiredIdentity(), At: at, Payload: testsigstore.Statement(cosignPredicate, otherDigest)})
	}
	swapped := func(swap func(own, another *protobundle.Bundle)) func(*testing.T, *testsigstore.Sigstore, string) evidence {
		return func(t *testing.T, s *testsigstore.Sigstore, digest string) evidence {
			t.Helper()
			own := makeBundle(t, s, testsigstore.Signing{Identity: requiredIdentity(), At: at, Payload: testsigstore.Statement(cosignPredicate, digest)})
			swap(own, another(t, s))
			return bundleEvidence(marshal(t, own))
		}
	}
	many := make([]string, 1025)
	for n := range many {
		many[n] = `{"digest":{"sha256":"DIGEST"}}`
	}
	v2 := func(change func(*testsigstore.Signing)) func(*testing.T, *testsigstore.Sigstore, string) evidence {
		return signing(func(w *testsigstore.Signing, _ string) {
			w.Log = testsigstore.LogV2
			change(w)
		}, nil)
	}
	return []badCase{
		// Parse, a bundle.
		{"nothing", gate.StepParse, rewritten(func([]byte) []byte { return nil }), nil},
		{"no JSON", gate.StepParse, rewritten(func([]byte) []byte { return []byte("a bundle") }), nil},
		{"cut off", gate.StepParse, rewritten(func(raw []byte) []byte { return raw[:len(raw)/2] }), nil},
		{"more behind the bundle", gate.StepParse, rewritten(func(raw []byte) []byte { return append(raw, "{}"...) }), nil},
		{"a member twice", gate.StepParse, rewritten(replaced(`{"mediaType"`, `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","mediaType"`)), nil},
		{"an unknown member", gate.StepParse, rewritten(replaced(`{"mediaType"`, `{"extra":1,"mediaType"`)), nil},
		{"bundle version 0.4", gate.StepParse, rewritten(replaced(`bundle.v0.3+json`, `bundle.v0.4+json`)), nil},
		{"bundle version 0.2", gate.StepParse, signing(nil, func(b *protobundle.Bundle) {
			b.MediaType = "application/vnd.dev.sigstore.bundle+json;version=0.2"
		}), nil},
		{"bundle version 0.1", gate.StepParse, signing(nil, func(b *protobundle.Bundle) {
			b.MediaType = "application/vnd.dev.sigstore.bundle+json;version=0.1"
		}), nil},
		{"no media type", gate.StepParse, signing(nil, func(b *protobundle.Bundle) { b.MediaType = "" }), nil},
		{"no content", gate.StepParse, signing(nil, func(b *protobundle.Bundle) { b.Content = nil }), nil},
		{"no verification material", gate.StepParse, signing(nil, func(b *protobundle.Bundle) { b.VerificationMaterial = nil }), nil},
		{"no certificate in the material", gate.StepParse, signing(nil, func(b *protobundle.Bundle) { b.VerificationMaterial.Content = nil }), nil},
		{"a bare signature", gate.StepParse, signing(nil, func(b *protobundle.Bundle) {
			b.Content = &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
				MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: make([]byte, 32)}, Signature: []byte("s"),
			}}
		}), nil},
		{"another payload type", gate.StepParse, signing(nil, func(b *protobundle.Bundle) { b.GetDsseEnvelope().PayloadType = "text/plain" }), nil},
		{"signed with another payload type", gate.StepParse, signing(elsewhere(func(w *testsigstore.Signing) { w.PayloadType = "application/json" }), nil), nil},
		{"two signatures", gate.StepParse, signing(nil, func(b *protobundle.Bundle) {
			e := b.GetDsseEnvelope()
			e.Signatures = append(e.Signatures, e.Signatures[0])
		}), nil},
		{"no signature", gate.StepParse, signing(nil, func(b *protobundle.Bundle) { b.GetDsseEnvelope().Signatures = nil }), nil},
		{"a certificate chain", gate.StepParse, signing(nil, func(b *protobundle.Bundle) {
			cert := b.VerificationMaterial.GetCertificate()
			b.VerificationMaterial.Content = &protobundle.VerificationMaterial_X509CertificateChain{
				X509CertificateChain: &protocommon.X509CertificateChain{Certificates: []*protocommon.X509Certificate{cert}},
			}
		}), nil},
		{"no certificate that can be read", gate.StepParse, signing(nil, func(b *protobundle.Bundle) {
			b.VerificationMaterial.GetCertificate().RawBytes = []byte("a certificate")
		}), nil},
		{"no proof of inclusion", gate.StepParse, signing(elsewhere(func(w *testsigstore.Signing) { w.Log = testsigstore.LogV1Promise }), nil), nil},
		{"33 log entries", gate.StepParse, signing(nil, func(b *protobundle.Bundle) {
			for len(b.VerificationMaterial.TlogEntries) < 33 {
				b.VerificationMaterial.TlogEntries = append(b.VerificationMaterial.TlogEntries, b.VerificationMaterial.TlogEntries[0])
			}
		}), nil},
		{"a log entry that cannot be read", gate.StepParse, signing(nil, func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries[0].CanonicalizedBody = []byte("{}")
		}), nil},
		{"a log entry of another kind", gate.StepParse, signing(nil, func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries[0].CanonicalizedBody = []byte(`{"apiVersion":"0.0.1","kind":"alpine","spec":{}}`)
		}), nil},
		{"a statement that is no JSON", gate.StepParse, statement("a statement"), nil},
		{"a statement that is a list", gate.StepParse, statement("[" + statementHead + subjectGood + "]"), nil},
		{"more behind the statement", gate.StepParse, statement(statementHead + subjectGood + "{}"), nil},
		{"two subject members", gate.StepParse, statement(statementHead + `"subject":[],` + subjectGood), nil},
		{"two subject members that differ in case", gate.StepParse, statement(statementHead + `"Subject":[{"digest":{"sha256":"` + strings.Repeat("0", 64) + `"}}],` + subjectGood), nil},
		{"two digests of one algorithm", gate.StepParse, statement(statementHead + `"subject":[{"digest":{"sha256":"` + strings.Repeat("0", 64) + `","sha256":"DIGEST"}}]}`), nil},
		{"a statement of another type", gate.StepParse, statement(strings.Replace(statementHead, "Statement/v1", "Link/v1", 1) + subjectGood), nil},
		{"no predicate type", gate.StepParse, statement(strings.Replace(statementHead, `"predicateType":"https://sigstore.dev/cosign/sign/v1",`, "", 1) + subjectGood), nil},
		{"a predicate type that is null", gate.StepParse, statement(strings.Replace(statementHead, `"https://sigstore.dev/cosign/sign/v1"`, "null", 1) + subjectGood), nil},
		{"no subject", gate.StepParse, statement(statementHead + `"subject":[]}`), nil},
		{"a subject without digest", gate.StepParse, statement(statementHead + `"subject":[{"name":"DIGEST"}]}`), nil},
		{"1025 subjects", gate.StepParse, statement(statementHead + `"subject":[` + strings.Join(many, ",") + `]}`), nil},

		// Binding, a bundle.
		{"about another artifact", gate.StepBinding, signing(func(w *testsigstore.Signing, _ string) {
			w.Payload = testsigstore.Statement(cosignPredicate, otherDigest)
		}, nil), nil},
		{"about several others", gate.StepBinding, signing(func(w *testsigstore.Signing, _ string) {
			w.Payload = testsigstore.Statement(cosignPredicate, otherDigest, digestOf([]byte("1")), digestOf([]byte("2")))
		}, nil), nil},
		{"sha512 only", gate.StepBinding, statement(statementHead + `"subject":[{"digest":{"sha512":"DIGESTDIGEST"}}]}`), nil},
		{"the right digest under another algorithm", gate.StepBinding, statement(statementHead + `"subject":[{"digest":{"sha512":"DIGEST"}}]}`), nil},
		{"the algorithm in capitals", gate.StepBinding, statement(statementHead + `"subject":[{"digest":{"SHA256":"DIGEST"}}]}`), nil},
		{"the digest as a name", gate.StepBinding, statement(statementHead + `"subject":[{"name":"sha256:DIGEST","digest":{"sha256":"` + strings.Repeat("0", 64) + `"}}]}`), nil},
		{"the digest with its algorithm twice", gate.StepBinding, statement(statementHead + `"subject":[{"digest":{"sha256":"sha256:DIGEST"}}]}`), nil},
		{"the digest and more", gate.StepBinding, statement(statementHead + `"subject":[{"digest":{"sha256":"DIGEST00"}}]}`), nil},

		// Certificate, a bundle.
		{"another authority, our log", gate.StepCertificate, signing(elsewhere(func(w *testsigstore.Signing) { w.Issuer = other }), nil), nil},
		{"another Sigstore altogether", gate.StepCertificate, func(t *testing.T, _ *testsigstore.Sigstore, digest string) evidence {
			t.Helper()
			return goodBundle(t, other, digest)
		}, nil},
		{"a key instead of a certificate", gate.StepCertificate, signing(elsewhere(func(w *testsigstore.Signing) { w.Key = key }), nil), nil},
		{"an authority that has ended", gate.StepCertificate, signing(nil, nil), ended("authority")},
		{"before the authority began", gate.StepCertificate, signing(elsewhere(func(w *testsigstore.Signing) { w.At = at.AddDate(-2, 0, 0) }), nil), nil},
		{"two issuers", gate.StepCertificate, signing(elsewhere(func(w *testsigstore.Signing) { w.Identity.OtherIssuer = "https://issuer.evil.example" }), nil), nil},
		{"no issuer", gate.StepCertificate, signing(elsewhere(func(w *testsigstore.Signing) { w.Identity.NoIssuer = true }), nil), nil},

		// SCT, a bundle.
		{"no SCT", gate.StepSCT, signing(elsewhere(func(w *testsigstore.Signing) { w.CT = testsigstore.CTNone }), nil), nil},
		{"an SCT of an unknown log", gate.StepSCT, signing(elsewhere(func(w *testsigstore.Signing) { w.CT = testsigstore.CTForeign }), nil), nil},
		{"an SCT of another certificate", gate.StepSCT, signing(elsewhere(func(w *testsigstore.Signing) { w.CT = testsigstore.CTOther }), nil), nil},
		{"a certificate log that has ended", gate.StepSCT, signing(nil, nil), ended("ct")},

		// Log, a bundle.
		{"no log entry", gate.StepLog, signing(elsewhere(func(w *testsigstore.Signing) { w.Log = testsigstore.LogNone }), nil), nil},
		{"no log entry and a stamp", gate.StepLog, signing(elsewhere(func(w *testsigstore.Signing) { w.Log, w.Stamp = testsigstore.LogNone, true }), nil), nil},
		{"an unknown log", gate.StepLog, signing(elsewhere(func(w *testsigstore.Signing) { w.Logger = other }), nil), nil},
		{"a log that has ended", gate.StepLog, signing(nil, nil), ended("rekor")},
		{"a promise that does not hold", gate.StepLog, signing(elsewhere(func(w *testsigstore.Signing) { w.BadPromise = true }), nil), nil},
		{"a proof that does not hold", gate.StepLog, signing(elsewhere(func(w *testsigstore.Signing) { w.BadProof = true }), nil), nil},
		{"a checkpoint that does not hold", gate.StepLog, signing(elsewhere(func(w *testsigstore.Signing) { w.BadCheckpoint = true }), nil), nil},
		{"another time than promised", gate.StepLog, signing(nil, func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries[0].IntegratedTime++ }), nil},
		{"the same log entry twice", gate.StepLog, signing(nil, func(b *protobundle.Bundle) {
			m := b.VerificationMaterial
			m.TlogEntries = append(m.TlogEntries, m.TlogEntries[0])
		}), nil},
		{"a changed statement", gate.StepLog, func(t *testing.T, s *testsigstore.Sigstore, digest string) evidence {
			t.Helper()
			b := another(t, s)
			b.GetDsseEnvelope().Payload = testsigstore.Statement(cosignPredicate, digest)
			return bundleEvidence(marshal(t, b))
		}, nil},
		{"another's signature", gate.StepLog, swapped(func(own, another *protobundle.Bundle) {
			own.GetDsseEnvelope().Signatures = another.GetDsseEnvelope().Signatures
		}), nil},
		{"another certificate of the same signer", gate.StepLog, swapped(func(own, another *protobundle.Bundle) {
			own.VerificationMaterial.Content = another.VerificationMaterial.Content
		}), nil},
		{"another's log entry", gate.StepLog, swapped(func(own, another *protobundle.Bundle) {
			own.VerificationMaterial.TlogEntries = another.VerificationMaterial.TlogEntries
		}), nil},
		{"Rekor v2: an unknown log", gate.StepLog, v2(func(w *testsigstore.Signing) { w.Logger = other }), nil},
		{"Rekor v2: a proof that does not hold", gate.StepLog, v2(func(w *testsigstore.Signing) { w.BadProof = true }), nil},
		{"Rekor v2: a checkpoint that does not hold", gate.StepLog, v2(func(w *testsigstore.Signing) { w.BadCheckpoint = true }), nil},

		// Time, a bundle.
		{"logged after the certificate", gate.StepTime, signing(elsewhere(func(w *testsigstore.Signing) { w.Integrated = at.Add(time.Hour) }), nil), nil},
		{"logged before the certificate", gate.StepTime, signing(elsewhere(func(w *testsigstore.Signing) { w.Integrated = at.Add(-time.Hour) }), nil), nil},
		{"a proof and no promise", gate.StepTime, signing(elsewhere(func(w *testsigstore.Signing) { w.Log = testsigstore.LogV1Proof }), nil), nil},
		{"a proof and no promise, and a stamp", gate.StepTime, signing(elsewhere(func(w *testsigstore.Signing) { w.Log, w.Stamp = testsigstore.LogV1Proof, true }), nil), nil},
		{"Rekor v2: no stamp", gate.StepTime, v2(func(w *testsigstore.Signing) { w.NoStamp = true }), nil},
		{"Rekor v2: a stamp of an unknown authority", gate.StepTime, v2(func(w *testsigstore.Signing) { w.Stamper = other }), nil},
		{"Rekor v2: stamped after the certificate", gate.StepTime, v2(func(w *testsigstore.Signing) { w.Stamped = at.Add(time.Hour) }), nil},
		{"Rekor v2: stamped before the certificate", gate.StepTime, v2(func(w *testsigstore.Signing) { w.Stamped = at.Add(-time.Hour) }), nil},
		{"Rekor v2: an authority that has ended", gate.StepTime, v2(func(*testsigstore.Signing) {}), ended("stamper")},
		{"Rekor v2: a stamp of another signature", gate.StepTime, func(t *testing.T, s *testsigstore.Sigstore, digest string) evidence {
			t.Helper()
			w := testsigstore.Signing{Identity: requiredIdentity(), At: at, Log: testsigstore.LogV2, Payload: testsigstore.Statement(cosignPredicate, digest)}
			own, another := makeBundle(t, s, w), makeBundle(t, s, w)
			own.VerificationMaterial.TimestampVerificationData = another.VerificationMaterial.TimestampVerificationData
			return bundleEvidence(marshal(t, own))
		}, nil},
		{"Rekor v2: a stamp that cannot be read", gate.StepTime, signing(func(w *testsigstore.Signing, _ string) { w.Log = testsigstore.LogV2 }, func(b *protobundle.Bundle) {
			b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps[0].SignedTimestamp = []byte("a stamp")
		}), nil},
		{"Rekor v2: 33 stamps", gate.StepTime, signing(func(w *testsigstore.Signing, _ string) { w.Log = testsigstore.LogV2 }, func(b *protobundle.Bundle) {
			stamps := b.VerificationMaterial.TimestampVerificationData
			for len(stamps.Rfc3161Timestamps) < 33 {
				stamps.Rfc3161Timestamps = append(stamps.Rfc3161Timestamps, stamps.Rfc3161Timestamps[0])
			}
		}), nil},

		// Signature, a bundle.
		{"a signature over something else, logged as it is", gate.StepSignature, signing(elsewhere(func(w *testsigstore.Signing) { w.BadSignature = true }), nil), nil},
		{"Rekor v2: a signature over something else", gate.StepSignature, v2(func(w *testsigstore.Signing) { w.BadSignature = true }), nil},

		// The .sig tag.
		{"tag: no signature", gate.StepParse, annotated(annotationSignature, nil), nil},
		{"tag: a signature not in base64", gate.StepParse, annotated(annotationSignature, func(string) string { return "%%%" }), nil},
		{"tag: a certificate not in PEM", gate.StepParse, annotated(annotationCertificate, func(string) string { return "a certificate" }), nil},
		{"tag: two certificates", gate.StepParse, annotated(annotationCertificate, func(s string) string { return s + s }), nil},
		{"tag: a key as certificate", gate.StepParse, annotated(annotationCertificate, func(s string) string {
			return strings.ReplaceAll(s, "CERTIFICATE", "PUBLIC KEY")
		}), nil},
		{"tag: a chain not in PEM", gate.StepParse, annotated(annotationChain, func(string) string { return "a chain" }), nil},
		{"tag: a chain with something else in it", gate.StepParse, annotated(annotationChain, func(s string) string {
			return s + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
		}), nil},
		{"tag: more behind the chain", gate.StepParse, annotated(annotationChain, func(s string) string { return s + "a chain" }), nil},
		{"tag: a log entry that is no JSON", gate.StepParse, annotated(annotationBundle, func(string) string { return "an entry" }), nil},
		{"tag: an unknown member in the log entry", gate.StepParse, annotated(annotationBundle, func(s string) string {
			return strings.Replace(s, `{"Payload"`, `{"Extra":1,"Payload"`, 1)
		}), nil},
		{"tag: a member twice in the log entry", gate.StepParse, annotated(annotationBundle, func(s string) string {
			return strings.Replace(s, `"logIndex"`, `"logindex":7,"logIndex"`, 1)
		}), nil},
		{"tag: a time that is no integer", gate.StepParse, annotated(annotationBundle, func(s string) string {
			return strings.Replace(s, `"integratedTime":1`, `"integratedTime":0.1`, 1)
		}), nil},
		{"tag: a log id not in hexadecimal", gate.StepParse, annotated(annotationBundle, func(s string) string {
			return strings.Replace(s, `"logID":"`, `"logID":"x`, 1)
		}), nil},
		{"tag: a stamp that is no JSON", gate.StepParse, layer(nil, func(e *evidence) { e.annotations[annotationTimestamp] = "a stamp" }), nil},
		{"tag: a payload that is no JSON", gate.StepParse, payloadOf("DIGEST"), nil},
		{"tag: an empty payload", gate.StepParse, payloadOf("{}"), nil},
		{"tag: more behind the payload", gate.StepParse, payloadOf(payloadGood + "{}"), nil},
		{"tag: critical twice", gate.StepParse, payloadOf(strings.Replace(payloadGood, `{"critical"`, `{"critical":{},"critical"`, 1)), nil},
		{"tag: critical twice in another case", gate.StepParse, payloadOf(strings.Replace(payloadGood, `{"critical"`, `{"Critical":{},"critical"`, 1)), nil},
		{"tag: two digests", gate.StepParse, payloadOf(strings.Replace(payloadGood, `"docker-manifest-digest"`, `"docker-manifest-digest":"`+otherDigest+`","docker-manifest-digest"`, 1)), nil},
		{"tag: another payload type", gate.StepParse, payloadOf(strings.Replace(payloadGood, "cosign container image signature", "atomic container signature", 1)), nil},
		{"tag: a payload type that begins alike", gate.StepParse, payloadOf(strings.Replace(payloadGood, "cosign container image signature", "cosign container image signature v2", 1)), nil},
		{"tag: an unknown critical member", gate.StepParse, payloadOf(strings.Replace(payloadGood, `"type"`, `"expires":1,"type"`, 1)), nil},
		{"tag: no digest", gate.StepParse, payloadOf(strings.Replace(payloadGood, `"docker-manifest-digest":"DIGEST"`, "", 1)), nil},
		{"tag: about another artifact", gate.StepBinding, layer(func(w *testsigstore.Signing, _ string) {
			w.Payload = testsigstore.Payload("registry.example/acme/platform", otherDigest)
		}, nil), nil},
		{"tag: the digest without its algorithm", gate.StepBinding, layer(func(w *testsigstore.Signing, digest string) {
			w.Payload = testsigstore.Payload("registry.example/acme/platform", strings.TrimPrefix(digest, "sha256:"))
		}, nil), nil},
		{"tag: the digest in capitals", gate.StepBinding, layer(func(w *testsigstore.Signing, digest string) {
			w.Payload = testsigstore.Payload("registry.example/acme/platform", strings.ToUpper(digest))
		}, nil), nil},
		{"tag: the digest in the reference", gate.StepBinding, layer(func(w *testsigstore.Signing, digest string) {
			w.Payload = testsigstore.Payload("registry.example/acme/platform@"+digest, otherDigest)
		}, nil), nil},
		{"tag: a key instead of a certificate", gate.StepCertificate, layer(func(w *testsigstore.Signing, _ string) { w.Key = key }, nil), nil},
		{"tag: the certificate removed", gate.StepCertificate, annotated(annotationCertificate, nil), nil},
		{"tag: another authority, our log", gate.StepCertificate, layer(func(w *testsigstore.Signing, _ string) { w.Issuer = other }, nil), nil},
		{"tag: two issuers", gate.StepCertificate, layer(func(w *testsigstore.Signing, _ string) { w.Identity.OtherIssuer = "https://issuer.evil.example" }, nil), nil},
		{"tag: only the newer issuer extension", gate.StepCertificate, layer(func(w *testsigstore.Signing, _ string) { w.Identity.OnlyNewIssuer = true }, nil), nil},
		{"tag: no SCT", gate.StepSCT, layer(func(w *testsigstore.Signing, _ string) { w.CT = testsigstore.CTNone }, nil), nil},
		{"tag: an SCT of another certificate", gate.StepSCT, layer(func(w *testsigstore.Signing, _ string) { w.CT = testsigstore.CTOther }, nil), nil},
		{"tag: no log entry", gate.StepLog, annotated(annotationBundle, nil), nil},
		{"tag: an unknown log", gate.StepLog, layer(func(w *testsigstore.Signing, _ string) { w.Logger = other }, nil), nil},
		{"tag: a promise that does not hold", gate.StepLog, layer(func(w *testsigstore.Signing, _ string) { w.BadPromise = true }, nil), nil},
		{"tag: another's signed payload, changed", gate.StepLog, func(t *testing.T, s *testsigstore.Sigstore, digest string) evidence {
			t.Helper()
			e := goodLayer(t, s, otherDigest)
			e.payload = testsigstore.Payload("registry.example/acme/platform", digest)
			e.digest = digestOf(e.payload)
			return e
		}, nil},
		{"tag: another's signature", gate.StepLog, func(t *testing.T, s *testsigstore.Sigstore, digest string) evidence {
			t.Helper()
			e := goodLayer(t, s, digest)
			e.annotations[annotationSignature] = goodLayer(t, s, otherDigest).annotations[annotationSignature]
			return e
		}, nil},
		{"tag: another certificate of the same signer", gate.StepLog, func(t *testing.T, s *testsigstore.Sigstore, digest string) evidence {
			t.Helper()
			e := goodLayer(t, s, digest)
			e.annotations[annotationCertificate] = goodLayer(t, s, digest).annotations[annotationCertificate]
			return e
		}, nil},
		{"tag: logged after the certificate", gate.StepTime, layer(func(w *testsigstore.Signing, _ string) { w.Integrated = at.Add(time.Hour) }, nil), nil},
		{"tag: logged before the certificate", gate.StepTime, layer(func(w *testsigstore.Signing, _ string) { w.Integrated = at.Add(-time.Hour) }, nil), nil},
		// Rekor's parser verifies the signature in such an entry, so that the
		// entry cannot even be read.
		{"tag: a signature over something else, logged as it is", gate.StepParse, layer(func(w *testsigstore.Signing, _ string) { w.BadSignature = true }, nil), nil},
	}
}

// TestBad refuses every way to be wrong at its step, in the registry with the
// referrers API and with the fallback tag, and in a layout.
func TestBad(t *testing.T) {
	t.Parallel()
	cases := badCases(t)
	if len(cases) < 50 {
		t.Fatalf("expected at least 50 ways to be wrong, found %d", len(cases))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := sharedSigstore(t)
			if c.root != nil {
				s = c.root(t)
			}
			r := newRepository(t)
			e := c.make(t, s, r.digest)
			r.attach(e, r.digest)
			dir := t.TempDir()
			r.write(dir)
			inLayout := checker(t, s)
			inLayout.Layout = dir
			found := map[string]gate.Signatures{
				"api":    checker(t, s).Check(deadline(t, time.Minute), r.serve(true).target(r)),
				"tag":    checker(t, s).Check(deadline(t, time.Minute), r.serve(false).target(r)),
				"layout": inLayout.Check(deadline(t, time.Minute), Target{Repository: "registry.example/acme/platform", Digest: r.digest}),
			}
			for place, got := range found {
				if !got.Complete || len(got.Found) != 1 {
					t.Fatalf("%s: expected one candidate, found:\n%s", place, tellAll(got))
				}
				if f := got.Found[0]; f.Verified || f.Step != c.step || f.Why == "" {
					t.Errorf("%s: expected a refusal at %s, found:\n%s", place, c.step, tellAll(got))
				}
				if got.SelfTest != nil {
					t.Errorf("%s: expected no self-test, found %+v", place, got.SelfTest)
				}
				findings, _ := gate.JudgeSignatures(want(), got, r.digest)
				for _, f := range findings {
					if f.Outcome != gate.Fail {
						t.Errorf("%s: expected only fails, found %+v", place, f)
					}
				}
				if len(findings) == 0 {
					t.Errorf("%s: expected a finding", place)
				}
			}
		})
	}
}

// fillBadBesideGood puts in every bad candidate, and then two good ones.
func fillBadBesideGood(t *testing.T, s *testsigstore.Sigstore, r *repository) {
	t.Helper()
	for _, c := range badCases(t) {
		if c.root == nil {
			r.attach(c.make(t, s, r.digest), r.digest)
		}
	}
	r.attach(goodBundle(t, s, r.digest), r.digest)
	r.attach(goodLayer(t, s, r.digest), r.digest)
}

// TestBadBesideGood finds the good signature whatever lies beside it.
func TestBadBesideGood(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	r := newRepository(t)
	fillBadBesideGood(t, s, r)
	got := checker(t, s).Check(deadline(t, time.Minute), r.serve(false).target(r))
	verified := 0
	for _, f := range got.Found {
		if f.Verified {
			verified++
		}
	}
	if verified != 2 || !got.Complete {
		t.Fatalf("expected the two good ones, found %d:\n%s", verified, tellAll(got))
	}
	findings, _ := gate.JudgeSignatures(want(), got, r.digest)
	for _, f := range findings {
		if f.Outcome != gate.Pass && f.Outcome != gate.Note {
			t.Errorf("expected passes and notes, found %+v", f)
		}
	}
}

// TestStrictObject refuses what two readers could read differently.
func TestStrictObject(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		``, `{`, `[]`, `"a"`, `null`, `{"a":1}{}`, `{"a":1} x`, `{"a":1,"a":1}`, `{"a":1,"A":1}`, `{"a"}`, `{"a":}`, "{\"a\":\"\xff\"}", `{"a":1,}`, `{"\u0061":1,"a":2}`,
		`{"subject":1,"\u017fubject":2}`, `{"kind":1,"\u212aIND":2}`,
	} {
		if got, err := strictObject([]byte(bad)); err == nil {
			t.Errorf("expected %q to be refused, found %v", bad, got)
		}
	}
	got, err := strictObject([]byte(` {"a": {"b": [1, 2]}, "c": null} `))
	if err != nil || string(got["a"]) != `{"b": [1, 2]}` || string(got["c"]) != "null" {
		t.Errorf("expected two members, found %v, %v", got, err)
	}
}

func FuzzStatement(f *testing.F) {
	digest := digestOf([]byte("artifact"))
	f.Add(testsigstore.Statement(cosignPredicate, digest))
	f.Add(testsigstore.Payload("registry.example/acme/platform", digest))
	f.Add([]byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"x","subject":[{"digest":{"sha256":"` + digest[7:] + `"}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, read := range []func([]byte) (claim, error){readStatement, readPayload} {
			c, err := read(raw)
			if err != nil {
				continue
			}
			if !json.Valid(raw) {
				t.Fatalf("expected only JSON to be read, found %q", raw)
			}
			if c.covers(digest) && !bytes.Contains(raw, []byte(`\u`)) && !bytes.Contains(raw, []byte(digest[7:])) {
				t.Fatalf("expected a claim about %s to name it, found %q", digest, raw)
			}
		}
	})
}

func FuzzBundle(f *testing.F) {
	s, err := shared()
	if err != nil {
		f.Fatal(err)
	}
	digest := digestOf([]byte("artifact"))
	v := keylessFor(f, s)
	f.Add(goodBundle(f, s, otherDigest).bundle)
	f.Fuzz(func(t *testing.T, raw []byte) {
		// The seed is about another artifact, so no mutation may verify.
		if got := v.verify(bundleEvidence(raw), question{digest: digest}); got.Verified || got.Step == "" {
			t.Fatalf("expected a refusal, found %+v", got)
		}
	})
}

package testsigstore

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/rekor-tiles/v2/pkg/note"
	"google.golang.org/protobuf/encoding/protojson"
)

// Log says what the transparency log does.
type Log string

// LogV1 writes an entry with the log's promise, its time and a proof (Rekor
// v1); LogV1Promise leaves the proof out, LogV1Proof the promise. LogV2 writes
// an entry with a proof and no time (Rekor v2). LogNone writes none.
const (
	LogV1        Log = ""
	LogV1Promise Log = "promise"
	LogV1Proof   Log = "proof"
	LogV2        Log = "v2"
	LogNone      Log = "none"
)

// Signing is one signature to be made, and everything that can be wrong with
// it. The zero value of a field is the right way.
type Signing struct {
	Identity Identity
	// At is when; the certificate is valid from then on for ten minutes.
	At time.Time
	// Key signs instead of a certificate.
	Key *ecdsa.PrivateKey

	// Payload are the signed bytes; PayloadType is that of the envelope.
	Payload     []byte
	PayloadType string

	CT  CT
	Log Log
	// Logger logs instead of this instance, Stamper stamps, Issuer issues.
	Logger, Stamper, Issuer *Sigstore
	// Integrated is the time that the log writes; else one minute after At.
	Integrated time.Time
	// Stamped is the time that the authority stamps, where it stamps; else two
	// minutes after At. Stamp asks for one also where the log has a time.
	Stamped time.Time
	Stamp   bool
	NoStamp bool
	// BadPromise, BadProof and BadCheckpoint spoil what the log signs.
	BadPromise, BadProof, BadCheckpoint bool
	// BadSignature spoils the signature before it is logged, so that only the
	// signature itself is wrong.
	BadSignature bool
	// Curve is that of the certificate's key; else P-256.
	Curve elliptic.Curve
}

// signed is a signature with what vouches for it.
type signed struct {
	cert      *x509.Certificate
	signature []byte
	entry     *protorekor.TransparencyLogEntry
	stamps    []*protocommon.RFC3161SignedTimestamp
	chain     []*x509.Certificate
}

// sign signs message, which for an envelope is not the payload.
func (s *Sigstore) sign(w Signing, message []byte, body func(signature, certPEM []byte) ([]byte, string)) (signed, error) {
	var out signed
	key := w.Key
	var err error
	if key == nil {
		issuer := s
		if w.Issuer != nil {
			issuer = w.Issuer
		}
		curve := w.Curve
		if curve == nil {
			curve = elliptic.P256()
		}
		if out.cert, key, err = issuer.leaf(w.Identity, w.At, w.CT, curve); err != nil {
			return out, err
		}
		out.chain = append(slices.Clone(issuer.authority.Intermediates), issuer.authority.Root)
	}
	over := message
	if w.BadSignature {
		over = append([]byte("not "), message...)
	}
	if out.signature, err = signECDSA(key, over); err != nil {
		return out, err
	}
	var verifier []byte
	if out.cert != nil {
		verifier = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: out.cert.Raw})
	} else {
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			return out, err
		}
		verifier = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	}
	logger := s
	if w.Logger != nil {
		logger = w.Logger
	}
	switch w.Log {
	case LogNone:
	case LogV2:
		out.entry, err = logger.logV2(w, message, out)
	default:
		entry, kind := body(out.signature, verifier)
		out.entry, err = logger.logV1(w, entry, kind)
	}
	if err != nil {
		return out, err
	}
	if (w.Log == LogV2 || w.Stamp) && !w.NoStamp {
		stamper := s
		if w.Stamper != nil {
			stamper = w.Stamper
		}
		at := w.Stamped
		if at.IsZero() {
			at = w.At.Add(2 * time.Minute)
		}
		stamp, err := stamper.stamp(out.signature, at)
		if err != nil {
			return out, err
		}
		out.stamps = append(out.stamps, &protocommon.RFC3161SignedTimestamp{SignedTimestamp: stamp})
	}
	return out, nil
}

// Bundle signs a statement and makes a Sigstore bundle of version 0.3.
func (s *Sigstore) Bundle(w Signing) (*protobundle.Bundle, error) {
	payloadType := w.PayloadType
	if payloadType == "" {
		payloadType = "application/vnd.in-toto+json"
	}
	made, err := s.sign(w, dsse.PAE(payloadType, w.Payload), func(signature, verifier []byte) ([]byte, string) {
		envelope, _ := json.Marshal(dsse.Envelope{
			PayloadType: payloadType, Payload: b64(w.Payload), Signatures: []dsse.Signature{{Sig: b64(signature)}},
		})
		return canonical(map[string]any{"apiVersion": "0.0.1", "kind": "dsse", "spec": map[string]any{
			"envelopeHash": map[string]any{"algorithm": "sha256", "value": hexSum(envelope)},
			"payloadHash":  map[string]any{"algorithm": "sha256", "value": hexSum(w.Payload)},
			"signatures":   []any{map[string]any{"signature": b64(signature), "verifier": b64(verifier)}},
		}}), "dsse"
	})
	if err != nil {
		return nil, err
	}
	material := &protobundle.VerificationMaterial{}
	if made.cert != nil {
		material.Content = &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: made.cert.Raw}}
	} else {
		material.Content = &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: "a hint"}}
	}
	if made.entry != nil {
		material.TlogEntries = []*protorekor.TransparencyLogEntry{made.entry}
	}
	if len(made.stamps) > 0 {
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{Rfc3161Timestamps: made.stamps}
	}
	return &protobundle.Bundle{
		MediaType:            "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: material,
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: w.Payload, PayloadType: payloadType, Signatures: []*protodsse.Signature{{Sig: made.signature}},
		}},
	}, nil
}

// MarshalBundle writes a bundle as JSON, always the same way.
func MarshalBundle(b *protobundle.Bundle) ([]byte, error) {
	raw, err := protojson.Marshal(b)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, err
	}
	return compact.Bytes(), nil
}

// Layer signs a payload as cosign does under the .sig tag, and returns the
// annotations of its layer.
func (s *Sigstore) Layer(w Signing) (map[string]string, error) {
	made, err := s.sign(w, w.Payload, func(signature, verifier []byte) ([]byte, string) {
		return canonical(map[string]any{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": map[string]any{
			"data":      map[string]any{"hash": map[string]any{"algorithm": "sha256", "value": hexSum(w.Payload)}},
			"signature": map[string]any{"content": b64(signature), "publicKey": map[string]any{"content": b64(verifier)}},
		}}), "hashedrekord"
	})
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{"dev.cosignproject.cosign/signature": b64(made.signature)}
	if made.cert != nil {
		annotations["dev.sigstore.cosign/certificate"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.cert.Raw}))
		var chain bytes.Buffer
		for _, cert := range made.chain {
			if err := pem.Encode(&chain, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}); err != nil {
				return nil, err
			}
		}
		annotations["dev.sigstore.cosign/chain"] = chain.String()
	}
	if made.entry != nil {
		entry, err := json.Marshal(map[string]any{
			"SignedEntryTimestamp": made.entry.GetInclusionPromise().GetSignedEntryTimestamp(),
			"Payload": map[string]any{
				"body": b64(made.entry.CanonicalizedBody), "integratedTime": made.entry.IntegratedTime,
				"logIndex": made.entry.LogIndex, "logID": hex.EncodeToString(made.entry.LogId.KeyId),
			},
		})
		if err != nil {
			return nil, err
		}
		annotations["dev.sigstore.cosign/bundle"] = string(entry)
	}
	if len(made.stamps) > 0 {
		stamp, err := json.Marshal(map[string]any{"SignedRFC3161Timestamp": made.stamps[0].SignedTimestamp})
		if err != nil {
			return nil, err
		}
		annotations["dev.sigstore.cosign/rfc3161timestamp"] = string(stamp)
	}
	return annotations, nil
}

// logV1 writes an entry into a log like Rekor v1.
func (s *Sigstore) logV1(w Signing, body []byte, kind string) (*protorekor.TransparencyLogEntry, error) {
	id, err := logID(s.rekorKey.Public())
	if err != nil {
		return nil, err
	}
	at := w.Integrated
	if at.IsZero() {
		at = w.At.Add(time.Minute)
	}
	entry := &protorekor.TransparencyLogEntry{
		LogIndex: 1, LogId: &protocommon.LogId{KeyId: id}, KindVersion: &protorekor.KindVersion{Kind: kind, Version: "0.0.1"},
		IntegratedTime: at.Unix(), CanonicalizedBody: body,
	}
	if w.Log != LogV1Proof {
		promise, err := signECDSA(s.rekorKey, canonical(map[string]any{
			"body": b64(body), "integratedTime": entry.IntegratedTime, "logID": hex.EncodeToString(id), "logIndex": entry.LogIndex,
		}))
		if err != nil {
			return nil, err
		}
		if w.BadPromise {
			promise[len(promise)-1] ^= 1
		}
		entry.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	}
	if w.Log != LogV1Promise {
		hash, err := logIDHint(s.rekorKey.Public())
		if err != nil {
			return nil, err
		}
		entry.InclusionProof, err = proof(w, body, rekorHost+" - 1193050959916656506", rekorHost, hash, func(text []byte) ([]byte, error) {
			return signECDSA(s.rekorKey, text)
		})
		if err != nil {
			return nil, err
		}
	}
	return entry, nil
}

// logIDHint is the first four bytes of the digest of an ECDSA key.
func logIDHint(key crypto.PublicKey) (uint32, error) {
	id, err := logID(key)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(id), nil
}

// logV2 writes an entry into a log like Rekor v2: no time, and a checkpoint in
// the name of the log's host.
func (s *Sigstore) logV2(w Signing, message []byte, made signed) (*protorekor.TransparencyLogEntry, error) {
	id, err := logID(s.tilesKey.Public())
	if err != nil {
		return nil, err
	}
	if made.cert == nil {
		return nil, fmt.Errorf("log a signature by a key: not supported")
	}
	sum := sha256.Sum256(message)
	body := canonical(map[string]any{"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": map[string]any{"hashedRekordV002": map[string]any{
		"data": map[string]any{"algorithm": "SHA2_256", "digest": b64(sum[:])},
		"signature": map[string]any{"content": b64(made.signature), "verifier": map[string]any{
			"keyDetails": "PKIX_ECDSA_P256_SHA_256", "x509Certificate": map[string]any{"rawBytes": b64(made.cert.Raw)},
		}},
	}}})
	hash, _, err := note.KeyHash(tilesHost, s.tilesKey.Public())
	if err != nil {
		return nil, err
	}
	inclusion, err := proof(w, body, tilesHost, tilesHost, hash, func(text []byte) ([]byte, error) {
		return ed25519.Sign(s.tilesKey, text), nil
	})
	if err != nil {
		return nil, err
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex: 1, LogId: &protocommon.LogId{KeyId: id}, KindVersion: &protorekor.KindVersion{Kind: "hashedrekord", Version: "0.0.2"},
		InclusionProof: inclusion, CanonicalizedBody: body,
	}, nil
}

// proof puts the entry at the second place of a log of two, and has the log
// sign a checkpoint over it.
func proof(w Signing, body []byte, origin, name string, hash uint32, sign func([]byte) ([]byte, error)) (*protorekor.InclusionProof, error) {
	first := sha256.Sum256([]byte("\x00an earlier entry"))
	own := sha256.Sum256(append([]byte{0}, body...))
	top := sha256.Sum256(append(append([]byte{1}, first[:]...), own[:]...))
	text := fmt.Sprintf("%s\n2\n%s\n", origin, b64(top[:]))
	signature, err := sign([]byte(text))
	if err != nil {
		return nil, err
	}
	if w.BadCheckpoint {
		signature[len(signature)-1] ^= 1
	}
	hint := binary.BigEndian.AppendUint32(nil, hash)
	sibling := first
	if w.BadProof {
		sibling[0] ^= 1
	}
	return &protorekor.InclusionProof{
		LogIndex: 1, TreeSize: 2, RootHash: top[:], Hashes: [][]byte{sibling[:]},
		Checkpoint: &protorekor.Checkpoint{Envelope: fmt.Sprintf("%s\n\u2014 %s %s\n", text, name, b64(append(hint, signature...)))},
	}, nil
}

// stamp has the time-stamping authority stamp a signature (RFC 3161).
func (s *Sigstore) stamp(signature []byte, at time.Time) ([]byte, error) {
	sum := sha256.Sum256(signature)
	stamp := timestamp.Timestamp{
		HashAlgorithm: crypto.SHA256, HashedMessage: sum[:], Time: at.UTC(), SerialNumber: serial(),
		Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2},
	}
	return stamp.CreateResponseWithOpts(s.stamper.Leaf, s.stamperKey, crypto.SHA256)
}

// Statement makes an in-toto statement of the given predicate type about the
// digests, each sha256:….
func Statement(predicateType string, digests ...string) []byte {
	var subjects []any
	for _, digest := range digests {
		subjects = append(subjects, map[string]any{"digest": map[string]any{"sha256": digest[len("sha256:"):]}})
	}
	return canonical(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": predicateType, "predicate": map[string]any{}, "subject": subjects,
	})
}

// Payload makes cosign's payload about one digest.
func Payload(reference, digest string) []byte {
	return canonical(map[string]any{
		"critical": map[string]any{
			"identity": map[string]any{"docker-reference": reference},
			"image":    map[string]any{"docker-manifest-digest": digest},
			"type":     "cosign container image signature",
		},
		"optional": nil,
	})
}

// NewKey makes a key to sign with, and its public half in PEM.
func NewKey() (*ecdsa.PrivateKey, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, "", err
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}

// canonical writes JSON with sorted members and without white space, which for
// values like these is what RFC 8785 asks for.
func canonical(value any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil
	}
	return bytes.TrimSpace(out.Bytes())
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

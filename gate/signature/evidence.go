package signature

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"google.golang.org/protobuf/encoding/protojson"

	"flux-verify-gate/gate"
)

// evidence is one candidate as it was fetched, before anything in it is read.
type evidence struct {
	layout gate.Layout
	// digest is that of the manifest (bundle) or layer (tag).
	digest string
	// bundle is the JSON of a Sigstore bundle; nil for the tag layout.
	bundle []byte
	// payload and annotations are the signed bytes and the annotations of one
	// layer in the tag layout.
	payload     []byte
	annotations map[string]string
}

// Annotations of one layer under the .sig tag (github.com/sigstore/cosign,
// pkg/types/media.go and pkg/oci/static, v3).
const (
	annotationSignature   = "dev.cosignproject.cosign/signature"
	annotationCertificate = "dev.sigstore.cosign/certificate"
	annotationChain       = "dev.sigstore.cosign/chain"
	annotationBundle      = "dev.sigstore.cosign/bundle"
	annotationTimestamp   = "dev.sigstore.cosign/rfc3161timestamp"
)

// tagBundleType is the bundle version that a .sig layer is turned into: the only
// one that allows a log's promise without its proof, and all that cosign keeps
// there is the promise.
const tagBundleType = "application/vnd.dev.sigstore.bundle+json;version=0.1"

// entity is a candidate that was read: what sigstore-go verifies, and what the
// signed bytes claim to be about. None of it is verified yet.
type entity struct {
	*bundle.Bundle
	mediaType string
	claim     claim
	// payload is set in the tag layout, where the signed bytes stand beside the
	// signature.
	payload []byte
}

// parse reads the evidence. withLog says that the transparency log entry and
// the time stamp of a layer matter, which they do not for keys; they must be
// readable all the same, as for the controller.
func (e evidence) parse(withLog bool) (*entity, error) {
	if e.layout == gate.LayoutTag {
		return e.parseLayer(withLog)
	}
	return e.parseBundle()
}

func (e evidence) parseBundle() (*entity, error) {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(e.bundle); err != nil {
		return nil, fmt.Errorf("expected a Sigstore bundle: %w", err)
	}
	parsed := &entity{Bundle: &b, mediaType: b.GetMediaType()}
	// The controller reads no older bundle here (cosign v3), and an older one
	// needs no proof of inclusion.
	if !b.MinVersion("v0.3") {
		return parsed, fmt.Errorf("expected a bundle of version 0.3 or newer, found %q", b.GetMediaType())
	}
	envelope := b.GetDsseEnvelope()
	if envelope == nil {
		return parsed, errors.New("expected a signed statement about the artifact, found a bundle with a bare signature")
	}
	if envelope.GetPayloadType() != bundle.IntotoMediaType {
		return parsed, fmt.Errorf("expected the payload type %q, found %q", bundle.IntotoMediaType, envelope.GetPayloadType())
	}
	// A second signature would be by somebody whom nobody verifies.
	if n := len(envelope.GetSignatures()); n != 1 {
		return parsed, fmt.Errorf("expected one signature over the statement, found %d", n)
	}
	claim, err := readStatement(envelope.GetPayload())
	if err != nil {
		return parsed, fmt.Errorf("expected an in-toto statement: %w", err)
	}
	parsed.claim = claim
	return parsed, nil
}

// plainKind is a kind and version of log entry that can be shown as it is.
var plainKind = regexp.MustCompile(`^[a-z0-9]{1,32}/[0-9.]{1,16}$`)

// kindsOf gives the kinds of the log entries of a bundle that was not read. An
// entry of a kind that the library does not know is one reason for that, and
// then the one that helps to explain why others read it or do not.
func kindsOf(raw []byte) []string {
	var b protobundle.Bundle
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, &b); err != nil {
		return nil
	}
	var kinds []string
	for _, entry := range b.GetVerificationMaterial().GetTlogEntries() {
		kind := entry.GetKindVersion().GetKind() + "/" + entry.GetKindVersion().GetVersion()
		if plainKind.MatchString(kind) && !slices.Contains(kinds, kind) && len(kinds) < 32 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// parseLayer turns a layer of the .sig tag into a bundle. The digest of the
// payload is computed here: the one in the descriptor is anybody's word.
func (e evidence) parseLayer(withLog bool) (*entity, error) {
	raw, ok := e.annotations[annotationSignature]
	if !ok || raw == "" {
		return nil, fmt.Errorf("expected the annotation %s, found none", annotationSignature)
	}
	signature, err := base64.StdEncoding.DecodeString(raw)
	if err != nil {
		return nil, fmt.Errorf("expected a signature in base64: %w", err)
	}
	sum := sha256.Sum256(e.payload)
	material := &protobundle.VerificationMaterial{}
	if certificate := e.annotations[annotationCertificate]; certificate != "" {
		der, err := onePEM(certificate, "CERTIFICATE")
		if err != nil {
			return nil, err
		}
		// The chain that cosign stores beside it is not used, because
		// certificates of the authority come from the trusted root. It must be
		// one all the same: the controller does not take a layer that it cannot
		// read whole (cosign v3.1.2, pkg/oci/static/copy.go).
		if err := readChain(e.annotations[annotationChain]); err != nil {
			return nil, fmt.Errorf("%s: %w", annotationChain, err)
		}
		material.Content = &protobundle.VerificationMaterial_X509CertificateChain{
			X509CertificateChain: &protocommon.X509CertificateChain{
				Certificates: []*protocommon.X509Certificate{{RawBytes: der}},
			},
		}
	} else {
		material.Content = &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}}
	}
	if entry := e.annotations[annotationBundle]; entry != "" {
		logged, err := readLogEntry([]byte(entry))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", annotationBundle, err)
		}
		if withLog {
			material.TlogEntries = []*protorekor.TransparencyLogEntry{logged}
		}
	}
	if stamp := e.annotations[annotationTimestamp]; stamp != "" {
		signed, err := readTimestamp([]byte(stamp))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", annotationTimestamp, err)
		}
		if withLog {
			material.TimestampVerificationData = &protobundle.TimestampVerificationData{
				Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: signed}},
			}
		}
	}
	b, err := bundle.NewBundle(&protobundle.Bundle{
		MediaType:            tagBundleType,
		VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     signature,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("expected a cosign signature: %w", err)
	}
	parsed := &entity{Bundle: b, payload: e.payload}
	if parsed.claim, err = readPayload(e.payload); err != nil {
		return parsed, fmt.Errorf("expected a cosign payload: %w", err)
	}
	return parsed, nil
}

// onePEM reads exactly one PEM block of the given type.
func onePEM(data, kind string) ([]byte, error) {
	block, rest := pem.Decode([]byte(data))
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("expected a %s in PEM, found none", kind)
	}
	if strings.TrimSpace(string(rest)) != "" {
		return nil, fmt.Errorf("expected one %s in PEM, found more behind it", kind)
	}
	return block.Bytes, nil
}

// readChain reads certificates in PEM, of which there may be none.
func readChain(data string) error {
	rest := []byte(strings.TrimSpace(data))
	for len(rest) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return errors.New("expected certificates in PEM, found something else")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("expected certificates: %w", err)
		}
		rest = bytes.TrimSpace(rest)
	}
	return nil
}

// readLogEntry reads cosign's form of a transparency log entry
// (github.com/sigstore/cosign, pkg/cosign/bundle).
func readLogEntry(raw []byte) (*protorekor.TransparencyLogEntry, error) {
	members, err := strictObject(raw)
	if err != nil {
		return nil, err
	}
	if err := only(members, "SignedEntryTimestamp", "Payload"); err != nil {
		return nil, err
	}
	promise, err := base64Member(members, "SignedEntryTimestamp")
	if err != nil {
		return nil, err
	}
	payload, err := object(members, "Payload")
	if err != nil {
		return nil, err
	}
	if err := only(payload, "body", "integratedTime", "logIndex", "logID"); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	body, err := base64Member(payload, "body")
	if err != nil {
		return nil, err
	}
	var integrated, index int64
	for name, into := range map[string]*int64{"integratedTime": &integrated, "logIndex": &index} {
		if err := json.Unmarshal(payload[name], into); err != nil {
			return nil, fmt.Errorf("expected %s to be an integer: %w", name, err)
		}
	}
	id, err := text(payload, "logID")
	if err != nil {
		return nil, err
	}
	log, err := hex.DecodeString(id)
	if err != nil {
		return nil, fmt.Errorf("expected logID in hexadecimal: %w", err)
	}
	inner, err := strictObject(body)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	kind, err := text(inner, "kind")
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	version, err := text(inner, "apiVersion")
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex:          index,
		LogId:             &protocommon.LogId{KeyId: log},
		KindVersion:       &protorekor.KindVersion{Kind: kind, Version: version},
		IntegratedTime:    integrated,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: promise},
		CanonicalizedBody: body,
	}, nil
}

func readTimestamp(raw []byte) ([]byte, error) {
	members, err := strictObject(raw)
	if err != nil {
		return nil, err
	}
	if err := only(members, "SignedRFC3161Timestamp"); err != nil {
		return nil, err
	}
	return base64Member(members, "SignedRFC3161Timestamp")
}

func base64Member(members map[string]json.RawMessage, name string) ([]byte, error) {
	encoded, err := text(members, name)
	if err != nil {
		return nil, err
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("expected %s in base64: %w", name, err)
	}
	return decoded, nil
}

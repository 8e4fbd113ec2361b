package testsigstore

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"net/url"
	"time"

	ct "github.com/google/certificate-transparency-go"
	cttls "github.com/google/certificate-transparency-go/tls"
	ctx509 "github.com/google/certificate-transparency-go/x509"
)

// Identity is what a certificate is asked for.
type Identity struct {
	Issuer  string
	Subject string // a URI
	Email   string // instead of Subject
	// SecondSubject is another URI behind Subject.
	SecondSubject string
	// OtherIssuer is written into the second issuer extension (V2) instead of
	// Issuer. NoIssuer leaves both out, OnlyNewIssuer the first.
	OtherIssuer   string
	NoIssuer      bool
	OnlyNewIssuer bool
	// Claims are further extensions of Fulcio, by the last number of their OID.
	Claims map[int]string
}

// GitHub is the identity of a GitHub Actions workflow, with the claims that
// Fulcio writes for it.
func GitHub(repository, workflow, ref string) Identity {
	uri := "https://github.com/" + repository + "/.github/workflows/" + workflow + "@" + ref
	return Identity{
		Issuer: "https://token.actions.githubusercontent.com", Subject: uri,
		Claims: map[int]string{
			9: uri, 10: "e63307d89d03276e6c5bd80e6a72f8be5cd3bc93", 11: "github-hosted",
			12: "https://github.com/" + repository, 13: "e63307d89d03276e6c5bd80e6a72f8be5cd3bc93", 14: ref, 15: "695555555",
			16: "https://github.com/acme", 17: "95555555", 18: uri, 19: "e63307d89d03276e6c5bd80e6a72f8be5cd3bc93", 20: "push",
			21: "https://github.com/" + repository + "/actions/runs/1/attempts/1", 22: "private",
		},
	}
}

// CT says what the certificate transparency log does.
type CT string

// A certificate carries a good SCT, none, one of an unknown log, or one over
// another certificate.
const (
	CTGood    CT = ""
	CTNone    CT = "none"
	CTForeign CT = "foreign"
	CTOther   CT = "other"
)

// leaf issues a certificate that is valid for ten minutes from at.
func (s *Sigstore) leaf(id Identity, at time.Time, mode CT, curve elliptic.Curve) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), NotBefore: at, NotAfter: at.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if id.Email != "" {
		template.EmailAddresses = []string{id.Email}
	} else {
		uri, err := url.Parse(id.Subject)
		if err != nil {
			return nil, nil, fmt.Errorf("subject: %w", err)
		}
		template.URIs = []*url.URL{uri}
	}
	if id.SecondSubject != "" {
		uri, err := url.Parse(id.SecondSubject)
		if err != nil {
			return nil, nil, fmt.Errorf("second subject: %w", err)
		}
		template.URIs = append(template.URIs, uri)
	}
	fulcio := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1}
	if !id.NoIssuer {
		second := id.Issuer
		if id.OtherIssuer != "" {
			second = id.OtherIssuer
		}
		if !id.OnlyNewIssuer {
			template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: append(fulcio[:8:8], 1), Value: []byte(id.Issuer)})
		}
		template.ExtraExtensions = append(template.ExtraExtensions, utf8Extension(append(fulcio[:8:8], 8), second))
	}
	for n := 9; n <= 22; n++ {
		if claim, ok := id.Claims[n]; ok {
			template.ExtraExtensions = append(template.ExtraExtensions, utf8Extension(append(fulcio[:8:8], n), claim))
		}
	}
	issuing := s.authority.Intermediates[0]
	if mode != CTNone {
		sct, err := s.sct(template, issuing, key.Public(), at, mode)
		if err != nil {
			return nil, nil, err
		}
		template.ExtraExtensions = append(template.ExtraExtensions, sct)
	}
	cert, err := create(template, issuing, key.Public(), s.authorityKey)
	return cert, key, err
}

func utf8Extension(id asn1.ObjectIdentifier, value string) pkix.Extension {
	der, err := asn1.MarshalWithParams(value, "utf8")
	if err != nil {
		der = nil
	}
	return pkix.Extension{Id: id, Value: der}
}

// sct has the log sign the certificate as it is before the SCT is in it (RFC
// 6962, section 3.2).
func (s *Sigstore) sct(template, issuing *x509.Certificate, key crypto.PublicKey, at time.Time, mode CT) (pkix.Extension, error) {
	signing := s.ctKey
	if mode == CTForeign {
		var err error
		if signing, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return pkix.Extension{}, err
		}
	}
	logged := *template
	if mode == CTOther {
		logged.SerialNumber = serial()
	}
	pre, err := create(&logged, issuing, key, s.authorityKey)
	if err != nil {
		return pkix.Extension{}, err
	}
	id, err := logID(signing.Public())
	if err != nil {
		return pkix.Extension{}, err
	}
	stamp := uint64(at.UnixMilli())
	sct := ct.SignedCertificateTimestamp{SCTVersion: ct.V1, Timestamp: stamp}
	copy(sct.LogID.KeyID[:], id)
	input, err := ct.SerializeSCTSignatureInput(sct, ct.LogEntry{Leaf: ct.MerkleTreeLeaf{
		Version: ct.V1, LeafType: ct.TimestampedEntryLeafType,
		TimestampedEntry: &ct.TimestampedEntry{
			EntryType: ct.PrecertLogEntryType, Timestamp: stamp,
			PrecertEntry: &ct.PreCert{
				IssuerKeyHash: sha256.Sum256(issuing.RawSubjectPublicKeyInfo), TBSCertificate: pre.RawTBSCertificate,
			},
		},
	}})
	if err != nil {
		return pkix.Extension{}, err
	}
	signature, err := signECDSA(signing, input)
	if err != nil {
		return pkix.Extension{}, err
	}
	sct.Signature = ct.DigitallySigned{
		Algorithm: cttls.SignatureAndHashAlgorithm{Hash: cttls.SHA256, Signature: cttls.ECDSA}, Signature: signature,
	}
	one, err := cttls.Marshal(sct)
	if err != nil {
		return pkix.Extension{}, err
	}
	list, err := cttls.Marshal(ctx509.SignedCertificateTimestampList{SCTList: []ctx509.SerializedSCT{{Val: one}}})
	if err != nil {
		return pkix.Extension{}, err
	}
	value, err := asn1.Marshal(list)
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value}, err
}

func signECDSA(key *ecdsa.PrivateKey, message []byte) ([]byte, error) {
	sum := sha256.Sum256(message)
	return ecdsa.SignASN1(rand.Reader, key, sum[:])
}

// stampCertificate makes the certificate of the time-stamping authority, whose
// one usage is critical (RFC 3161, section 2.3).
func (s *Sigstore) stampCertificate(parent *x509.Certificate, parentKey crypto.Signer) (*x509.Certificate, error) {
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		return nil, err
	}
	return create(&x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{Organization: []string{"sigstore.test"}, CommonName: "timestamp"},
		NotBefore: s.Started, NotAfter: s.Started.AddDate(50, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}, parent, s.stamperKey.Public(), parentKey)
}

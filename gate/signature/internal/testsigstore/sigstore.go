// Package testsigstore is a Sigstore of our own, for tests and for the recorded
// example: a certificate authority with GitHub's extensions, a certificate
// transparency log, transparency logs of both generations and a time-stamping
// authority, with the trusted root that knows them. It signs whatever it is
// told to, which is what a test of a verifier needs. Nothing of the product
// imports it.
package testsigstore

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// Sigstore is one instance, with its keys.
type Sigstore struct {
	// Started is when the instance began: nothing in its root is valid before.
	Started time.Time

	authority    *root.FulcioCertificateAuthority
	authorityKey *ecdsa.PrivateKey
	ctKey        *ecdsa.PrivateKey
	rekorKey     *ecdsa.PrivateKey
	tilesKey     ed25519.PrivateKey
	stamper      *root.SigstoreTimestampingAuthority
	stamperKey   *ecdsa.PrivateKey
	ends         map[string]time.Time
}

// Hosts of the instance.
const (
	rekorHost = "rekor.sigstore.test"
	tilesHost = "log2026-1.rekor.sigstore.test"
)

// New makes an instance that has been running since started.
func New(started time.Time) (*Sigstore, error) {
	s := &Sigstore{Started: started, ends: make(map[string]time.Time)}
	var err error
	key := func() *ecdsa.PrivateKey {
		made, keyErr := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if keyErr != nil {
			err = keyErr
		}
		return made
	}
	rootKey := key()
	s.authorityKey, s.ctKey, s.rekorKey, s.stamperKey = key(), key(), key(), key()
	if _, s.tilesKey, _ = ed25519.GenerateKey(rand.Reader); err != nil {
		return nil, err
	}
	rootCert, err := s.certificate("sigstore.test", "root", nil, rootKey, rootKey.Public(), nil)
	if err != nil {
		return nil, err
	}
	issuing, err := s.certificate("sigstore.test", "intermediate", rootCert, rootKey, s.authorityKey.Public(), []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning})
	if err != nil {
		return nil, err
	}
	s.authority = &root.FulcioCertificateAuthority{
		Root: rootCert, Intermediates: []*x509.Certificate{issuing}, ValidityPeriodStart: started, URI: "https://fulcio.sigstore.test",
	}
	stampRootKey := key()
	stampRoot, err := s.certificate("sigstore.test", "timestamp root", nil, stampRootKey, stampRootKey.Public(), nil)
	if err != nil {
		return nil, err
	}
	stamp, err := s.stampCertificate(stampRoot, stampRootKey)
	if err != nil {
		return nil, err
	}
	s.stamper = &root.SigstoreTimestampingAuthority{
		Root: stampRoot, Leaf: stamp, ValidityPeriodStart: started, URI: "https://timestamp.sigstore.test",
	}
	return s, nil
}

// EndLog ends the validity of a log or authority in the trusted root: "rekor",
// "tiles", "ct", "authority" or "stamper".
func (s *Sigstore) EndLog(name string, at time.Time) { s.ends[name] = at }

// Rename gives the issuing certificate authority another organization.
func (s *Sigstore) Rename(organization string) error {
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	rootCert, err := s.certificate(organization, "root", nil, rootKey, rootKey.Public(), nil)
	if err != nil {
		return err
	}
	issuing, err := s.certificate(organization, "intermediate", rootCert, rootKey, s.authorityKey.Public(), []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning})
	if err != nil {
		return err
	}
	s.authority.Root, s.authority.Intermediates = rootCert, []*x509.Certificate{issuing}
	return nil
}

// serial numbers only have to differ.
func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return big.NewInt(1)
	}
	return n
}

// certificate makes the certificate of an authority, which lives for 50 years.
func (s *Sigstore) certificate(organization, name string, parent *x509.Certificate, parentKey crypto.Signer, key crypto.PublicKey, usage []x509.ExtKeyUsage) (*x509.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{Organization: []string{organization}, CommonName: name},
		NotBefore: s.Started, NotAfter: s.Started.AddDate(50, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, ExtKeyUsage: usage,
	}
	if parent == nil {
		parent = template
	}
	return create(template, parent, key, parentKey)
}

func create(template, parent *x509.Certificate, key crypto.PublicKey, parentKey crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, parentKey)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// log describes a log for the trusted root.
func (s *Sigstore) log(name, address string, key crypto.PublicKey) (string, *root.TransparencyLog, error) {
	id, err := logID(key)
	if err != nil {
		return "", nil, err
	}
	log := &root.TransparencyLog{
		BaseURL: address, ID: id, HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256, PublicKey: key,
		ValidityPeriodStart: s.Started, ValidityPeriodEnd: s.ends[name],
	}
	return hex.EncodeToString(id), log, nil
}

// logID is the digest of the log's public key.
func logID(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	return sum[:], nil
}

// TrustedRoot is the instance's trusted_root.json, indented.
func (s *Sigstore) TrustedRoot() ([]byte, error) {
	rekorID, rekor, err := s.log("rekor", "https://"+rekorHost, s.rekorKey.Public())
	if err != nil {
		return nil, err
	}
	tilesID, tiles, err := s.log("tiles", "https://"+tilesHost, s.tilesKey.Public())
	if err != nil {
		return nil, err
	}
	ctID, ct, err := s.log("ct", "https://ctfe.sigstore.test", s.ctKey.Public())
	if err != nil {
		return nil, err
	}
	authority, stamper := *s.authority, *s.stamper
	authority.ValidityPeriodEnd, stamper.ValidityPeriodEnd = s.ends["authority"], s.ends["stamper"]
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01,
		[]root.CertificateAuthority{&authority},
		map[string]*root.TransparencyLog{ctID: ct},
		[]root.TimestampingAuthority{&stamper},
		map[string]*root.TransparencyLog{rekorID: rekor, tilesID: tiles})
	if err != nil {
		return nil, err
	}
	compact, err := trusted.MarshalJSON()
	if err != nil {
		return nil, err
	}
	// protojson varies its spaces on purpose; a file that is kept must not.
	var value any
	if err := json.Unmarshal(compact, &value); err != nil {
		return nil, err
	}
	indented, err := json.MarshalIndent(value, "", "  ")
	return append(indented, '\n'), err
}

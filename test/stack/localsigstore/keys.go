package localsigstore

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"os"
	"slices"

	"flux-verify-gate/test/stack/internal/pki"
)

// The files of the keys and certificates, in the directory pki.
const (
	fulcioKey   = "fulcio.key"
	fulcioChain = "fulcio.pem" // the issuing authority, then its root
	fulcioRoot  = "fulcio-root.pem"
	tsaKey      = "tsa.key"
	tsaChain    = "tsa.pem" // the authority's certificate, then its root
	ctKey       = "ct.key"
	ctPub       = "ct.pub"
	rekorKey    = "rekor.key"
	rekorPub    = "rekor.pub"
)

// makeKeys makes all keys and certificates, of the kinds that the public
// Sigstore uses: an issuing authority below a root, an ed25519 key for Rekor
// v2.
func (s *Sigstore) makeKeys() error {
	files := map[string][]byte{}
	if err := errFirst(makeFulcio(files), makeTSA(files), makeCT(files), makeRekor(files)); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(s.path("pki", name), data, 0o600); err != nil {
			return fmt.Errorf("cannot write the keys of Sigstore: %w", err)
		}
	}
	return nil
}

func makeFulcio(files map[string][]byte) error {
	root, err := makeRoot("fulcio-root")
	if err != nil {
		return err
	}
	issuing, err := pki.Issue(x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"stack.test"}, CommonName: "fulcio-intermediate"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}, root)
	if err != nil {
		return err
	}
	files[fulcioRoot] = root.CertificatePEM()
	files[fulcioChain] = slices.Concat(issuing.CertificatePEM(), root.CertificatePEM())
	files[fulcioKey], err = pki.PrivateKeyPEM(issuing.Key)
	return err
}

// Object identifiers of RFC 5280: the extended key usage, and time stamping.
var (
	oidExtKeyUsage  = asn1.ObjectIdentifier{2, 5, 29, 37}
	oidTimeStamping = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 8}
)

func makeTSA(files map[string][]byte) error {
	root, err := makeRoot("timestamp-root")
	if err != nil {
		return err
	}
	// RFC 3161, section 2.3: time stamping is the only usage, and critical.
	// x509 has no field for the latter.
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{oidTimeStamping})
	if err != nil {
		return fmt.Errorf("cannot encode the usage of the time-stamp authority's key: %w", err)
	}
	authority, err := pki.Issue(x509.Certificate{
		Subject:         pkix.Name{Organization: []string{"stack.test"}, CommonName: "timestamp-authority"},
		KeyUsage:        x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: oidExtKeyUsage, Critical: true, Value: usage}},
	}, root)
	if err != nil {
		return err
	}
	files[tsaChain] = slices.Concat(authority.CertificatePEM(), root.CertificatePEM())
	files[tsaKey], err = pki.PrivateKeyPEM(authority.Key)
	return err
}

func makeRoot(name string) (*pki.Pair, error) {
	return pki.Issue(x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"stack.test"}, CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}, nil)
}

func makeCT(files map[string][]byte) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("cannot make the key of the CT log: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key) // TesseraCT reads no other form
	if err != nil {
		return fmt.Errorf("cannot encode the key of the CT log: %w", err)
	}
	files[ctKey] = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	files[ctPub], err = pki.PublicKeyPEM(key.Public())
	return err
}

func makeRekor(files map[string][]byte) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("cannot make the key of Rekor: %w", err)
	}
	if files[rekorKey], err = pki.PrivateKeyPEM(private); err != nil {
		return err
	}
	files[rekorPub], err = pki.PublicKeyPEM(public)
	return err
}

// errFirst returns the first error.
func errFirst(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

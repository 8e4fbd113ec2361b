// Package pki makes certificates for the services of the stack.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// Validity of the certificates. It starts in the past so that a clock that is
// set back a little does not break a running stack.
const (
	Backdate = time.Hour
	Lifetime = 7 * 24 * time.Hour
)

// Pair is a certificate with its P-256 key.
type Pair struct {
	Certificate *x509.Certificate
	Key         *ecdsa.PrivateKey
}

// Issue makes a key and a certificate for it, with a random serial number and
// the package's validity, signed by parent, or by its own key if parent is nil.
// The rest of the certificate is the template's; the template is not changed.
func Issue(template x509.Certificate, parent *Pair) (*Pair, error) {
	name := template.Subject
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the key of %s: %w", name, err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("cannot make the serial number of %s: %w", name, err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-Backdate), time.Now().Add(Lifetime)
	issuer, signer := &template, key
	if parent != nil {
		issuer, signer = parent.Certificate, parent.Key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, issuer, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("cannot make the certificate of %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the certificate of %s: %w", name, err)
	}
	return &Pair{Certificate: certificate, Key: key}, nil
}

// CertificatePEM returns the certificate in PEM.
func (p *Pair) CertificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate.Raw})
}

// PrivateKeyPEM returns key as PKCS #8 in PEM, not encrypted.
func PrivateKeyPEM(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// PublicKeyPEM returns key as a SubjectPublicKeyInfo in PEM.
func PublicKeyPEM(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

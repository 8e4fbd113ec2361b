package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
)

func TestIssue(t *testing.T) {
	t.Parallel()
	root, err := Issue(x509.Certificate{
		Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := Issue(x509.Certificate{
		Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := Issue(x509.Certificate{
		Subject: pkix.Name{CommonName: "leaf"}, DNSNames: []string{"leaf.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, root)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		root *Pair
		ok   bool
	}{"its issuer": {root, true}, "another of the same name": {stranger, false}} {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(test.root.CertificatePEM()) {
			t.Fatal("not a certificate in PEM")
		}
		if _, err := leaf.Certificate.Verify(x509.VerifyOptions{Roots: pool, DNSName: "leaf.test"}); (err == nil) != test.ok {
			t.Errorf("verified by %s: %v, want success %t", name, err, test.ok)
		}
	}
	if root.Certificate.SerialNumber.Cmp(leaf.Certificate.SerialNumber) == 0 {
		t.Error("two certificates with one serial number")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	pair, err := Issue(x509.Certificate{Subject: pkix.Name{CommonName: "any"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	private, err := PrivateKeyPEM(pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(private)
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err != nil || !pair.Key.Equal(key) {
		t.Errorf("the private key came back as %v, %v", key, err)
	}
	public, err := PublicKeyPEM(pair.Key.Public())
	if err != nil {
		t.Fatal(err)
	}
	block, _ = pem.Decode(public)
	if key, err := x509.ParsePKIXPublicKey(block.Bytes); err != nil || !pair.Key.PublicKey.Equal(key) {
		t.Errorf("the public key came back as %v, %v", key, err)
	}
	if _, err := PrivateKeyPEM("no key"); err == nil {
		t.Error("a text is a private key")
	}
	if _, err := PublicKeyPEM("no key"); err == nil {
		t.Error("a text is a public key")
	}
}

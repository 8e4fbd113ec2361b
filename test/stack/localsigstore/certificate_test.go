package localsigstore_test

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// readCertificate returns the signing certificate of a bundle file.
func readCertificate(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bundle struct {
		VerificationMaterial struct {
			Certificate struct{ RawBytes []byte }
		}
	}
	if err := json.Unmarshal(data, &bundle); err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(bundle.VerificationMaterial.Certificate.RawBytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// extension returns Fulcio's extension 1.3.6.1.4.1.57264.1.<number> of a
// certificate, a text, or nothing.
func extension(t *testing.T, certificate *x509.Certificate, number int) string {
	t.Helper()
	id := fmt.Sprintf("1.3.6.1.4.1.57264.1.%d", number)
	for _, e := range certificate.Extensions {
		if e.Id.String() != id {
			continue
		}
		var text string
		if rest, err := asn1.Unmarshal(e.Value, &text); err != nil || len(rest) > 0 {
			t.Fatalf("the extension %s: %v", id, err)
		}
		return text
	}
	return ""
}

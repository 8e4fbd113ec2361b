package cluster

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// credential is what can be said about a credential without showing it.
type credential struct {
	origin string
	// what names its kind.
	what string
	// until is when it expires; zero where it does not say.
	until time.Time
}

func credentialOf(config *rest.Config, origin string) credential {
	switch {
	case config.BearerToken != "" || config.BearerTokenFile != "":
		token := config.BearerToken
		if token == "" {
			content, err := os.ReadFile(config.BearerTokenFile)
			if err == nil {
				token = strings.TrimSpace(string(content))
			}
		}
		return credential{origin: origin, what: "token", until: tokenExpiry(token)}
	case len(config.CertData) > 0:
		return credential{origin: origin, what: "client certificate", until: certificateExpiry(config.CertData)}
	default:
		return credential{origin: origin, what: "user name and password"}
	}
}

// tokenExpiry reads a JSON Web Token's expiry, unverified: it only explains a
// refusal. Tokens that are no JWT (EKS, GKE) do not say.
func tokenExpiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expiry int64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Expiry <= 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expiry, 0).UTC()
}

func certificateExpiry(data []byte) time.Time {
	block, _ := pem.Decode(data)
	if block == nil {
		return time.Time{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return certificate.NotAfter.UTC()
}

// refused says why the API server may have refused the credential.
func (c credential) refused(now time.Time) string {
	if !c.until.IsZero() && now.After(c.until) {
		return "the " + c.what + " expired at " + c.until.Format(time.RFC3339)
	}
	return "the " + c.what + " of " + c.origin + " was not accepted"
}

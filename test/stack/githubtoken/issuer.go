package githubtoken

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"time"
)

// The tokens' validity. It starts in the past as GitHub's does.
const (
	tokenBackdate = 5 * time.Minute
	tokenLifetime = 10 * time.Minute
)

const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/.well-known/jwks"
)

// issuer is one OpenID Connect issuer. Each has a key of its own, so that no
// issuer's token passes for another's.
type issuer struct {
	host string
	key  *rsa.PrivateKey
	id   string // of the key: its thumbprint
}

func newIssuer(host string) (*issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("cannot make the key of %s: %w", host, err)
	}
	sum := sha256.Sum256(key.N.Bytes())
	return &issuer{host: host, key: key, id: encode(sum[:16])}, nil
}

// url returns the issuer's URL: of the enterprise, if one is named.
func (i *issuer) url(enterprise string) string {
	if enterprise == "" {
		return "https://" + i.host
	}
	return "https://" + i.host + "/" + enterprise
}

// token signs the claims, with those of every token added, as a JSON web token.
func (i *issuer) token(url string, claims map[string]any) (string, error) {
	random := make([]byte, 16)
	rand.Read(random) // never fails
	now := time.Now()
	claims = maps.Clone(claims)
	claims["iss"] = url
	claims["jti"] = fmt.Sprintf("%x", random)
	claims["iat"] = now.Unix()
	claims["nbf"] = now.Add(-tokenBackdate).Unix()
	claims["exp"] = now.Add(tokenLifetime).Unix()
	header, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": i.id})
	if err != nil {
		return "", fmt.Errorf("cannot encode a token's header: %w", err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("cannot encode a token's claims: %w", err)
	}
	signed := encode(header) + "." + encode(payload)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("cannot sign a token: %w", err)
	}
	return signed + "." + encode(signature), nil
}

// ServeHTTP serves the discovery document and the key that it refers to, also
// below the name of an enterprise.
func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch enterprise, path := split(r.URL.Path); path {
	case discoveryPath:
		url := i.url(enterprise)
		answer(w, map[string]any{
			"issuer":                                url,
			"jwks_uri":                              url + keysPath,
			"subject_types_supported":               []string{"public", "pairwise"},
			"response_types_supported":              []string{"id_token"},
			"id_token_signing_alg_values_supported": []string{"RS256"},
			"scopes_supported":                      []string{"openid"},
		})
	case keysPath:
		answer(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": i.id,
			"n": encode(i.key.N.Bytes()), "e": encode(big.NewInt(int64(i.key.E)).Bytes()),
		}}})
	default:
		http.NotFound(w, r)
	}
}

// split returns the enterprise that a path begins with, if any, and the rest.
func split(path string) (enterprise, rest string) {
	at := strings.Index(path, "/.well-known/")
	if at <= 0 {
		return "", path
	}
	return path[1:at], path[at:]
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	// An error means that the client is gone.
	_ = json.NewEncoder(w).Encode(value)
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

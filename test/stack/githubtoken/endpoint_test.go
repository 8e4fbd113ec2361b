package githubtoken

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func start(t *testing.T) *Endpoint {
	t.Helper()
	e, err := Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// client returns a client that reaches the issuers as a program does that has
// the endpoint's proxy and authority in its environment.
func client(t *testing.T, e *Endpoint, caFile string) *http.Client {
	t.Helper()
	proxy, err := url.Parse(e.ProxyURL())
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate in %s", caFile)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func getJSON(client *http.Client, url string, into any) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return json.Unmarshal(body, into)
}

// verify verifies the token as OpenID Connect Discovery 1.0 says, with nothing
// but the issuer's URL, and returns its claims.
func verify(client *http.Client, issuer, token string) (map[string]any, error) {
	var discovery struct {
		Issuer  string
		JWKSURI string `json:"jwks_uri"`
	}
	if err := getJSON(client, issuer+"/.well-known/openid-configuration", &discovery); err != nil {
		return nil, err
	}
	if discovery.Issuer != issuer {
		return nil, fmt.Errorf("%s calls itself %s", issuer, discovery.Issuer)
	}
	var set struct {
		Keys []struct{ Kid, Alg, N, E string }
	}
	if err := getJSON(client, discovery.JWKSURI, &set); err != nil {
		return nil, err
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, fmt.Errorf("a token of %d parts", len(parts))
	}
	var header struct{ Alg, Kid string }
	var claims map[string]any
	for i, into := range []any{&header, &claims} {
		data, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, into); err != nil {
			return nil, err
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	for _, key := range set.Keys {
		if key.Kid != header.Kid || key.Alg != header.Alg {
			continue
		}
		n, err := base64.RawURLEncoding.DecodeString(key.N)
		if err != nil {
			return nil, err
		}
		e, err := base64.RawURLEncoding.DecodeString(key.E)
		if err != nil {
			return nil, err
		}
		public := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
		return claims, rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], signature)
	}
	return nil, fmt.Errorf("%s has no key %s", issuer, header.Kid)
}

func TestToken(t *testing.T) {
	t.Parallel()
	e := start(t)
	c := client(t, e, e.CAFile())
	for name, test := range map[string]struct {
		issuer string
		token  func() (string, error)
		want   map[string]any
	}{
		"workflow": {
			issuer: Issuer,
			token:  func() (string, error) { return e.Token(Claims{}) },
			want: map[string]any{
				"aud": "sigstore", "sub": "repo:acme/platform:ref:refs/heads/main",
				"job_workflow_ref": "acme/platform/.github/workflows/cd.yaml@refs/heads/main",
			},
		},
		"workflow of an enterprise": {
			issuer: Issuer + "/acme-corp",
			token:  func() (string, error) { return e.Token(Claims{Enterprise: "acme-corp"}) },
			want:   map[string]any{"repository": "acme/platform"},
		},
		"person": {
			issuer: EmailIssuer,
			token:  func() (string, error) { return e.EmailToken("ann@acme.test") },
			want:   map[string]any{"aud": "sigstore", "email": "ann@acme.test", "email_verified": true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token, err := test.token()
			if err != nil {
				t.Fatal(err)
			}
			claims, err := verify(c, test.issuer, token)
			if err != nil {
				t.Fatal(err)
			}
			test.want["iss"] = test.issuer
			for name, want := range test.want {
				if claims[name] != want {
					t.Errorf("%s: got %v, want %v", name, claims[name], want)
				}
			}
			now := float64(time.Now().Unix())
			if nbf, exp := claims["nbf"].(float64), claims["exp"].(float64); nbf > now || exp <= now {
				t.Errorf("valid from %.0f to %.0f, now is %.0f", nbf, exp, now)
			}
		})
	}
}

func TestTokenOfAnother(t *testing.T) {
	t.Parallel()
	e, other := start(t), start(t)
	c := client(t, e, e.CAFile())
	theirs, err := other.Token(Claims{})
	if err != nil {
		t.Fatal(err)
	}
	persons, err := e.EmailToken("ann@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := e.Token(Claims{})
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(ours, ".")
	changed, err := other.Token(Claims{Repository: "evil/platform"})
	if err != nil {
		t.Fatal(err)
	}
	parts[1] = strings.Split(changed, ".")[1]
	for name, token := range map[string]string{
		"of another endpoint": theirs, "of the other issuer": persons, "with other claims": strings.Join(parts, "."),
	} {
		if _, err := verify(c, Issuer, token); err == nil {
			t.Errorf("a token %s was accepted", name)
		}
	}
}

func TestProxyRefuses(t *testing.T) {
	t.Parallel()
	e := start(t)
	c := client(t, e, e.CAFile())
	for _, url := range []string{
		"https://github.com/", "https://" + host + ":8443/.well-known/jwks", "https://127.0.0.1/",
		"http://" + host + "/.well-known/jwks", "http://github.com" + requestPath,
	} {
		var into any
		if err := getJSON(c, url, &into); err == nil || !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("%s: got %v, want it forbidden", url, err)
		}
	}
	var into any
	if err := getJSON(c, Issuer+"/elsewhere", &into); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a path that there is not: got %v", err)
	}
	request, err := http.NewRequest(http.MethodGet, Issuer+keysPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "evil.example"
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another host in the request: got %s", response.Status)
	}
}

func TestAuthority(t *testing.T) {
	t.Parallel()
	e, other := start(t), start(t)
	var into any
	err := getJSON(client(t, e, other.CAFile()), Issuer+keysPath, &into)
	if unknown := (x509.UnknownAuthorityError{}); !errors.As(err, &unknown) {
		t.Errorf("trust another endpoint's authority: got %v, want an unknown authority", err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	e := start(t)
	c := client(t, e, e.CAFile())
	var into any
	if err := getJSON(c, Issuer+keysPath, &into); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// The connection that the client keeps is closed too.
	if err := getJSON(c, Issuer+keysPath, &into); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the end: got %v, want connection refused", err)
	}
}

func TestEmailTokenRefuses(t *testing.T) {
	t.Parallel()
	e := start(t)
	for _, email := range []string{"", "ann", "@acme.test", "ann@"} {
		if _, err := e.EmailToken(email); err == nil {
			t.Errorf("a token for the address %q", email)
		}
	}
}

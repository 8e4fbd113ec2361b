package githubtoken

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"flux-verify-gate/test/stack/internal/pki"
)

const (
	host      = "token.actions.githubusercontent.com"
	emailHost = "accounts.stack.test"

	// Issuer is the issuer of Token's tokens: GitHub's.
	Issuer = "https://" + host
	// EmailIssuer is the issuer of EmailToken's tokens.
	EmailIssuer = "https://" + emailHost
)

// Endpoint is the running imitation. Its methods may be called from several
// goroutines.
type Endpoint struct {
	caFile  string
	listen  net.Listener
	tunnels *handoff
	issuers map[string]*issuer // by host
	servers []*http.Server
	serving sync.WaitGroup

	mu   sync.Mutex
	jobs map[string]Claims // by the bearer token
}

// Start begins to serve, and writes the certificate of the issuers' authority
// into dir, which it makes if need be. The context bounds the start only; the
// caller must call Close.
func Start(ctx context.Context, dir string) (*Endpoint, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot make the token endpoint's directory absolute: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the token endpoint's directory: %w", err)
	}
	e := &Endpoint{
		caFile:  filepath.Join(dir, "issuers-ca.pem"),
		issuers: map[string]*issuer{},
		jobs:    map[string]Claims{},
	}
	for _, name := range []string{host, emailHost} {
		if e.issuers[name], err = newIssuer(name); err != nil {
			return nil, err
		}
	}
	certificate, err := e.makeCertificate()
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	if e.listen, err = config.Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("cannot listen for the token endpoint: %w", err)
	}
	e.tunnels = newHandoff(e.listen.Addr())
	e.serve(http.HandlerFunc(e.servePlain), e.listen)
	e.serve(http.HandlerFunc(e.serveIssuer), tls.NewListener(e.tunnels, &tls.Config{
		Certificates: []tls.Certificate{certificate},
		NextProtos:   []string{"http/1.1"},
		MinVersion:   tls.VersionTLS12,
	}))
	return e, nil
}

// makeCertificate makes the authority, writes its certificate, and returns the
// issuers'.
func (e *Endpoint) makeCertificate() (tls.Certificate, error) {
	authority, err := pki.Issue(x509.Certificate{
		Subject:               pkix.Name{CommonName: "issuers of identity tokens"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := os.WriteFile(e.caFile, authority.CertificatePEM(), 0o644); err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot write the authority of the token endpoint: %w", err)
	}
	server, err := pki.Issue(x509.Certificate{
		Subject:     pkix.Name{CommonName: host},
		DNSNames:    []string{host, emailHost},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{server.Certificate.Raw}, PrivateKey: server.Key}, nil
}

func (e *Endpoint) serve(handler http.Handler, listener net.Listener) {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		// A client that does not trust the authority is the client's affair.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	e.servers = append(e.servers, server)
	e.serving.Go(func() {
		// It ends when Close closes the server.
		_ = server.Serve(listener)
	})
}

// servePlain serves the proxy and the requests of jobs.
func (e *Endpoint) servePlain(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		e.serveConnect(w, r)
	case r.Method == http.MethodGet && r.URL.Host == "" && r.URL.Path == requestPath:
		e.serveRequest(w, r)
	default:
		http.Error(w, "this proxy serves CONNECT only", http.StatusForbidden)
	}
}

// serveIssuer serves the issuer that the request names.
func (e *Endpoint) serveIssuer(w http.ResponseWriter, r *http.Request) {
	if issuer, ok := e.issuers[r.Host]; ok {
		issuer.ServeHTTP(w, r)
		return
	}
	http.Error(w, "no issuer has this name", http.StatusMisdirectedRequest)
}

// ProxyURL returns the URL of the proxy, http://127.0.0.1:port: a program's
// HTTPS_PROXY.
func (e *Endpoint) ProxyURL() string { return "http://" + e.listen.Addr().String() }

// CAFile returns the path of the certificate, in PEM, of the authority that the
// issuers' certificates are from: a program's SSL_CERT_FILE.
func (e *Endpoint) CAFile() string { return e.caFile }

// Token returns an identity token of GitHub's issuer, signed, valid for ten
// minutes. It is an error if the claims do not have GitHub's form.
func (e *Endpoint) Token(claims Claims) (string, error) {
	claims, err := claims.complete()
	if err != nil {
		return "", fmt.Errorf("no workflow has these claims: %w", err)
	}
	github := e.issuers[host]
	return github.token(github.url(claims.Enterprise), claims.payload())
}

// EmailToken returns an identity token of EmailIssuer, signed, valid for ten
// minutes, for a person whose address is email and has been verified.
func (e *Endpoint) EmailToken(email string) (string, error) {
	if name, domain, ok := strings.Cut(email, "@"); !ok || name == "" || domain == "" {
		return "", fmt.Errorf("expected an e-mail address, found %q", email)
	}
	return e.issuers[emailHost].token(EmailIssuer, map[string]any{
		"aud": DefaultAudience, "sub": "person:" + email, "email": email, "email_verified": true,
	})
}

// Close stops serving and returns when nothing is served any more. A second
// call does nothing.
func (e *Endpoint) Close() error {
	var err error
	for _, server := range e.servers {
		err = errors.Join(err, server.Close())
	}
	e.serving.Wait()
	return err
}

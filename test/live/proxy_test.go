package live

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"flux-verify-gate/test/stack/cluster"
)

// proxy stands before the API server and lets a test act between two reads of
// the gate. The answers are the API server's own.
type proxy struct {
	server *httptest.Server
	// before is called with every read of the object, before it is passed on,
	// with its number from 1. False answers 503 instead.
	before func(read int) bool

	mu    sync.Mutex
	reads int
}

// between puts a proxy before the place's API server and gives the inputs that
// lead through it.
func between(p *place, before func(read int) bool) map[string]string {
	p.t.Helper()
	x := &proxy{before: before}
	target, err := url.Parse(p.cluster.Server())
	if err != nil {
		p.t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(p.cluster.CA())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1,
	}
	x.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+object) && !x.let() {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	p.t.Cleanup(func() {
		x.server.CloseClientConnections()
		x.server.Close()
		transport.CloseIdleConnections()
	})
	config := p.cluster.Kubeconfig(p.credentials)
	config.Clusters[cluster.ContextName].Server = x.server.URL
	config.Clusters[cluster.ContextName].CertificateAuthorityData =
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: x.server.Certificate().Raw})
	path := filepath.Join(p.t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(path, config); err != nil {
		p.t.Fatal(err)
	}
	return map[string]string{"kubeconfig": path}
}

func (x *proxy) let() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reads++
	return x.before(x.reads)
}

// at acts before the n-th read.
func at(n int, act func()) func(int) bool {
	return func(read int) bool {
		if read == n {
			act()
		}
		return true
	}
}

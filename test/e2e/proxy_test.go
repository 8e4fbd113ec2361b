package e2e

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// behind puts a proxy before the scenario's registry, and names the proxy in the
// source. Pushing and signing goes past it. The handler is given every request,
// and the registry to pass it on to.
func (s *stage) behind(handle func(w http.ResponseWriter, r *http.Request, registry http.Handler)) {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.check(err)
	to := &url.URL{Scheme: "http", Host: s.registry.Address()}
	registry := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		ErrorLog: log.New(io.Discard, "", 0), // of clients that are gone
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, registry) }),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // until Close
	}()
	s.t.Cleanup(func() {
		s.mustNot("close the registry's proxy", server.Close())
		<-served
	})
	s.front = listener.Addr().String()
	s.desired.Spec.URL = s.url()
}

// behindTLS puts a TLS server before the scenario's registry. Pushing and
// signing go on without; the source and the gate know its authority.
func (s *stage) behindTLS() {
	s.t.Helper()
	server := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.registry.Address()}))
	s.t.Cleanup(server.Close)
	ca := filepath.Join(s.t.TempDir(), "ca.crt")
	s.check(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	s.secret("registry-ca", map[string]string{"ca.crt": ca})
	s.front = server.Listener.Addr().String()
	s.desired.Spec.URL = s.url()
	s.desired.Spec.Insecure = false
	s.desired.Spec.CertSecretRef = &meta.LocalObjectReference{Name: "registry-ca"}
	s.also(in{"registry-ca": "@" + ca})
}

// asksForSignatures says whether a request is for what was signed about an
// artifact: its referrers, or a tag that is made of its digest.
func asksForSignatures(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/referrers/") || strings.Contains(r.URL.Path, "/manifests/sha256-")
}

// faces are what a registry shows to one side only, by digest.
type faces struct {
	mu   sync.Mutex
	only map[string]bool // true: only the controller
}

// showTwoFaces puts a proxy before the registry that lists some referrers to the
// controller only, and some to everybody else only.
func (s *stage) showTwoFaces() *faces {
	s.t.Helper()
	s.twoFaced = true
	f := &faces{only: map[string]bool{}}
	s.behind(func(w http.ResponseWriter, r *http.Request, registry http.Handler) {
		if !strings.Contains(r.URL.Path, "/referrers/") {
			registry.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		registry.ServeHTTP(answer, r)
		var index v1.IndexManifest
		if answer.Code != http.StatusOK || json.Unmarshal(answer.Body.Bytes(), &index) != nil {
			http.Error(w, answer.Body.String(), answer.Code)
			return
		}
		index.Manifests = slices.DeleteFunc(index.Manifests, func(d v1.Descriptor) bool { return f.hides(d.Digest.String(), fromController(r)) })
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		_ = json.NewEncoder(w).Encode(index) // an error means that the client is gone
	})
	return f
}

func (f *faces) hides(digest string, controller bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	only, listed := f.only[digest]
	return listed && only != controller
}

func (f *faces) controllerOnly(digests ...string) { f.show(true, digests) }

func (f *faces) gateOnly(digests ...string) { f.show(false, digests) }

// show says to whom referrers are listed that nothing was said about before.
func (f *faces) show(controller bool, digests []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, digest := range digests {
		if _, said := f.only[digest]; !said {
			f.only[digest] = controller
		}
	}
}

// fromController says whether source-controller sent a request, by the name that
// it gives itself.
func fromController(r *http.Request) bool { return strings.HasPrefix(r.UserAgent(), "flux/") }

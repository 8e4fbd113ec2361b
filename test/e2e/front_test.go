package e2e

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
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

// asksForSignatures says whether a request is for what was signed about an
// artifact: its referrers, or a tag that is made of its digest.
func asksForSignatures(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/referrers/") || strings.Contains(r.URL.Path, "/manifests/sha256-")
}

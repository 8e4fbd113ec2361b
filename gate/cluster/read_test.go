package cluster

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"flux-verify-gate/gate"
)

func TestReadGivesTheObjectByOneRequest(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	client := server.client()
	seen, err := client.Read(t.Context(), "flux-system", "app")
	if err != nil {
		t.Fatal(err)
	}
	if seen.Missing || seen.Source.Object.Name != "app" || seen.Source.Object.APIVersion != group+"/v1" {
		t.Errorf("got %+v", seen)
	}
	if got, want := client.Counts(), (Counts{Reads: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if client.Server != server.URL || client.Context != "prod" {
		t.Errorf("got server %q, context %q", client.Server, client.Context)
	}
}

func TestReadSendsTheCredential(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	var got http.Header
	server.intercept = func(_ http.ResponseWriter, r *http.Request) bool { got = r.Header; return false }
	if _, err := server.client().Read(t.Context(), "flux-system", "app"); err != nil {
		t.Fatal(err)
	}
	if got.Get("Authorization") != "Bearer secret-token" || got.Get("User-Agent") != "test/1" || got.Get("Accept") != "application/json" {
		t.Errorf("got %v", got)
	}
}

func TestReadFallsBackToTheOlderVersionOnce(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.served = map[string]bool{"v1beta2": true}
	server.change("ADDED", nil)
	client := server.client()
	for range 2 {
		seen, err := client.Read(t.Context(), "flux-system", "app")
		if err != nil || seen.Source.Object.APIVersion != group+"/v1beta2" {
			t.Fatalf("got %+v, %v", seen, err)
		}
	}
	if got, want := client.Counts(), (Counts{Reads: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The version can change while the gate waits, when Flux is upgraded.
func TestReadFollowsTheVersion(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	client := server.client()
	for _, version := range []string{"v1", "v1beta2", "v1beta2", "v1"} {
		server.do(func() { server.served = map[string]bool{version: true} })
		seen, err := client.Read(t.Context(), "flux-system", "app")
		if err != nil || seen.Source.Object.APIVersion != group+"/"+version {
			t.Fatalf("%s: got %+v, %v", version, seen.Source.Object.TypeMeta, err)
		}
	}
	if got, want := client.Counts(), (Counts{Reads: 6}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReadMissing(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		server := newAPIServer(t)
		server.served = map[string]bool{version: true}
		seen, err := server.client().Read(t.Context(), "flux-system", "app")
		if err != nil || !seen.Missing {
			t.Errorf("%s: got %+v, %v, want it missing", version, seen, err)
		}
	}
}

// Every answer that is not the object must be told apart, and none of them may
// read as a missing object.
func TestReadFailures(t *testing.T) {
	t.Parallel()
	page := func(code int, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(text))
			return true
		}
	}
	status := func(code int, reason, message string, details map[string]any) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			writeStatus(w, code, reason, message, details)
			return true
		}
	}
	object := func(text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(text))
			return true
		}
	}
	for name, test := range map[string]struct {
		setup     func(*apiServer)
		intercept func(http.ResponseWriter, *http.Request) bool
		code      gate.Code
		transient bool
		want      []string
		role      bool
	}{
		"no Flux": {setup: func(s *apiServer) { s.flux = false }, code: gate.APIMissing, transient: true,
			want: []string{"no source.toolkit.fluxcd.io among the API groups (1 in all)"}},
		"Flux without the kind": {setup: func(s *apiServer) { s.served = map[string]bool{"v1beta1": true} }, code: gate.APIMissing, transient: true,
			want: []string{"in version v1beta1, without ocirepositories"}},
		"a proxy's page with 404": {intercept: page(404, "<h1>Not Found</h1>"), code: gate.Unreachable,
			want: []string{"not a Kubernetes API server", "text/html", "<h1>Not Found</h1>"}},
		"a login page":           {intercept: page(200, "<form>"), code: gate.Unreachable, want: []string{"not a Kubernetes API server", "<form>"}},
		"an empty 200":           {intercept: page(200, ""), code: gate.Unreachable, want: []string{"not a Kubernetes API server"}},
		"another service's JSON": {intercept: object(`{"ok":true}`), code: gate.Unreachable, want: []string{"not a Kubernetes API server"}},
		"another service's 404": {intercept: func(w http.ResponseWriter, _ *http.Request) bool {
			writeJSON(w, 404, map[string]any{"error": "not found"})
			return true
		}, code: gate.Unreachable, want: []string{"not a Kubernetes API server"}},
		"a 404 that names another object": {intercept: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/apis" {
				return false
			}
			writeStatus(w, 404, "NotFound", "x", map[string]any{"name": "other", "group": group, "kind": resource})
			return true
		}, code: gate.APIMissing, transient: true},
		"a 404 for the resource": {intercept: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/apis" {
				return false
			}
			writeStatus(w, 404, "NotFound", "the server could not find the requested resource", nil)
			return true
		}, code: gate.APIMissing, transient: true},
		"the list of APIs not shown": {setup: func(s *apiServer) { s.flux = false }, intercept: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/apis" {
				writeStatus(w, 403, "Forbidden", `forbidden: User "x" cannot get path "/apis"`, nil)
				return true
			}
			return false
		}, code: gate.APIMissing, transient: true},
		"a redirect": {intercept: func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "https://login.example.com/", http.StatusFound)
			return true
		}, code: gate.Unreachable, want: []string{`"https://login.example.com/"`}},
		"401": {intercept: status(401, "Unauthorized", "Unauthorized", nil), code: gate.AccessDenied,
			want: []string{"does not accept the credential", "401 Unauthorized", "the token of"}},
		"401 of a proxy": {intercept: page(401, "who?"), code: gate.AccessDenied, want: []string{"does not accept"}},
		"403": {intercept: status(403, "Forbidden", forbidden("get"), nil), code: gate.AccessDenied, role: true,
			want: []string{`"system:serviceaccount:flux-system:gate" may not get ocirepositories.source.toolkit.fluxcd.io "app" in the namespace "flux-system"`,
				"--serviceaccount 'flux-system:gate'", "--resource-name app"}},
		"403 without a user": {intercept: status(403, "Forbidden", "no", nil), code: gate.AccessDenied, role: true,
			want: []string{"the credential may not get", "--user 'NAME'"}},
		"403 of a hostile user": {intercept: status(403, "Forbidden", `User "x' \n::set" cannot get`, nil), code: gate.AccessDenied, role: true,
			want: []string{"--user 'NAME'"}},
		"403 of a proxy": {intercept: page(403, "blocked"), code: gate.AccessDenied, want: []string{"something before the API server", "blocked"}},
		"429": {intercept: func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "7")
			writeStatus(w, 429, "TooManyRequests", "slow down", nil)
			return true
		}, code: gate.NoAnswer, transient: true, want: []string{"429", "slow down"}},
		"429 in the details": {intercept: status(429, "TooManyRequests", "slow down", map[string]any{"retryAfterSeconds": 7}),
			code: gate.NoAnswer, transient: true},
		"500":            {intercept: status(500, "InternalError", "etcd", nil), code: gate.NoAnswer, transient: true, want: []string{"500", "etcd"}},
		"502 of a proxy": {intercept: page(502, "bad gateway"), code: gate.NoAnswer, transient: true, want: []string{"502"}},
		"503":            {intercept: status(503, "ServiceUnavailable", "starting", nil), code: gate.NoAnswer, transient: true},
		"400":            {intercept: status(400, "BadRequest", "what?", nil), code: gate.NoAnswer, want: []string{"malformed", "what?"}},
		"another object": {intercept: object(source("flux-system", "other")), code: gate.NoAnswer, want: []string{`another object, "flux-system/other"`}},
		"another kind":   {intercept: object(kustomization), code: gate.NoAnswer, want: []string{"Kustomization"}},
		"a wrong type":   {intercept: object(strings.Replace(source("flux-system", "app"), `"oci://x"`, `1`, 1)), code: gate.NoAnswer, want: []string{"spec.url: expected a string"}},
		"a field twice":  {intercept: object(strings.Replace(source("flux-system", "app"), `"spec":`, `"spec":{},"spec":`, 1)), code: gate.Unreachable},
		"a broken connection": {intercept: func(w http.ResponseWriter, _ *http.Request) bool { panic(http.ErrAbortHandler) },
			code: gate.NoAnswer, transient: true, want: []string{"connection to the API server broke"}},
		"half an answer": {intercept: func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(`{"kind":`))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, code: gate.NoAnswer, transient: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newAPIServer(t)
			server.Config.ErrorLog = nil
			server.change("ADDED", nil)
			if test.setup != nil {
				server.do(func() { test.setup(server) })
			}
			server.intercept = test.intercept
			seen, err := server.client().Read(t.Context(), "flux-system", "app")
			failure, ok := asError(err)
			if !ok {
				t.Fatalf("got %+v, %v, want an *Error", seen, err)
			}
			if failure.Failure.Code != test.code || failure.Failure.Transient != test.transient {
				t.Errorf("got %s (transient %t), want %s (%t): %v", failure.Failure.Code, failure.Failure.Transient, test.code, test.transient, err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
			if (failure.Role != "") != test.role {
				t.Errorf("got the Role %q", failure.Role)
			}
			if strings.HasPrefix(name, "429") && failure.RetryAfter != 7*time.Second {
				t.Errorf("got Retry-After %s, want 7s", failure.RetryAfter)
			}
			if strings.Contains(err.Error(), "secret-token") {
				t.Errorf("the credential stands in %q", err)
			}
			if failure.Failure.Title == "" || failure.Failure.Expected == "" || failure.Failure.Found == "" || failure.Failure.Remedy == "" {
				t.Errorf("got an incomplete failure %+v", failure.Failure)
			}
		})
	}
}

// The kubeconfig's client certificate reaches the server: one that demands it
// lets the request through.
func TestReadSendsTheClientCertificate(t *testing.T) {
	t.Parallel()
	var got string
	strict := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.TLS.PeerCertificates[0].Subject.CommonName
		_, _ = w.Write([]byte(source("flux-system", "app")))
	}))
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	strict.StartTLS()
	t.Cleanup(strict.Close)
	certificate, key := selfSigned(t, time.Now().Add(time.Hour))
	encode := base64.StdEncoding.EncodeToString
	user := `{"client-certificate-data":"` + encode(certificate) + `","client-key-data":"` + encode(key) + `"}`
	client, err := Connect(Options{KubeconfigData: kubeconfig(strict.URL, authority(strict), user)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(t.Context(), "flux-system", "app"); err != nil || got != "test" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestReadDoesNotFollowARedirectWithTheCredential(t *testing.T) {
	t.Parallel()
	thief := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer thief.Close()
	server := newAPIServer(t)
	server.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		return true
	}
	if _, err := server.client().Read(t.Context(), "flux-system", "app"); err == nil {
		t.Error("got no error")
	}
}

func TestReadRefusesNames(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	client := server.client()
	for _, names := range [][2]string{
		{"", "app"}, {"flux-system", ""}, {"flux.system", "app"}, {"flux-system", "a/b"},
		{"..", "app"}, {"flux-system", ".."}, {"flux-system", "App"}, {"flux-system", "a?watch=true"}, {"flux-system", "a\n"},
	} {
		_, err := client.Read(t.Context(), names[0], names[1])
		failure, ok := asError(err)
		if !ok || failure.Failure.Code != gate.BadInput {
			t.Errorf("%q: got %v, want a bad-input", names, err)
		}
	}
	if len(server.requests) != 0 {
		t.Errorf("got the requests %q", server.requests)
	}
}

// connectTo makes a client for a server that is not the one of newAPIServer.
func connectTo(t *testing.T, server, ca string, change func(*Options)) *Client {
	t.Helper()
	o := Options{KubeconfigData: kubeconfig(server, ca, `{"token":"t"}`)}
	if change != nil {
		change(&o)
	}
	client, err := Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	client.pace = quick
	return client
}

func authority(server *httptest.Server) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func TestReadNetworkFailures(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	ca := authority(server.Server)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	closed := httptest.NewTLSServer(http.NotFoundHandler())
	closedURL := closed.URL
	closed.Close()
	strict := httptest.NewUnstartedServer(http.NotFoundHandler())
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	strict.StartTLS()
	t.Cleanup(strict.Close)
	expired, expiredCA := expiredServer(t)

	for name, test := range map[string]struct {
		client    *Client
		transient bool
		want      []string
	}{
		"another authority": {connectTo(t, server.URL, expiredCA, nil), false, []string{"authority that is not trusted"}},
		"another name": {connectTo(t, server.URL, ca, func(o *Options) { o.TLSServerName = "kubernetes" }), false,
			[]string{"for another name", "tls-server-name", "example.com", "127.0.0.1"}},
		"the right name by tls-server-name": {connectTo(t, "https://localhost:"+port, ca, func(o *Options) { o.TLSServerName = "example.com" }), false, nil},
		"expired":                           {connectTo(t, expired, expiredCA, nil), false, []string{"expired"}},
		"no TLS":                            {connectTo(t, strings.Replace(plain.URL, "http://", "https://", 1), ca, nil), false, []string{"does not speak TLS"}},
		"wants a client certificate":        {connectTo(t, strict.URL, authority(strict), nil), false, []string{"TLS handshake", "client certificate"}},
		"loopback refused":                  {connectTo(t, closedURL, ca, nil), false, []string{"loopback", "docker network connect bridge", "tls-server-name: kind-control-plane"}},
		"no such host":                      {connectTo(t, "https://api.invalid:6443", ca, nil), false, []string{"cannot be resolved", "api.invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := test.client.Read(t.Context(), "flux-system", "app")
			if test.want == nil {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			failure, ok := asError(err)
			if !ok || failure.Failure.Code != gate.Unreachable || failure.Failure.Transient != test.transient {
				t.Fatalf("got %v, want unreachable (transient %t)", err, test.transient)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
}

// Once the API server has answered, trouble on the way to it is a passing thing.
func TestReadTroubleAfterAnAnswerIsPassing(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	client := server.client()
	if _, err := client.Read(t.Context(), "flux-system", "app"); err != nil {
		t.Fatal(err)
	}
	server.Close()
	_, err := client.Read(t.Context(), "flux-system", "app")
	if failure, ok := asError(err); !ok || !failure.Failure.Transient {
		t.Errorf("got %v, want a passing failure", err)
	}
}

func TestReadTimeouts(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.intercept = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	client := server.client()
	client.pace.request = time.Millisecond
	_, err := client.Read(t.Context(), "flux-system", "app")
	failure, ok := asError(err)
	if !ok || !failure.Failure.Transient || (failure.Failure.Code != gate.NoAnswer && failure.Failure.Code != gate.Unreachable) {
		t.Errorf("own limit: got %v", err)
	}
	client.pace.request = time.Minute
	// A first exchange, so that the connection stands.
	server.do(func() { server.intercept = nil })
	if _, err := client.Read(t.Context(), "flux-system", "app"); err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{})
	server.do(func() {
		server.intercept = func(_ http.ResponseWriter, r *http.Request) bool { close(reached); <-r.Context().Done(); return true }
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	_, err = client.Read(ctx, "flux-system", "app")
	if failure, ok := asError(err); !ok || failure.Failure.Code != gate.Cancelled {
		t.Errorf("cancelled: got %v", err)
	}
	server.do(func() {
		server.intercept = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	})
	client.pace.request = 500 * time.Millisecond
	_, err = client.Read(t.Context(), "flux-system", "app")
	if failure, ok := asError(err); !ok || failure.Failure.Code != gate.NoAnswer || !failure.Failure.Transient {
		t.Errorf("no answer: got %v", err)
	}
	deadline, cancelDeadline := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelDeadline()
	_, err = client.Read(deadline, "flux-system", "app")
	if failure, ok := asError(err); !ok || (failure.Failure.Code != gate.NoAnswer && failure.Failure.Code != gate.Unreachable) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: got %v", err)
	}
}

func TestReadRetrying(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	tries := 0
	server.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
		if tries++; tries > 3 {
			return false
		}
		writeStatus(w, 503, "ServiceUnavailable", "starting", nil)
		return true
	}
	var told []*Error
	seen, err := server.client().ReadRetrying(t.Context(), "flux-system", "app", func(e *Error) { told = append(told, e) })
	if err != nil || seen.Missing || len(told) != 3 {
		t.Errorf("got %+v, %v after %d failures, want the object after 3", seen, err, len(told))
	}
}

func TestReadRetryingEndsWithAFinalFailure(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
		writeStatus(w, 403, "Forbidden", forbidden("get"), nil)
		return true
	}
	client := server.client()
	_, err := client.ReadRetrying(t.Context(), "flux-system", "app", nil)
	if failure, ok := asError(err); !ok || failure.Failure.Code != gate.AccessDenied || client.Counts().Reads != 1 {
		t.Errorf("got %v after %+v", err, client.Counts())
	}
}

func TestReadRetryingEndsWithTheDeadline(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "3600")
		writeStatus(w, 503, "ServiceUnavailable", "starting", nil)
		return true
	}
	ctx, cancel := context.WithCancel(t.Context())
	client := server.client()
	_, err := client.ReadRetrying(ctx, "flux-system", "app", func(*Error) { cancel() })
	if failure, ok := asError(err); !ok || failure.Failure.Code != gate.NoAnswer || client.Counts().Reads != 1 {
		t.Errorf("got %v after %+v, want Retry-After honoured to the end", err, client.Counts())
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "-5": 0, "x": 0, "99999999999999999999": 0,
		"Thu, 01 Jan 2026 00:00:30 GMT": 30 * time.Second,
		"Wed, 31 Dec 2025 00:00:30 GMT": 0,
	} {
		header := http.Header{}
		header.Set("Retry-After", value)
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}

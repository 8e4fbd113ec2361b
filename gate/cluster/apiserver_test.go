package cluster

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// apiServer answers as kube-apiserver 1.36 does for one OCIRepository: get,
// watch by metadata.name, merge patch, the list of APIs. Tests change its
// fields under its lock to make it misbehave.
type apiServer struct {
	*httptest.Server
	t testing.TB

	mu sync.Mutex
	// served are the versions of the CRD; flux says that the group is there.
	served map[string]bool
	flux   bool
	// object is nil if it does not exist.
	object   map[string]any
	revision int
	history  []watchEvent
	// oldest is the first revision that a watch can still start from.
	oldest int
	// intercept answers instead; false leaves the request to the server.
	intercept func(w http.ResponseWriter, r *http.Request) bool
	requests  []string
	wake      chan struct{}
}

type watchEvent struct {
	revision int
	kind     string
	object   map[string]any
}

func newAPIServer(t testing.TB) *apiServer {
	t.Helper()
	s := &apiServer{
		t: t, served: map[string]bool{"v1": true}, flux: true,
		revision: 100, wake: make(chan struct{}),
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// change applies one write and tells the watches.
func (s *apiServer) change(kind string, edit func(object map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	object := maps.Clone(s.object)
	if kind == "ADDED" {
		object = map[string]any{
			"apiVersion": group + "/v1", "kind": "OCIRepository",
			"spec": map[string]any{"url": "oci://x", "interval": "1m"},
		}
	}
	metadata := map[string]any{"namespace": "flux-system", "name": "app", "uid": "u1", "resourceVersion": strconv.Itoa(s.revision)}
	if old, ok := object["metadata"].(map[string]any); ok {
		maps.Copy(metadata, old)
		metadata["resourceVersion"] = strconv.Itoa(s.revision)
	}
	object["metadata"] = metadata
	if edit != nil {
		edit(object)
	}
	s.object = object
	if kind == "DELETED" {
		s.object = nil
	}
	s.history = append(s.history, watchEvent{s.revision, kind, object})
	close(s.wake)
	s.wake = make(chan struct{})
}

func (s *apiServer) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *apiServer) count(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, request := range s.requests {
		if strings.HasPrefix(request, verb+" ") {
			n++
		}
	}
	return n
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	verb := strings.ToLower(r.Method)
	if r.URL.Query().Get("watch") == "true" {
		verb = "watch"
	}
	s.mu.Lock()
	s.requests = append(s.requests, verb+" "+r.URL.String())
	intercept := s.intercept
	s.mu.Unlock()
	if intercept != nil && intercept(w, r) {
		return
	}
	if r.URL.Path == "/apis" {
		s.serveGroups(w)
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	s.mu.Lock()
	known := len(parts) >= 6 && s.flux && s.served[parts[2]]
	s.mu.Unlock()
	if !known {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	if verb == "watch" {
		s.serveWatch(w, r)
		return
	}
	s.mu.Lock()
	object := maps.Clone(s.object)
	s.mu.Unlock()
	if object == nil || parts[6] != "app" {
		writeStatus(w, http.StatusNotFound, "NotFound", fmt.Sprintf("ocirepositories.source.toolkit.fluxcd.io %q not found", parts[6]),
			map[string]any{"name": parts[6], "group": group, "kind": resource})
		return
	}
	if verb == "patch" {
		var patch struct {
			Metadata struct {
				Annotations map[string]any `json:"annotations"`
			} `json:"metadata"`
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil || r.Header.Get("Content-Type") != "application/merge-patch+json" {
			writeStatus(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType", "no merge patch", nil)
			return
		}
		s.change("MODIFIED", func(o map[string]any) { o["metadata"].(map[string]any)["annotations"] = patch.Metadata.Annotations })
		s.do(func() { object = maps.Clone(s.object) })
	}
	object["apiVersion"] = group + "/" + parts[2]
	writeJSON(w, http.StatusOK, object)
}

func (s *apiServer) serveGroups(w http.ResponseWriter) {
	groups := []any{map[string]any{"name": "apps"}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flux {
		var list []any
		for version := range s.served {
			list = append(list, map[string]any{"version": version, "groupVersion": group + "/" + version})
		}
		groups = append(groups, map[string]any{"name": group, "versions": list})
	}
	writeJSON(w, http.StatusOK, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

func (s *apiServer) serveWatch(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("fieldSelector") != "metadata.name=app" {
		writeStatus(w, http.StatusForbidden, "Forbidden", forbidden("watch"), nil)
		return
	}
	flusher := w.(http.Flusher)
	w.Header().Set("Content-Type", "application/json")
	send := func(kind string, object any) {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
		flusher.Flush()
	}
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	s.mu.Lock()
	if from != 0 && from < s.oldest {
		s.mu.Unlock()
		send("ERROR", map[string]any{"kind": "Status", "apiVersion": "v1", "code": 410, "reason": "Expired", "message": "too old resource version"})
		return
	}
	if from == 0 {
		from = s.revision
		if s.object != nil {
			send("ADDED", s.object)
		}
	}
	flusher.Flush()
	s.mu.Unlock()
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	end := time.After(time.Duration(seconds) * time.Second)
	for {
		s.mu.Lock()
		var events []watchEvent
		for _, event := range s.history {
			if event.revision > from {
				events = append(events, event)
				from = event.revision
			}
		}
		wake := s.wake
		s.mu.Unlock()
		for _, event := range events {
			send(event.kind, event.object)
		}
		select {
		case <-wake:
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func forbidden(verb string) string {
	return fmt.Sprintf(`ocirepositories.source.toolkit.fluxcd.io "app" is forbidden: User "system:serviceaccount:flux-system:gate" cannot %s resource "ocirepositories" in API group "source.toolkit.fluxcd.io" in the namespace "flux-system"`, verb)
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func writeStatus(w http.ResponseWriter, code int, reason, message string, details map[string]any) {
	writeJSON(w, code, map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
		"message": message, "reason": reason, "details": details, "code": code,
	})
}

// kubeconfig for the server, with a token.
func (s *apiServer) kubeconfig() string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return kubeconfig(s.URL, base64.StdEncoding.EncodeToString(ca), `{"token":"secret-token"}`)
}

func kubeconfig(server, ca, user string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"prod",
"contexts":[{"name":"prod","context":{"cluster":"c","user":"u"}},{"name":"staging","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],
"users":[{"name":"u","user":%s}]}`, server, ca, user)
}

// quick is a pace for tests: what waits is waited for by events, not by time.
var quick = pace{
	request:      10 * time.Second,
	watch:        time.Minute,
	slack:        time.Second,
	poll:         10 * time.Millisecond,
	backoffFirst: time.Millisecond,
	backoffMost:  10 * time.Millisecond,
	denied:       time.Minute,
	steady:       time.Minute,
}

func (s *apiServer) client() *Client {
	s.t.Helper()
	client, err := Connect(Options{KubeconfigData: s.kubeconfig(), UserAgent: "test/1"})
	if err != nil {
		s.t.Fatal(err)
	}
	client.pace = quick
	s.t.Cleanup(client.http.CloseIdleConnections)
	return client
}

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"flux-verify-gate/gate"
)

// next receives one event; the test's own time limit is the only clock.
func next(t *testing.T, events <-chan Event) Event {
	t.Helper()
	select {
	case event, ok := <-events:
		if !ok {
			t.Fatal("the watch ended")
		}
		return event
	case <-t.Context().Done():
		t.Fatal("no event")
	}
	return Event{}
}

// nextSeen receives events up to the next observation.
func nextSeen(t *testing.T, events <-chan Event) Observation {
	t.Helper()
	for {
		if event := next(t, events); event.Seen != nil {
			return *event.Seen
		}
	}
}

func interval(d string) func(map[string]any) {
	return func(object map[string]any) { object["spec"] = map[string]any{"url": "oci://x", "interval": d} }
}

func started(t *testing.T, server *apiServer) (*Client, <-chan Event, Observation) {
	t.Helper()
	client := server.client()
	seen, err := client.Read(t.Context(), "flux-system", "app")
	if err != nil {
		t.Fatal(err)
	}
	return client, client.Watch(t.Context(), "flux-system", "app", &seen), seen
}

func TestWatchTellsEveryChangeByOneRequest(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	client, events, _ := started(t, server)
	for i := range 20 {
		d := fmt.Sprintf("%dm0s", i+2)
		server.change("MODIFIED", interval(d))
		if got := nextSeen(t, events); got.Source.Object.Spec.Interval.Duration.String() != d {
			t.Fatalf("got %s, want %s", got.Source.Object.Spec.Interval.Duration, d)
		}
	}
	if got, want := client.Counts(), (Counts{Reads: 1, Watches: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if server.count("get")+server.count("watch") != 2 {
		t.Errorf("got the requests %q", server.requests)
	}
}

// What the request says is what the minimal Role allows.
func TestWatchAsksForTheOneName(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	_, events, seen := started(t, server)
	server.change("MODIFIED", nil)
	nextSeen(t, events)
	server.mu.Lock()
	defer server.mu.Unlock()
	got := server.requests[1]
	for _, want := range []string{
		"watch /apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/ocirepositories?",
		"fieldSelector=metadata.name%3Dapp", "resourceVersion=" + seen.resourceVersion(), "allowWatchBookmarks=true", "timeoutSeconds=60",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

func TestWatchTellsDeletionAndRecreation(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	_, events, _ := started(t, server)
	server.change("DELETED", nil)
	if got := nextSeen(t, events); !got.Missing {
		t.Fatalf("got %+v, want it missing", got)
	}
	server.change("ADDED", func(o map[string]any) { o["metadata"].(map[string]any)["uid"] = "u2" })
	if got := nextSeen(t, events); got.Missing || got.Source.Object.UID != "u2" {
		t.Errorf("got %+v, want another UID", got)
	}
}

func TestWatchWaitsForAnObjectThatIsMissing(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	_, events, seen := started(t, server)
	if !seen.Missing {
		t.Fatal("want it missing")
	}
	server.change("ADDED", nil)
	if got := nextSeen(t, events); got.Missing {
		t.Error("got it missing")
	}
}

func TestWatchBeginsWithARead(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	client := server.client()
	events := client.Watch(t.Context(), "flux-system", "app", nil)
	if got := nextSeen(t, events); got.Missing {
		t.Error("got it missing")
	}
}

// breakWatch makes the next watch fail in some way; later ones work.
func TestWatchResumes(t *testing.T) {
	t.Parallel()
	status := func(code int, reason string) map[string]any {
		return map[string]any{"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": "no"}
	}
	for name, broken := range map[string]func(w http.ResponseWriter){
		"closed at once":    func(http.ResponseWriter) {},
		"connection broken": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"410 as status":     func(w http.ResponseWriter) { writeJSON(w, 410, status(410, "Expired")) },
		"410 as event": func(w http.ResponseWriter) {
			writeJSON(w, 200, map[string]any{"type": "ERROR", "object": status(410, "Expired")})
		},
		"too large a version": func(w http.ResponseWriter) { writeJSON(w, 504, status(504, "Timeout")) },
		"500":                 func(w http.ResponseWriter) { writeJSON(w, 500, status(500, "InternalError")) },
		"500 as event": func(w http.ResponseWriter) {
			writeJSON(w, 200, map[string]any{"type": "ERROR", "object": status(500, "InternalError")})
		},
		"429": func(w http.ResponseWriter) { writeJSON(w, 429, status(429, "TooManyRequests")) },
		"an unknown event": func(w http.ResponseWriter) {
			writeJSON(w, 200, map[string]any{"type": "SOMETHING", "object": map[string]any{}})
		},
		"a proxy's page":       func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) },
		"half an event":        func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"type":"MODIF`)) },
		"404":                  func(w http.ResponseWriter) { http.Error(w, "404 page not found", 404) },
		"denied once":          func(w http.ResponseWriter) { writeStatus(w, 403, "Forbidden", forbidden("watch"), nil) },
		"credential not known": func(w http.ResponseWriter) { writeStatus(w, 401, "Unauthorized", "Unauthorized", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newAPIServer(t)
			server.change("ADDED", nil)
			watches := 0
			server.intercept = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("watch") == "" {
					return false
				}
				server.mu.Lock()
				watches++
				first := watches == 1
				server.mu.Unlock()
				if first {
					// A change that no watch tells: the read must find it.
					server.change("MODIFIED", interval("7m"))
					broken(w)
				}
				return first
			}
			client, events, _ := started(t, server)
			if got := nextSeen(t, events); got.Source.Object.Spec.Interval.Minutes() != 7 {
				t.Fatalf("got %s, want what was changed in between", got.Source.Object.Spec.Interval.Duration)
			}
			server.change("MODIFIED", interval("8m"))
			if got := nextSeen(t, events); got.Source.Object.Spec.Interval.Minutes() != 8 {
				t.Fatalf("got %s, want the next change", got.Source.Object.Spec.Interval.Duration)
			}
			if got := client.Counts(); got.Reads != 2 || got.Watches != 2 {
				t.Errorf("got %+v, want one read and one watch more", got)
			}
		})
	}
}

// Compaction: the point that the watch would go on from is gone.
func TestWatchResumesAfterCompaction(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	client := server.client()
	seen, err := client.Read(t.Context(), "flux-system", "app")
	if err != nil {
		t.Fatal(err)
	}
	server.change("MODIFIED", interval("7m"))
	server.do(func() { server.oldest, server.history = server.revision, nil })
	events := client.Watch(t.Context(), "flux-system", "app", &seen)
	if got := nextSeen(t, events); got.Source.Object.Spec.Interval.Minutes() != 7 {
		t.Errorf("got %s", got.Source.Object.Spec.Interval.Duration)
	}
}

func TestWatchBookmarksMoveThePoint(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	watches := make(chan string, 10)
	server.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		watches <- r.URL.Query().Get("resourceVersion")
		if len(watches) > 1 {
			return false
		}
		writeJSON(w, 200, map[string]any{"type": "BOOKMARK", "object": map[string]any{
			"kind": "OCIRepository", "apiVersion": group + "/v1", "metadata": map[string]any{"resourceVersion": "150"},
		}})
		return true
	}
	w := &watcher{client: server.client(), namespace: "flux-system", name: "app", events: make(chan Event), version: "101"}
	if _, failure := w.watch(t.Context()); failure != nil || w.version != "150" {
		t.Errorf("got %q, %v, want 150", w.version, failure)
	}
	if got := <-watches; got != "101" {
		t.Errorf("got a watch from %q, want 101", got)
	}
}

// An API server that ends every watch at once must not be hammered.
func TestWatchBacksOff(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	server.intercept = func(_ http.ResponseWriter, r *http.Request) bool { return r.URL.Query().Get("watch") != "" }
	client := server.client()
	client.pace.backoffFirst, client.pace.backoffMost = 20*time.Millisecond, time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	for range client.Watch(ctx, "flux-system", "app", nil) {
	}
	// 20, 40, 80, 160, 320 ms and more: at most six watches fit, however slow
	// the machine is.
	if got := client.Counts(); got.Watches > 6 || got.Reads > 7 {
		t.Errorf("got %+v", got)
	}
}

func TestWatchReadsWhereWatchingIsDenied(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	server.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		writeStatus(w, 403, "Forbidden", forbidden("watch"), nil)
		return true
	}
	client, events, _ := started(t, server)
	event := next(t, events)
	if event.Note == nil || event.Note.Failure.Code != gate.AccessDenied || !strings.Contains(event.Note.Error(), "may not watch") ||
		!strings.Contains(event.Note.Error(), "it reads every") || event.Note.Role == "" {
		t.Fatalf("got %+v, want a note", event)
	}
	for i := range 3 {
		server.change("MODIFIED", interval(fmt.Sprintf("%dm", i+5)))
		if got := next(t, events); got.Seen == nil || got.Seen.Source.Object.Spec.Interval.Minutes() != float64(i+5) {
			t.Fatalf("got %+v", got)
		}
	}
	if got := client.Counts().Watches; got != maxRefusals {
		t.Errorf("got %d watches, want %d", got, maxRefusals)
	}
}

func TestWatchEndsWithAFinalFailure(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
		writeStatus(w, 403, "Forbidden", forbidden("get"), nil)
		return true
	}
	events := server.client().Watch(t.Context(), "flux-system", "app", nil)
	if event := next(t, events); event.Failure == nil || event.Failure.Failure.Transient {
		t.Errorf("got %+v, want a final failure", event)
	}
	if _, ok := <-events; ok {
		t.Error("the watch goes on")
	}
}

// A denial after reading was allowed is borne for a while, then final.
func TestWatchBearsADenialForAWhile(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	client, events, _ := started(t, server)
	deny := func(w http.ResponseWriter, _ *http.Request) bool {
		writeStatus(w, 403, "Forbidden", forbidden("get"), nil)
		return true
	}
	server.do(func() { server.intercept = deny })
	server.CloseClientConnections()
	for {
		if event := next(t, events); event.Failure != nil && event.Failure.Failure.Code == gate.AccessDenied {
			if !event.Failure.Failure.Transient {
				t.Fatal("got a final denial at once")
			}
			break
		}
	}
	server.do(func() { server.intercept = nil })
	if got := nextSeen(t, events); got.Missing {
		t.Error("got it missing")
	}
	_ = client
}

func TestWatchGivesADenialUp(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	client := server.client()
	client.pace.denied = 0
	seen, err := client.Read(t.Context(), "flux-system", "app")
	if err != nil {
		t.Fatal(err)
	}
	server.do(func() {
		server.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
			writeStatus(w, 401, "Unauthorized", "Unauthorized", nil)
			return true
		}
	})
	events := client.Watch(t.Context(), "flux-system", "app", &seen)
	if event := next(t, events); event.Failure == nil || event.Failure.Failure.Code != gate.AccessDenied || event.Failure.Failure.Transient {
		t.Errorf("got %+v, want a final denial", event)
	}
	if _, ok := <-events; ok {
		t.Error("the watch goes on")
	}
}

func TestWatchTellsTroubleAndRecovery(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	_, events, seen := started(t, server)
	server.do(func() {
		server.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
			writeStatus(w, 503, "ServiceUnavailable", "starting", nil)
			return true
		}
	})
	server.CloseClientConnections()
	if event := next(t, events); event.Failure == nil || !event.Failure.Failure.Transient {
		t.Fatalf("got %+v, want a passing failure", event)
	}
	server.do(func() { server.intercept = nil })
	if got := nextSeen(t, events); !got.same(seen) {
		t.Errorf("got %+v, want the same object again", got)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	ctx, cancel := context.WithCancel(t.Context())
	events := server.client().Watch(ctx, "flux-system", "app", nil)
	nextSeen(t, events)
	cancel()
	for event := range events {
		if event.Failure != nil {
			t.Errorf("got %v after the end", event.Failure)
		}
	}
}

// A read beside the watch is newer than what the watch has still to tell.
func TestWatchNeverGoesBackInTime(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.change("ADDED", nil)
	client := server.client()
	first, err := client.Read(t.Context(), "flux-system", "app")
	if err != nil {
		t.Fatal(err)
	}
	server.change("MODIFIED", interval("2m"))
	server.change("DELETED", nil)
	server.change("ADDED", nil)
	server.change("MODIFIED", interval("3m"))
	if _, err := client.Read(t.Context(), "flux-system", "app"); err != nil {
		t.Fatal(err)
	}
	events := client.Watch(t.Context(), "flux-system", "app", &first)
	if got := nextSeen(t, events); got.Missing || got.Source.Object.Spec.Interval.Minutes() != 3 {
		t.Errorf("got %+v, want what the last read saw", got.Source.Object.Spec)
	}
}

// After a restore from a backup the versions are lower, and still count.
func TestReadIsTheNewestWord(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	server.revision = 500
	server.change("ADDED", nil)
	client, events, _ := started(t, server)
	server.do(func() { server.revision, server.history = 100, nil })
	server.change("MODIFIED", interval("2m"))
	if _, err := client.Read(t.Context(), "flux-system", "app"); err != nil {
		t.Fatal(err)
	}
	server.CloseClientConnections()
	if got := nextSeen(t, events); got.Source.Object.Spec.Interval.Minutes() != 2 {
		t.Errorf("got %+v", got.Source.Object.Spec)
	}
	server.change("MODIFIED", interval("3m"))
	if got := nextSeen(t, events); got.Source.Object.Spec.Interval.Minutes() != 3 {
		t.Errorf("got %+v", got.Source.Object.Spec)
	}
}

func TestWatchBoundsAnEvent(t *testing.T) {
	t.Parallel()
	reader := &eventReader{reader: strings.NewReader("abcdef"), left: 4}
	buffer := make([]byte, 10)
	if n, err := reader.Read(buffer); n != 4 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := reader.Read(buffer); err != errEventTooLong {
		t.Errorf("got %v", err)
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		server := newAPIServer(t)
		server.served = map[string]bool{version: true}
		server.change("ADDED", nil)
		client := server.client()
		token, seen, err := client.RequestReconcile(t.Context(), "flux-system", "app")
		if err != nil || token == "" || seen.Missing {
			t.Fatalf("%s: got %q, %+v, %v", version, token, seen, err)
		}
		if got := seen.Source.Object.Annotations["reconcile.fluxcd.io/requestedAt"]; got != token {
			t.Errorf("%s: got the annotation %q, want %q", version, got, token)
		}
		if _, err := time.Parse(time.RFC3339Nano, token); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		if handled := seen.Source.Object.Status.GetLastHandledReconcileRequest(); handled != "" {
			t.Errorf("%s: handled before the controller ran", version)
		}
		server.change("MODIFIED", func(o map[string]any) { o["status"] = map[string]any{"lastHandledReconcileAt": token} })
		after, err := client.Read(t.Context(), "flux-system", "app")
		if err != nil || after.Source.Object.Status.GetLastHandledReconcileRequest() != token {
			t.Errorf("%s: got %+v, %v, want it handled", version, after.Source.Object.Status, err)
		}
	}
}

func TestReconcileFailures(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	client := server.client()
	if _, seen, err := client.RequestReconcile(t.Context(), "flux-system", "app"); err != nil || !seen.Missing {
		t.Errorf("missing: got %+v, %v", seen, err)
	}
	server.do(func() { server.flux = false })
	_, _, err := server.client().RequestReconcile(t.Context(), "flux-system", "app")
	if failure, ok := asError(err); !ok || failure.Failure.Code != gate.APIMissing {
		t.Errorf("no API: got %v", err)
	}
	server.do(func() {
		server.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
			writeStatus(w, 403, "Forbidden", forbidden("patch"), nil)
			return true
		}
	})
	_, _, err = client.RequestReconcile(t.Context(), "flux-system", "app")
	failure, ok := asError(err)
	if !ok || failure.Failure.Code != gate.AccessDenied || !strings.Contains(failure.Role, "'patch'") || !strings.Contains(err.Error(), "get,watch,patch") {
		t.Errorf("denied: got %v", err)
	}
	if _, _, err := client.RequestReconcile(t.Context(), "", "app"); err == nil {
		t.Error("no namespace: got no error")
	}
}

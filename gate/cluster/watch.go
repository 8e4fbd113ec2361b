package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"flux-verify-gate/gate"
)

// Event is one thing that a watch has to tell: exactly one of its fields is
// set.
type Event struct {
	// Seen is the object as it is now, or that it is missing.
	Seen *Observation
	// Failure says why the object cannot be looked at just now. The watch goes
	// on unless it is final (not Failure.Transient), which is the last event.
	Failure *Error
	// Note says how the watch is done otherwise than asked: by reading, because
	// watching is denied. It carries the Role that would allow it.
	Note *Error
}

// Watch tells every change of one OCIRepository from the observation on, which
// a Read has given; nil begins with a read. It watches the one name, which the
// minimal Role allows, and needs no list. When a watch ends (a closed
// connection, 410 Gone, a restart of the API server, its own time) it reads the
// object, tells what has changed, and watches on, backing off while that fails.
// Where reading is allowed and watching is denied it says so once and reads
// every 15 s. An idle watch is one request and waits on its connection. After a
// failure the next successful read is told even if it shows nothing new. What
// is older than the client's last Read of the object is left out, so that the
// caller may read beside the watch and never goes back in time. The
// channel is closed when ctx ends or after a final failure; until then the
// caller must receive from it.
func (c *Client) Watch(ctx context.Context, namespace, name string, from *Observation) <-chan Event {
	events := make(chan Event)
	w := &watcher{client: c, namespace: namespace, name: name, events: events}
	if from != nil {
		w.last, w.known = *from, true
	}
	go w.run(ctx)
	return events
}

// watcher is one running Watch.
type watcher struct {
	client          *Client
	namespace, name string
	events          chan<- Event

	// last is what was told last, if anything is known.
	last  Observation
	known bool
	// failing is set from a failure to the next read.
	failing bool
	// version is the point from which the next watch goes on; empty begins
	// with whatever is there.
	version string
	// deniedSince is when reading was first refused after it had been allowed.
	deniedSince time.Time
	// gone says that the last watch was refused because its version was too old.
	// A restarted API server refuses that of an object that has not changed
	// since, however often it is read again, so the next watch names none and
	// begins with the object as it is.
	gone bool
	// refusals counts watches denied in a row while reading was allowed.
	refusals int
}

// maxRefusals is how many denials of a watch in a row are taken for the Role
// and not for an API server that has just started.
const maxRefusals = 3

func (w *watcher) run(ctx context.Context) {
	defer close(w.events)
	backoff := w.client.backoff()
	read := !w.known
	if w.known {
		w.version = w.last.resourceVersion()
	}
	for ctx.Err() == nil {
		var failure *Error
		if read {
			failure = w.read(ctx)
		}
		if failure == nil {
			if w.refusals >= maxRefusals {
				if !sleep(ctx, w.client.pace.poll) {
					return
				}
				read = true
				continue
			}
			var steady bool
			steady, failure = w.watch(ctx)
			if steady {
				backoff = w.client.backoff()
			}
			read = true
			if failure == nil && steady {
				continue
			}
		}
		if failure != nil && ctx.Err() == nil {
			if !w.fail(ctx, failure) {
				return
			}
		}
		pause := backoff.Step()
		if failure != nil {
			pause = max(pause, failure.RetryAfter)
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// read looks at the object now and tells what is new.
func (w *watcher) read(ctx context.Context) *Error {
	seen, err := w.client.Read(ctx, w.namespace, w.name)
	if err != nil {
		failure, ok := asError(err)
		if !ok {
			failure = w.client.noAnswer("the object could not be read", err)
		}
		return failure
	}
	w.deniedSince = time.Time{}
	w.version = seen.resourceVersion()
	w.tell(ctx, seen)
	return nil
}

// tell sends an observation unless it is the one that was told last.
func (w *watcher) tell(ctx context.Context, seen Observation) {
	if w.known && !w.failing && w.last.same(seen) {
		return
	}
	w.last, w.known, w.failing = seen, true, false
	w.send(ctx, Event{Seen: &seen})
}

func (w *watcher) send(ctx context.Context, event Event) bool {
	select {
	case <-ctx.Done():
		return false
	case w.events <- event:
		return true
	}
}

// fail tells a failure; false if it was the last word. A denial after reading
// was allowed once is borne for a while: an API server that has just started
// refuses everybody until it knows its roles.
func (w *watcher) fail(ctx context.Context, failure *Error) bool {
	if failure.Failure.Code == gate.AccessDenied && failure.Failure.Transient {
		now := time.Now()
		if w.deniedSince.IsZero() {
			w.deniedSince = now
		}
		if now.Sub(w.deniedSince) >= w.client.pace.denied {
			failure.Failure.Transient = false
		}
	}
	w.failing = true
	return w.send(ctx, Event{Failure: failure}) && failure.Failure.Transient
}

// watch opens one watch and follows it to its end. It was steady if it lasted. A failure that only says that the stream ended is left
// out: the read that follows will tell.
func (w *watcher) watch(ctx context.Context) (steady bool, failure *Error) {
	c := w.client
	limit := c.pace.watch + c.pace.slack
	watchCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	r := request{
		method: http.MethodGet, verb: "watch", version: c.apiVersions()[0], namespace: w.namespace, name: w.name,
		query: url.Values{
			"watch":               {"true"},
			"fieldSelector":       {"metadata.name=" + w.name},
			"allowWatchBookmarks": {"true"},
			"timeoutSeconds":      {strconv.Itoa(max(int(c.pace.watch/time.Second), 1))},
		},
	}
	if w.version != "" && !w.gone {
		r.query.Set("resourceVersion", w.version)
	}
	c.counts.watches.Add(1)
	started := time.Now()
	response, err := c.send(watchCtx, r)
	if err != nil {
		return false, c.networkFailure(ctx, err)
	}
	if response.StatusCode != http.StatusOK {
		a, err := readAnswer(response)
		if err != nil {
			return false, c.networkFailure(ctx, err)
		}
		return false, w.refused(ctx, r, a)
	}
	defer response.Body.Close()
	w.refusals, w.gone = 0, false
	failure = w.follow(ctx, r, response)
	return time.Since(started) >= c.pace.steady, failure
}

// refused handles an answer that opens no watch.
func (w *watcher) refused(ctx context.Context, r request, a answer) *Error {
	switch a.code {
	case http.StatusGone:
		w.gone = true
		return nil
	case http.StatusNotFound:
		// The read that follows says what is missing.
		return nil
	case http.StatusForbidden:
		failure := w.client.answerFailure(r, a)
		w.refusals++
		if w.refusals == maxRefusals {
			failure.Failure.Title += fmt.Sprintf(": it reads every %s instead", w.client.pace.poll)
			w.send(ctx, Event{Note: failure})
		}
		return nil
	}
	return w.client.answerFailure(r, a)
}

// follow reads the events of one watch until it ends.
func (w *watcher) follow(ctx context.Context, r request, response *http.Response) *Error {
	told := false
	limited := &eventReader{reader: response.Body, left: maxAnswer}
	decoder := json.NewDecoder(limited)
	for {
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			var syntax *json.SyntaxError
			if !told && errors.As(err, &syntax) {
				return w.client.notAnAPIServer(r, answer{code: response.StatusCode, header: response.Header})
			}
			// The stream has ended, one way or another.
			return nil
		}
		limited.left = maxAnswer
		if event.Type == watch.Error {
			return w.errorEvent(r, event.Object)
		}
		object, err := parseJSON(bytes.TrimSpace(event.Object))
		content, ok := object.(map[string]any)
		if err != nil || !ok {
			return w.client.notAnAPIServer(r, answer{code: response.StatusCode, header: response.Header, body: event.Object})
		}
		if event.Type == watch.Bookmark {
			metadata, _ := content["metadata"].(map[string]any)
			if version, ok := metadata["resourceVersion"].(string); ok {
				w.version = version
			}
			continue
		}
		if event.Type != watch.Added && event.Type != watch.Modified && event.Type != watch.Deleted {
			// An event of a kind that this client does not know: look instead.
			return nil
		}
		source, failure := w.client.decode(r, content)
		if failure != nil {
			return failure
		}
		w.version = source.Object.ResourceVersion
		if w.client.isOlder(w.namespace, w.name, w.version) {
			continue
		}
		if event.Type == watch.Deleted {
			w.tell(ctx, Observation{Missing: true})
		} else {
			w.tell(ctx, Observation{Source: source})
		}
		told = true
	}
}

// errorEvent handles the error by which an API server ends a watch.
func (w *watcher) errorEvent(r request, object json.RawMessage) *Error {
	status, ok := parseStatus(object)
	if !ok || status.Code == http.StatusGone || status.Reason == metav1.StatusReasonExpired {
		w.gone = true
		return nil
	}
	return w.client.answerFailure(r, answer{code: int(status.Code), header: http.Header{}, body: object})
}

// eventReader bounds how much is read for one event.
type eventReader struct {
	reader io.Reader
	left   int
}

var errEventTooLong = errors.New("an event longer than any object")

func (e *eventReader) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, errEventTooLong
	}
	n, err := e.reader.Read(p[:min(len(p), e.left)])
	e.left -= n
	return n, err
}

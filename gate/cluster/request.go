package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxAnswer bounds an answer, and one event of a watch, in bytes.
const maxAnswer = MaxRecording

// request is one thing that is asked of the API server. rest.Request would do
// it too, but it repeats requests out of the caller's sight, and makes an
// error that names the object out of a proxy's plain page with status 404.
type request struct {
	method string
	// verb is the one of RBAC: get, watch, patch.
	verb            string
	version         string
	namespace, name string
	query           url.Values
	contentType     string
	body            []byte
	// path replaces the object's own path.
	path []string
}

func (r request) segments() []string {
	if r.path != nil {
		return r.path
	}
	segments := []string{"apis", group, r.version, "namespaces", r.namespace, resource}
	if r.verb != "watch" {
		segments = append(segments, r.name)
	}
	return segments
}

// answer is what came back, in full.
type answer struct {
	code       int
	header     http.Header
	body       []byte
	retryAfter time.Duration
}

// errNotConnected marks an error from before there was a connection.
var errNotConnected = errors.New("no connection was made")

// send opens one request. The caller closes the body.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	target := c.base.JoinPath(r.segments()...)
	target.RawQuery = r.query.Encode()
	httpRequest, err := http.NewRequestWithContext(ctx, r.method, target.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	httpRequest.Header.Set("Accept", "application/json")
	if r.contentType != "" {
		httpRequest.Header.Set("Content-Type", r.contentType)
	}
	response, err := c.http.Do(httpRequest)
	if err != nil && !connected.Load() {
		err = fmt.Errorf("%w: %w", errNotConnected, err)
	}
	return response, err
}

// ask sends one request and reads the whole answer. The error is one of the
// network's; every status is an answer.
func (c *Client) ask(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.pace.request, errNoAnswerInTime)
	defer cancel()
	response, err := c.send(ctx, r)
	if err != nil {
		return answer{}, becauseOf(ctx, err)
	}
	a, err := readAnswer(response)
	if err != nil {
		return answer{}, becauseOf(ctx, err)
	}
	return a, nil
}

// errNoAnswerInTime marks the client's own limit, as opposed to the caller's.
var errNoAnswerInTime = errors.New("no answer in time")

func becauseOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func readAnswer(response *http.Response) (answer, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return answer{}, err
	}
	a := answer{code: response.StatusCode, header: response.Header, body: body}
	a.retryAfter = retryAfter(response.Header, time.Now())
	return a, nil
}

// retryAfter reads the header Retry-After: seconds or a date (RFC 9110, 10.2.3).
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil && date.After(now) {
		return date.Sub(now)
	}
	return 0
}

// status reads the answer as a Kubernetes Status; false for any other text,
// such as a proxy's page.
func (a answer) status() (metav1.Status, bool) {
	return parseStatus(a.body)
}

func parseStatus(body []byte) (metav1.Status, bool) {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" || status.APIVersion != "v1" {
		return metav1.Status{}, false
	}
	return status, true
}

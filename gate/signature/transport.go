package signature

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"
)

// statusError is an answer that asks to come again.
type statusError struct {
	status     int
	retryAfter time.Duration
}

func (e *statusError) Error() string {
	return fmt.Sprintf("expected an answer, found HTTP status %d %s", e.status, http.StatusText(e.status))
}

// guard is the transport under everything that talks to a registry, the
// authentication handshake included. It bounds requests and bytes, and turns
// answers that ask to come again into errors, so that they look the same
// whoever sent the request.
type guard struct {
	base     http.RoundTripper
	requests atomic.Int64
	read     atomic.Int64
}

// newTransport makes the base transport. caPEM, which may be empty, are
// certificate authorities in addition to the system's.
func newTransport(caPEM []byte) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(caPEM) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(caPEM) {
			return nil, errors.New("expected certificates in PEM, found none")
		}
		config.RootCAs = pool
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    dialTimeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    concurrency,
		MaxConnsPerHost:        2 * concurrency,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		// Content is addressed by digest, so it is wanted as it is; and a
		// compressed body could grow without bound.
		DisableCompression: true,
	}, nil
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if g.requests.Add(1) > maxRequests {
		return nil, &limitError{fmt.Sprintf("expected at most %d requests to be enough, found more to read", maxRequests)}
	}
	resp, err := g.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		resp.Body.Close()
		return nil, &statusError{status: resp.StatusCode, retryAfter: retryAfter(resp.Header.Get("Retry-After"))}
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxBody, total: &g.read}
	return resp, nil
}

// boundedBody ends a body that exceeds the bounds.
type boundedBody struct {
	io.ReadCloser
	left  int64
	total *atomic.Int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &limitError{fmt.Sprintf("expected at most %d bytes, found more", maxBody)}
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.total.Add(int64(n)) > maxTransfer {
		return n, &limitError{fmt.Sprintf("expected at most %d bytes in all, found more", maxTransfer)}
	}
	return n, err
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 24*60*60)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// checkRedirect bounds redirects, and refuses those that leave TLS, or that lead
// from a public address to a private one.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return &contentError{fmt.Sprintf("expected at most %d redirects, found more", maxRedirects)}
	}
	first := via[0].URL
	if first.Scheme == "https" && req.URL.Scheme != "https" {
		return &contentError{fmt.Sprintf("expected a redirect that stays with https, found one to %s://%s", req.URL.Scheme, req.URL.Host)}
	}
	if req.URL.Hostname() != first.Hostname() && !clusterOnly(first.Host) {
		if addr, err := netip.ParseAddr(req.URL.Hostname()); err == nil && privateAddr(addr) {
			return &contentError{fmt.Sprintf("expected a redirect to a public address, found %s", req.URL.Host)}
		}
	}
	return nil
}

// transient says that to try again may help.
func transient(err error) bool {
	var (
		content  *contentError
		limit    *limitError
		denied   *deniedError
		cert     *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
	)
	var answer *answerError
	if errors.As(err, &answer) {
		return answer.status >= http.StatusInternalServerError
	}
	switch {
	case errors.Is(err, errAbsent), errors.Is(err, errUnsupported), errors.Is(err, errGivenUp), errors.Is(err, context.Canceled), errors.Is(err, http.ErrSchemeMismatch),
		errors.As(err, &content), errors.As(err, &limit), errors.As(err, &denied),
		errors.As(err, &cert), errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &invalid):
		return false
	}
	return true
}

// unreached says that nobody was there to talk to.
func unreached(err error) bool {
	var (
		operation *net.OpError
		lookup    *net.DNSError
	)
	return errors.As(err, &lookup) || errors.As(err, &operation) && operation.Op == "dial"
}

// retry runs one operation until it succeeds, fails for good, or the deadline
// of ctx leaves no time for another attempt. dials bounds the attempts to reach
// an address at all; 0 means that only the deadline does.
func retry(ctx context.Context, dials int, attempt time.Duration, operation func(context.Context) error) error {
	deadline, bounded := ctx.Deadline()
	backoff := backoffFirst
	var last error
	for n := 1; ; n++ {
		once, cancel := context.WithTimeout(ctx, attempt)
		err := operation(once)
		cancel()
		if err != nil && ctx.Err() != nil && last != nil {
			// What went wrong before says more than that time is up.
			return last
		}
		if err == nil || ctx.Err() != nil || !transient(err) ||
			!bounded && n == attemptsWithoutDeadline || dials > 0 && n >= dials && unreached(err) {
			return err
		}
		last = err
		// Half of the wait is random, so that many jobs do not come back at once.
		wait := backoff/2 + rand.N(backoff/2)
		backoff = min(2*backoff, backoffLast)
		var status *statusError
		if errors.As(err, &status) {
			wait = max(wait, status.retryAfter)
		}
		if bounded && time.Until(deadline) <= wait {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

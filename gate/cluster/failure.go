package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"flux-verify-gate/gate"
)

// networkFailure says why no answer came. A failure that a later try cannot
// mend (a wrong name, another authority, nothing on a loopback address) is
// final before the API server has answered once, and passing afterwards.
func (c *Client) networkFailure(ctx context.Context, err error) *Error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		if errors.Is(ctxErr, context.Canceled) {
			return &Error{Err: err, Failure: gate.Failure{
				Code:   gate.Cancelled,
				Title:  "the run was stopped while it asked the API server",
				Found:  err.Error(),
				Remedy: "run it again",
			}}
		}
		if errors.Is(err, errNotConnected) {
			return c.notConnected("the API server could not be reached before the deadline", err)
		}
		return c.noAnswer("the API server did not answer before the deadline", err)
	}
	if errors.Is(err, errNoAnswerInTime) || isTimeout(err) {
		if errors.Is(err, errNotConnected) {
			return c.notConnected(fmt.Sprintf("the API server could not be reached within %s", c.pace.request), err)
		}
		return c.noAnswer(fmt.Sprintf("the API server did not answer within %s", c.pace.request), err)
	}
	if failure := c.tlsFailure(err); failure != nil {
		return failure
	}
	answered := c.answered.Load()
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return c.unreachable("the name of the API server cannot be resolved", "an address for "+dns.Name, err,
			answered || !dns.IsNotFound,
			"check `server`; private names (MagicDNS, private zones) often do not resolve in an action's container: use an address together with `tls-server-name`")
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return c.unreachable("the proxy before the API server does not answer", "a working proxy in HTTPS_PROXY or the kubeconfig's proxy-url", err,
			true, "check the proxy, or name the server in NO_PROXY")
	case !answered && isLoopback(c.base.Hostname()) && errors.As(err, &op) && op.Op == "dial":
		// Final at once: no waiting brings the runner's loopback in here.
		return c.unreachable("nothing answers on the loopback address of the API server", "an API server at "+c.Server, err,
			false, loopbackRemedy)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH),
		errors.As(err, &op) && op.Op == "dial":
		return c.notConnected("the API server cannot be reached", err)
	default:
		// A connection that broke: the server was there.
		return c.noAnswer("the connection to the API server broke", err)
	}
}

func (c *Client) notConnected(title string, err error) *Error {
	return c.unreachable(title, "an API server at "+c.Server, err,
		true, "check the address, the network between the runner and the cluster, and the cluster's authorized networks")
}

const loopbackRemedy = "inside an action's container a loopback address is the container itself, so a kind, k3d or k3s cluster of the runner needs another one: " +
	"`docker network connect bridge kind-control-plane`, then `server: https://<address of that container>:6443` and `tls-server-name: kind-control-plane`; " +
	"or run the binary in a `run:` step; see docs/credentials.md"

func (c *Client) tlsFailure(err error) *Error {
	answered := c.answered.Load()
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var roots x509.SystemRootsError
	var header tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.As(err, &authority):
		return c.unreachable("the API server's certificate comes from an authority that is not trusted", "the authority in the kubeconfig", err,
			answered, "this may be another server than the one that is meant: check `server` and `certificate-authority-data`; a proxy that opens TLS shows itself like this too")
	case errors.As(err, &hostname):
		names := "none"
		if hostname.Certificate != nil {
			valid := hostname.Certificate.DNSNames
			for _, ip := range hostname.Certificate.IPAddresses {
				valid = append(valid, ip.String())
			}
			if len(valid) > 0 {
				names = listed(valid)
			}
		}
		return c.unreachable("the API server's certificate is for another name", "a certificate for "+hostname.Host, err,
			answered, "set `tls-server-name` to a name that the certificate has ("+names+"), or correct `server`")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return c.unreachable("the API server's certificate is expired or not yet valid", "a certificate that is valid now", err,
			answered, "renew it, and check the runner's clock")
	case errors.As(err, &invalid), errors.As(err, &roots):
		return c.unreachable("the API server's certificate cannot be verified", "a valid certificate", err,
			answered, "check `certificate-authority-data`")
	case errors.As(err, &header), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return c.unreachable("what answers does not speak TLS", "an API server at "+c.Server, err,
			answered, "check the port in `server`")
	case errors.As(err, &op) && op.Op == "remote error":
		// The other side's alert (crypto/tls conn.go).
		return c.unreachable("the API server ended the TLS handshake", "a handshake that both sides accept", err,
			answered, "check the kubeconfig's client certificate and `tls-server-name`")
	}
	return nil
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// isLoopback says that an address means the machine, or the container, itself.
func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

func (c *Client) unreachable(title, expected string, err error, transient bool, remedy string) *Error {
	return &Error{Err: err, Failure: gate.Failure{
		Code:      gate.Unreachable,
		Title:     title,
		Expected:  expected,
		Found:     err.Error(),
		Remedy:    remedy,
		Transient: transient,
	}}
}

func (c *Client) noAnswer(title string, err error) *Error {
	return &Error{Err: err, Failure: gate.Failure{
		Code:      gate.NoAnswer,
		Title:     title,
		Expected:  "an answer from " + c.Server,
		Found:     err.Error(),
		Remedy:    "try again, with a longer `timeout` if it is slow",
		Transient: true,
	}}
}

// answerFailure says why an answer is none that can be used. It is not asked
// about 404, which the caller must tell apart.
func (c *Client) answerFailure(r request, a answer) *Error {
	status, isStatus := a.status()
	found := a.describe()
	switch {
	case a.code == http.StatusUnauthorized:
		return &Error{Failure: gate.Failure{
			Code:      gate.AccessDenied,
			Title:     "the API server does not accept the credential (" + r.asked() + ")",
			Expected:  "a credential that is valid now",
			Found:     found + "; " + c.credential.refused(time.Now()),
			Remedy:    "make a new one; on EKS the role also needs an access entry",
			Transient: c.answered.Load(),
		}}
	case a.code == http.StatusForbidden && isStatus:
		subject := subjectOf(status.Message)
		who := "the credential"
		if subject != "" {
			who = strconv.Quote(clip(subject))
		}
		return &Error{
			Failure: gate.Failure{
				Code:      gate.AccessDenied,
				Title:     who + " may not " + r.asked(),
				Expected:  "a Role that allows it",
				Found:     found,
				Remedy:    grantCommands(c.roleName(r), r.namespace, r.name, subject, r.verb == "patch"),
				Transient: c.answered.Load(),
			},
			Role: Role(c.roleName(r), r.namespace, r.name, subject, r.verb == "patch"),
		}
	case a.code == http.StatusForbidden:
		return &Error{Failure: gate.Failure{
			Code:      gate.AccessDenied,
			Title:     "something before the API server does not let the request through (" + r.asked() + ")",
			Expected:  "an answer from an API server",
			Found:     found,
			Remedy:    "check the proxy, gateway or authorized networks before " + c.Server,
			Transient: c.answered.Load(),
		}}
	case a.code == http.StatusRequestTimeout, a.code == http.StatusConflict, a.code == http.StatusTooManyRequests,
		a.code >= 500:
		wait := a.retryAfter
		if isStatus && status.Details != nil && wait == 0 {
			wait = time.Duration(max(status.Details.RetryAfterSeconds, 0)) * time.Second
		}
		return &Error{RetryAfter: wait, Failure: gate.Failure{
			Code:      gate.NoAnswer,
			Title:     "the API server cannot answer now (" + r.asked() + ")",
			Expected:  "the status 200",
			Found:     found,
			Remedy:    "try again, with a longer `timeout` if it stays so",
			Transient: true,
		}}
	case isStatus:
		return &Error{Failure: gate.Failure{
			Code:     gate.NoAnswer,
			Title:    "the API server refuses the request as malformed (" + r.asked() + ")",
			Expected: "the status 200",
			Found:    found,
			Remedy:   "check `namespace` and `name`; otherwise this is a defect of the gate",
		}}
	default:
		return c.notAnAPIServer(r, a)
	}
}

// notAnAPIServer is the failure for an answer that no API server gives: a
// redirect to a login page, a proxy's error page, another service.
func (c *Client) notAnAPIServer(r request, a answer) *Error {
	found := a.describe()
	if location := a.header.Get("Location"); location != "" {
		found += ", a redirect to " + strconv.Quote(clip(location))
	}
	return &Error{Failure: gate.Failure{
		Code:      gate.Unreachable,
		Title:     "what answers at " + c.Server + " is not a Kubernetes API server (" + r.asked() + ")",
		Expected:  "JSON as an API server writes it",
		Found:     found,
		Remedy:    "check `server`: a proxy, a login page or another service stands there",
		Transient: c.answered.Load(),
	}}
}

// apiMissing is the failure for a cluster without Flux's source API.
func (c *Client) apiMissing(found string) *Error {
	return &Error{Failure: gate.Failure{
		Code:      gate.APIMissing,
		Title:     "the cluster does not serve the OCIRepository API",
		Expected:  resource + "." + group + " in version " + strings.Join(versions, " or "),
		Found:     found,
		Remedy:    "install Flux 2.0 or later with source-controller, or check that `context` and `server` name the cluster that is meant",
		Transient: true,
	}}
}

// asked names what was asked for, as RBAC would.
func (r request) asked() string {
	if r.path != nil {
		return "get /" + strings.Join(r.path, "/")
	}
	return fmt.Sprintf("%s %s.%s %q in the namespace %q", r.verb, resource, group, r.name, r.namespace)
}

// describe says what kind of answer it is, with the beginning of its text.
func (a answer) describe() string {
	text := strconv.Itoa(a.code) + " " + http.StatusText(a.code)
	if status, ok := a.status(); ok {
		if status.Message != "" {
			text += ": " + clipTo(status.Message, maxMessage)
		}
		return text
	}
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if kind == "" {
		kind = "text"
	}
	text += ", " + kind
	if body := strings.Join(strings.FieldsFunc(string(a.body[:min(len(a.body), 4*maxQuoted)]), unicode.IsSpace), " "); body != "" {
		text += ": " + strconv.Quote(clip(body))
	}
	return text
}

// maxMessage bounds, in bytes, how much of an API server's message is quoted: a
// denial with long names fits.
const maxMessage = 800

// The authorizer's message begins: <resource> "<name>" is forbidden: User
// "<user>" cannot … (apiserver pkg/endpoints/handlers/responsewriters/errors.go,
// forbiddenMessage). The name is quoted with %q, and so is the user.
var forbiddenUser = regexp.MustCompile(`User ("(?:[^"\\]|\\.)*") cannot `)

// subjectOf reads the user out of the message of a denial; empty if it is not
// there.
func subjectOf(message string) string {
	match := forbiddenUser.FindStringSubmatch(message)
	if match == nil {
		return ""
	}
	user, err := strconv.Unquote(match[1])
	if err != nil {
		return ""
	}
	return user
}

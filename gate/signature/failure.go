package signature

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"flux-verify-gate/gate"
)

// failures turns errors into what a person needs to know: what was asked of
// whom, with which credentials, and what to do.
type failures struct {
	registry    string // empty for a layout
	place       string // what is looked in, in words
	credentials string
}

// of describes one failure to look at something.
func (f failures) of(what string, err error) gate.Failure {
	failure := gate.Failure{
		Code:      gate.RegistryUnreachable,
		Title:     fmt.Sprintf("%s could not be read from %s", what, f.place),
		Expected:  "an answer, be it that there is nothing",
		Found:     tellError(err),
		Transient: transient(err) || errors.Is(err, context.DeadlineExceeded),
	}
	var (
		denied  *deniedError
		limit   *limitError
		content *contentError
		status  *statusError
	)
	switch {
	case f.registry == "":
		failure.Remedy = "check the directory given as layout"
	case errors.Is(err, errGivenUp):
		failure.Title = fmt.Sprintf("%s did not come in time and was not awaited any longer", what)
		failure.Remedy = "nothing: a required signature had verified"
	case errors.As(err, &denied):
		failure.Code = gate.RegistryDenied
		failure.Title = fmt.Sprintf("%s could not be read: %s refuses %s", what, f.registry, f.credentials)
		failure.Expected = "credentials that may pull"
		failure.Remedy = "give registry-username and registry-password, or a Docker configuration, with the right to pull from this repository"
	case errors.As(err, &limit):
		failure.Title = fmt.Sprintf("%s is larger than the gate reads", what)
		failure.Expected = "what a signature needs"
		failure.Remedy = "remove what is too large from the repository, or look at it by hand"
	case errors.As(err, &content):
		failure.Expected = "content as the OCI specification has it"
		failure.Remedy = "look at the registry, or at what stands between it and the gate"
	case clusterOnly(f.registry):
		failure.Title = fmt.Sprintf("%s could not be read: %s is an address that only the cluster or its network can reach", what, f.registry)
		failure.Remedy = "run the gate where the registry can be reached (a runner in that network), or write out signature: skip"
	case errors.Is(err, http.ErrSchemeMismatch):
		failure.Expected = "a registry that speaks TLS"
		failure.Remedy = "set spec.insecure: true on the source if the registry speaks plain HTTP"
	case errors.As(err, &status) && status.status == http.StatusTooManyRequests:
		failure.Remedy = "log in (anonymous limits are lower), or try again later"
	case !failure.Transient:
		failure.Remedy = "give the registry's certificate authority as registry-ca if it is a private one"
	default:
		failure.Remedy = "check the registry and the network between it and the gate, then run again"
	}
	return failure
}

// artifact describes that the artifact's own manifest could not be read. There
// absence is a failure too: registries hide what is private behind a 404, and
// what is being served was there.
func (f failures) artifact(digest string, err error) gate.Failure {
	if !errors.Is(err, errAbsent) {
		return f.of("the artifact "+digest, err)
	}
	failure := gate.Failure{
		Code:     gate.RegistryDenied,
		Title:    fmt.Sprintf("the artifact %s is not to be seen in %s with %s", digest, f.place, f.credentials),
		Expected: "the manifest of the artifact that is being served",
		Found:    "HTTP status 404 Not Found",
		Remedy:   "give credentials that may pull from this repository; if it is public, the artifact was deleted from it",
		// A replica may be behind.
		Transient: true,
	}
	if f.registry == "" {
		failure.Title = fmt.Sprintf("%s does not hold the artifact %s", f.place, digest)
		failure.Found = "no such blob"
		failure.Remedy = "check that the layout holds the artifact of this digest"
		failure.Transient = false
	}
	return failure
}

// rootFailure describes that the trusted root is not to be had.
func rootFailure(source string, err error) gate.Failure {
	failure := gate.Failure{
		Code:     gate.TrustedRootUnavailable,
		Title:    "the trusted root is not available, so no signature could be verified",
		Expected: "a trusted_root.json",
		Found:    tellError(err),
		Remedy:   "check the path given as trusted-root",
	}
	if source == TUF {
		failure.Expected = "the public-good trusted root over TUF"
		failure.Remedy = "allow https://tuf-repo-cdn.sigstore.dev, or give the path of a trusted_root.json as trusted-root"
		failure.Transient = transient(err)
	}
	return failure
}

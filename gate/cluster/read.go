package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"

	"flux-verify-gate/gate"
)

// Observation is what one completed read, or one event of a watch, saw.
type Observation struct {
	// Missing says that there is no such object, and that the API is there.
	Missing bool
	// Source is the object; empty if it is missing.
	Source gate.Source
}

// resourceVersion is the point from which a watch can go on; empty if unknown.
func (o Observation) resourceVersion() string { return o.Source.Object.ResourceVersion }

func (o Observation) same(other Observation) bool {
	return o.Missing == other.Missing && o.Source.Object.UID == other.Source.Object.UID &&
		o.resourceVersion() == other.resourceVersion()
}

// Read reads one OCIRepository once: version v1, else v1beta2. A settled
// cluster costs one request. The error is an *Error: access-denied,
// api-missing, unreachable, no-answer, cancelled, or bad-input for a name that
// none can have. Failure.Transient says whether another try may succeed, and
// RetryAfter how long the server asked to wait. A missing object is no error.
func (c *Client) Read(ctx context.Context, namespace, name string) (Observation, error) {
	if err := checkNames(namespace, name); err != nil {
		return Observation{}, err
	}
	var last answer
	for _, version := range c.apiVersions() {
		r := request{method: http.MethodGet, verb: "get", version: version, namespace: namespace, name: name}
		c.counts.reads.Add(1)
		a, err := c.ask(ctx, r)
		if err != nil {
			return Observation{}, c.networkFailure(ctx, err)
		}
		switch {
		case a.code == http.StatusOK:
			source, failure := c.sourceOf(r, a)
			if failure != nil {
				return Observation{}, failure
			}
			c.answered.Store(true)
			c.settleVersion(version)
			c.noteRead(namespace, name, source.Object.ResourceVersion)
			return Observation{Source: source}, nil
		case a.code == http.StatusNotFound && objectMissing(a, name):
			c.answered.Store(true)
			c.settleVersion(version)
			return Observation{Missing: true}, nil
		case a.code == http.StatusNotFound:
			last = a
		default:
			return Observation{}, c.answerFailure(r, a)
		}
	}
	return Observation{}, c.whatIsMissing(ctx, request{verb: "get", namespace: namespace, name: name}, last)
}

// objectMissing says that a 404 is the API server's word that it has the
// resource and not the object. For a resource that it does not have it answers
// with plain text, and so does a proxy; both must not read as a missing object.
func objectMissing(a answer, name string) bool {
	status, ok := a.status()
	return ok && status.Reason == metav1.StatusReasonNotFound && status.Details != nil &&
		status.Details.Kind == resource && status.Details.Group == group && status.Details.Name == name
}

// whatIsMissing tells a cluster without the API from something that is no API
// server, by asking for the list of APIs.
func (c *Client) whatIsMissing(ctx context.Context, r request, a answer) *Error {
	list := request{method: http.MethodGet, path: []string{"apis"}}
	c.counts.lookups.Add(1)
	apis, err := c.ask(ctx, list)
	if err != nil {
		return c.networkFailure(ctx, err)
	}
	switch {
	case apis.code == http.StatusOK:
		var groups metav1.APIGroupList
		if json.Unmarshal(apis.body, &groups) != nil || groups.Kind != "APIGroupList" {
			return c.notAnAPIServer(list, apis)
		}
		c.answered.Store(true)
		return c.apiMissing(describeGroups(groups))
	case apis.code == http.StatusForbidden:
		if _, ok := apis.status(); ok {
			// An API server that does not show its APIs to this user.
			c.answered.Store(true)
			return c.apiMissing(a.describe())
		}
	case apis.code == http.StatusNotFound:
		return c.notAnAPIServer(r, a)
	}
	return c.answerFailure(list, apis)
}

func describeGroups(groups metav1.APIGroupList) string {
	i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == group })
	if i < 0 {
		return fmt.Sprintf("no %s among the API groups (%d in all)", group, len(groups.Groups))
	}
	served := make([]string, 0, len(groups.Groups[i].Versions))
	for _, version := range groups.Groups[i].Versions {
		served = append(served, version.Version)
	}
	return fmt.Sprintf("%s in version %s, without %s", group, listed(served), resource)
}

// sourceOf reads an object out of an answer with status 200.
func (c *Client) sourceOf(r request, a answer) (gate.Source, *Error) {
	if len(a.body) > maxAnswer {
		return gate.Source{}, c.notAnAPIServer(r, a)
	}
	document, err := parseJSON(a.body)
	if err != nil {
		return gate.Source{}, c.notAnAPIServer(r, a)
	}
	object, ok := document.(map[string]any)
	if !ok || object["kind"] == nil || object["apiVersion"] == nil {
		return gate.Source{}, c.notAnAPIServer(r, a)
	}
	return c.decode(r, object)
}

// decode reads an object and makes sure that it is the one that was asked for.
func (c *Client) decode(r request, object map[string]any) (gate.Source, *Error) {
	source, err := Decode(&unstructured.Unstructured{Object: object})
	if err == nil {
		if found := identity(object); found != r.namespace+"/"+r.name {
			err = fmt.Errorf("another object, %q", clip(found))
		}
	}
	if err != nil {
		return gate.Source{}, &Error{Err: err, Failure: gate.Failure{
			Code:     gate.NoAnswer,
			Title:    "the API server's answer cannot be used (" + r.asked() + ")",
			Expected: "an OCIRepository as source-controller 1.9 defines it",
			Found:    err.Error(),
			Remedy:   "the cluster may have a newer API than this release knows: use a newer gate",
		}}
	}
	return source, nil
}

// checkNames refuses what can be no name, before it gets into a path.
func checkNames(namespace, name string) error {
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return badInput("`namespace` is not a name that a namespace can have", strings.Join(problems, "; "),
			fmt.Sprintf("%q", clip(namespace)), "correct `namespace`", nil)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return badInput("`name` is not a name that an OCIRepository can have", strings.Join(problems, "; "),
			fmt.Sprintf("%q", clip(name)), "correct `name`", nil)
	}
	return nil
}

// ReadRetrying reads until a read completes, the failure is final, or ctx ends.
// Between tries it backs off and honours Retry-After. Each passing failure is
// told to notify, which may be nil; the last failure is the error. A missing
// API counts as passing: it may be on its way.
func (c *Client) ReadRetrying(ctx context.Context, namespace, name string, notify func(*Error)) (Observation, error) {
	backoff := c.backoff()
	for {
		seen, err := c.Read(ctx, namespace, name)
		if err == nil {
			return seen, nil
		}
		failure, ok := asError(err)
		if !ok || !failure.Failure.Transient || ctx.Err() != nil {
			return Observation{}, err
		}
		if notify != nil {
			notify(failure)
		}
		if !sleep(ctx, max(backoff.Step(), failure.RetryAfter)) {
			return Observation{}, err
		}
	}
}

func (c *Client) backoff() wait.Backoff {
	return wait.Backoff{Duration: c.pace.backoffFirst, Factor: 2, Jitter: 0.2, Steps: 1 << 20, Cap: c.pace.backoffMost}
}

// sleep waits; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

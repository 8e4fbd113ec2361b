package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
)

// RequestReconcile asks the controller to reconcile the object now, by the
// annotation reconcile.fluxcd.io/requestedAt, as `flux reconcile` does. It
// gives the value that it wrote: the controller repeats it in
// status.lastHandledReconcileAt once a run has finished, even one that failed. It
// needs the verb patch.
// Errors are as for Read; an object that is not there is Missing, without an
// error.
func (c *Client) RequestReconcile(ctx context.Context, namespace, name string) (token string, seen Observation, err error) {
	if err := checkNames(namespace, name); err != nil {
		return "", Observation{}, err
	}
	token = time.Now().UTC().Format(time.RFC3339Nano)
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{meta.ReconcileRequestAnnotation: token}},
	})
	if err != nil {
		return "", Observation{}, err
	}
	var last answer
	r := request{
		method: http.MethodPatch, verb: "patch", namespace: namespace, name: name,
		query:       url.Values{"fieldManager": {GateName}},
		contentType: "application/merge-patch+json",
		body:        body,
	}
	for _, r.version = range c.apiVersions() {
		c.counts.patches.Add(1)
		a, err := c.ask(ctx, r)
		if err != nil {
			return "", Observation{}, c.networkFailure(ctx, err)
		}
		switch {
		case a.code == http.StatusOK:
			source, failure := c.sourceOf(r, a)
			if failure != nil {
				return "", Observation{}, failure
			}
			c.answered.Store(true)
			c.settleVersion(r.version)
			return token, Observation{Source: source}, nil
		case a.code == http.StatusNotFound && objectMissing(a, name):
			c.answered.Store(true)
			c.settleVersion(r.version)
			return "", Observation{Missing: true}, nil
		case a.code == http.StatusNotFound:
			last = a
		default:
			return "", Observation{}, c.answerFailure(r, a)
		}
	}
	return "", Observation{}, c.whatIsMissing(ctx, r, last)
}

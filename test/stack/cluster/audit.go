package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// auditPolicy records the requests of clients for Flux objects, once each: when
// their answer begins for a watch, when it is complete for the others.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ['system:masters']
- level: Metadata
  resources:
  - group: source.toolkit.fluxcd.io
  - group: kustomize.toolkit.fluxcd.io
  - group: fluxcd.controlplane.io
- level: None
`

// Request is one request that the API server received for a Flux object, from
// anybody but an administrator.
type Request struct {
	// ID is the request's audit id, unique.
	ID string
	// User is the name that it was authenticated as.
	User string
	// Verb is Kubernetes's verb: get, watch, patch and so on.
	Verb string
	// URI is the path and the query.
	URI string
	// Code is the answer's HTTP status.
	Code int
	// Time is when the API server received it.
	Time time.Time
}

// Requests returns the requests of user for Flux objects since the cluster
// started, over restarts of the API server, in the order in which their answers
// began (watches) or ended (others). A request that is refused for its
// credentials has no user and is not recorded.
func (c *Cluster) Requests(user string) ([]Request, error) {
	file, err := os.Open(c.path("log", "audit.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the audit log: %w", err)
	}
	defer file.Close()
	var requests []Request
	seen := map[string]bool{}
	for r := bufio.NewReader(file); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			// What follows the last newline is still being written.
			return requests, nil
		}
		var e struct {
			AuditID                  string
			Verb                     string
			RequestURI               string
			RequestReceivedTimestamp time.Time
			User                     struct{ Username string }
			ResponseStatus           struct{ Code int }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("the audit log has a line that is not an event: %w", err)
		}
		if e.User.Username != user || seen[e.AuditID] {
			continue
		}
		seen[e.AuditID] = true
		requests = append(requests, Request{
			ID: e.AuditID, User: user, Verb: e.Verb, URI: e.RequestURI,
			Code: e.ResponseStatus.Code, Time: e.RequestReceivedTimestamp,
		})
	}
}

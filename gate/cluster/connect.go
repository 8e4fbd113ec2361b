package cluster

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
)

// Client talks to one API server as one user. It is safe for concurrent use.
type Client struct {
	// Server is the address of the API server, and Context the context of the
	// kubeconfig that named it ("in-cluster" for a pod's service account). Both
	// belong into the log, so that a staging kubeconfig is seen.
	Server, Context string

	base       *url.URL
	http       *http.Client
	credential credential
	getenv     func(string) string
	pace       pace

	// answered is set once the API server has given a proper answer: from then
	// on trouble with the network is a passing thing.
	answered atomic.Bool
	counts   counts

	mu sync.Mutex
	// version is the version of the API that answered; empty before.
	version string
	// canary is the object that CanaryIs has named, as namespace/name.
	canary string
	// newest is the resourceVersion of the last read of each object.
	newest map[string]string
}

// pace is how long the client waits for what.
type pace struct {
	// request bounds one read, from dialling to the last byte.
	request time.Duration
	// watch is how long one watch is asked to last, and slack how much later
	// it is given up as dead.
	watch, slack time.Duration
	// poll is the time between reads where watching is denied.
	poll time.Duration
	// backoffFirst and backoffMost bound the time between tries.
	backoffFirst, backoffMost time.Duration
	// denied is how long a denial is borne after the API server has answered
	// once: for some seconds after a restart it refuses everybody.
	denied time.Duration
	// steady is how long a watch must have lasted to count as a working one.
	steady time.Duration
}

var defaultPace = pace{
	request:      20 * time.Second,
	watch:        5 * time.Minute,
	slack:        15 * time.Second,
	poll:         15 * time.Second,
	backoffFirst: 250 * time.Millisecond,
	backoffMost:  5 * time.Second,
	denied:       time.Minute,
	steady:       5 * time.Second,
}

// Connect prepares a client out of one explicit source. It never uses
// client-go's default loading rules, which skip a missing file and fall back to
// the pod's own service account without a word, never merges kubeconfigs, and
// never runs a credential plugin. It sends nothing: the first request is the
// caller's. The error is an *Error with the code bad-input that names the
// option, what was expected, what was found and what to do.
func Connect(o Options) (*Client, error) {
	quiet()
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.InCluster {
		config, err := inClusterConfig(o.getenv, serviceAccountDir)
		if err != nil {
			return nil, err
		}
		return o.client(config, "in-cluster", "the pod's service account")
	}
	source, err := o.load()
	if err != nil {
		return nil, err
	}
	config, context, err := o.restConfig(source)
	if err != nil {
		return nil, err
	}
	return o.client(config, context, source.origin)
}

func (o Options) client(config *rest.Config, context, origin string) (*Client, error) {
	config.UserAgent = o.UserAgent
	if config.UserAgent == "" {
		config.UserAgent = "flux-verify-gate"
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, unusableCredential(origin, err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, unusableCredential(origin, err)
	}
	base, err := url.Parse(config.Host)
	if err != nil {
		return nil, unusableCredential(origin, err)
	}
	return &Client{
		Server:  config.Host,
		Context: context,
		base:    base,
		http: &http.Client{
			Transport: transport,
			// The transport adds the credential to every request, so that a
			// redirect would hand it to whoever is named there.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		credential: credentialOf(config, origin),
		getenv:     o.getenv,
		pace:       defaultPace,
	}, nil
}

func unusableCredential(origin string, err error) *Error {
	// The text of a key that does not parse never stands in these errors.
	return badInput("the certificates or keys of "+origin+" cannot be used", "PEM that belongs together",
		err.Error(), "write the kubeconfig anew with `kubectl config view --raw --minify --flatten`", err)
}

// Counts say how many requests were sent.
type Counts struct {
	// Reads are the requests for the object, the fallback to v1beta2 included.
	Reads int
	// Watches are the watches that were opened.
	Watches int
	// Lookups are the requests for the list of APIs, after an answer that named
	// neither object nor API.
	Lookups int
	// Patches are the requests to reconcile.
	Patches int
}

type counts struct {
	reads, watches, lookups, patches atomic.Int64
}

// Counts gives the number of requests sent so far.
func (c *Client) Counts() Counts {
	return Counts{
		Reads:   int(c.counts.reads.Load()),
		Watches: int(c.counts.watches.Load()),
		Lookups: int(c.counts.lookups.Load()),
		Patches: int(c.counts.patches.Load()),
	}
}

// apiVersions gives the versions to try: the one that has answered, then the
// others.
func (c *Client) apiVersions() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	order := slices.Clone(versions)
	if i := slices.Index(order, c.version); i > 0 {
		order[0], order[i] = order[i], order[0]
	}
	return order
}

func (c *Client) settleVersion(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

// noteRead remembers what a read has seen. A read is the API server's newest
// word, even where it is lower than one before (a cluster restored from a
// backup).
func (c *Client) noteRead(namespace, name, resourceVersion string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest == nil {
		c.newest = map[string]string{}
	}
	c.newest[namespace+"/"+name] = resourceVersion
}

// CanaryIs says which object is the canary: where access to it is denied, the
// Role that would allow it is called CanaryRoleName.
func (c *Client) CanaryIs(namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canary = namespace + "/" + name
}

// roleName is the name of the Role that would allow a request.
func (c *Client) roleName(r request) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.canary == r.namespace+"/"+r.name {
		return CanaryRoleName
	}
	return GateName
}

// isOlder says that an event of a watch is older than the last read, so that it
// would take its receiver back in time. Resource versions of one resource
// compare as numbers (apimachinery pkg/util/resourceversion); where they do
// not, no event is called old.
func (c *Client) isOlder(namespace, name, resourceVersion string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	order, err := resourceversion.CompareResourceVersion(resourceVersion, c.newest[namespace+"/"+name])
	return err == nil && order < 0
}

// asError is errors.As for the errors of this package.
func asError(err error) (*Error, bool) {
	var failure *Error
	return failure, errors.As(err, &failure)
}

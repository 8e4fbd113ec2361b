package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"flux-verify-gate/test/stack/process"
)

// readyPoll is how often a starting API server is asked whether it is ready.
const readyPoll = 50 * time.Millisecond

// StartAPIServer starts the API server after StopAPIServer or KillAPIServer, on
// the same port and etcd, and returns when it is ready. It is an error if one
// is running.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.startAPIServer(ctx)
}

// StopAPIServer ends the API server in good order (requests are answered,
// watches closed) and returns when it is gone. Until StartAPIServer,
// connections are refused.
func (c *Cluster) StopAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopAPIServer()
}

// KillAPIServer ends the API server without a word to its clients, as a crash
// does, and returns when it is gone.
func (c *Cluster) KillAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return nil
	}
	err := c.server.Kill()
	c.server = nil
	return err
}

// RestartAPIServer stops the API server, waits until it is gone (else one would
// go on talking to the old one), starts it on the same port, and returns when
// it is ready. Its watch cache begins at the store's newest version then: a
// watch from any older resource version, even that of an object just read, ends
// with 410 Gone, and until the cache is filled a watch is refused with 429.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.stopAPIServer(); err != nil {
		return err
	}
	return c.startAPIServer(ctx)
}

func (c *Cluster) stopAPIServer() error {
	if c.server == nil {
		return nil
	}
	err := c.server.Stop()
	c.server = nil
	return err
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	if c.server != nil {
		return errors.New("the API server is running already: stop it first")
	}
	if c.etcd == nil {
		return errors.New("the cluster is stopped: start another one")
	}
	var err error
	c.server, err = process.Start(process.Config{
		Name:  "kube-apiserver",
		Path:  c.options.APIServer,
		Args:  append(c.apiServerArgs(), c.options.APIServerArgs...),
		Log:   c.path("log", "kube-apiserver.log"),
		Grace: 20 * time.Second,
	})
	if err != nil {
		return err
	}
	if err := c.waitReady(ctx); err != nil {
		err = errors.Join(err, c.server.Kill())
		c.server = nil
		return err
	}
	return nil
}

func (c *Cluster) apiServerArgs() []string {
	return []string{
		"--etcd-servers=http://" + c.etcdPort.Address(),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.serverPort.Port()),
		"--permit-port-sharing",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file=" + c.path("pki", "apiserver.crt"),
		"--tls-private-key-file=" + c.path("pki", "apiserver.key"),
		"--client-ca-file=" + c.path("pki", "ca.crt"),
		"--service-account-issuer=" + c.Server(),
		"--service-account-key-file=" + c.path("pki", "tokens.pub"),
		"--service-account-signing-key-file=" + c.path("pki", "tokens.key"),
		"--authorization-mode=RBAC",
		// Nobody makes the default service accounts that it asks for.
		"--disable-admission-plugins=ServiceAccount",
		// Without it a stopping server keeps its watches open for a minute.
		"--shutdown-watch-termination-grace-period=2s",
		"--audit-log-path=" + c.path("log", "audit.log"),
		"--audit-policy-file=" + c.path("pki", "audit.yaml"),
	}
}

// waitReady returns when /readyz says so, or the API server or etcd has ended,
// or the time is over.
func (c *Cluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := rest.UnversionedRESTClientFor(withCodec(c.restConfig))
	if err != nil {
		return fmt.Errorf("cannot make a client to ask whether the API server is ready: %w", err)
	}
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		// verbose, so that the error names the check that failed.
		body, err := client.Get().AbsPath("/readyz").Param("verbose", "").MaxRetries(0).DoRaw(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.server.Done():
			return c.server.Failure()
		case <-c.etcd.Done():
			return c.etcd.Failure()
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %w (last answer: %w %s; log: %s)",
				ctx.Err(), err, body, c.path("log", "kube-apiserver.log"))
		case <-tick.C:
		}
	}
}

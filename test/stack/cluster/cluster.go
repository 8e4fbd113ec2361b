package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"flux-verify-gate/test/stack/port"
	"flux-verify-gate/test/stack/process"
)

// startTimeout bounds the time until the API server is ready. On two busy cores
// it takes 3 to 15 seconds.
const startTimeout = 2 * time.Minute

// Options says how to run a cluster.
type Options struct {
	// Dir is the directory for everything that the cluster writes: pki, etcd,
	// log. It is made if need be, and left when the cluster stops.
	Dir string
	// Etcd and APIServer are the programs, as package build makes them.
	Etcd, APIServer string
	// APIServerArgs are added to the API server's flags and win over them.
	// Useful: --watch-cache=false (watches then end with etcd's compaction),
	// --min-request-timeout=2 (watches end after 2 to 4 seconds).
	APIServerArgs []string
	// Logf, when set, is told what happens.
	Logf func(format string, args ...any)
}

// Cluster is a running API server and its etcd. Its methods may be called from
// several goroutines; those that stop or start a server wait for each other.
type Cluster struct {
	options  Options
	ca       *authority // of the API server and of its users
	stranger *authority // trusted by nobody
	admin    Credentials

	etcdPort, serverPort *port.Reservation

	mu         sync.Mutex // guards the processes
	etcd       *process.Process
	server     *process.Process
	restConfig *rest.Config
	dynamic    dynamic.Interface
}

// Start runs etcd and the API server and returns when the API server is ready.
// The caller must call Stop; if this process dies before that, the servers die
// with it (on Linux; see package process).
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{options: options}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	begin := time.Now()
	var err error
	if c.options.Dir, err = filepath.Abs(c.options.Dir); err != nil {
		return fmt.Errorf("cannot make the cluster's directory absolute: %w", err)
	}
	for _, dir := range []string{"pki", "etcd", "log"} {
		if err := os.MkdirAll(filepath.Join(c.options.Dir, dir), 0o700); err != nil {
			return fmt.Errorf("cannot make the cluster's directory: %w", err)
		}
	}
	if c.etcdPort, err = port.Reserve(); err != nil {
		return err
	}
	if c.serverPort, err = port.Reserve(); err != nil {
		return err
	}
	if err := c.makePKI(); err != nil {
		return err
	}
	if err := c.makeClients(); err != nil {
		return err
	}
	if err := c.startEtcd(); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	c.logf("kube-apiserver %s is ready after %s (logs: %s)", c.Server(), time.Since(begin).Round(time.Millisecond), c.path("log"))
	return nil
}

// makePKI makes the authorities, the administrator, and the files that the API
// server reads.
func (c *Cluster) makePKI() error {
	var err error
	if c.ca, err = newAuthority("stack"); err != nil {
		return err
	}
	// The same name: a client must tell them apart by the key.
	if c.stranger, err = newAuthority("stack"); err != nil {
		return err
	}
	if c.admin, err = c.User("admin", "system:masters"); err != nil {
		return err
	}
	server, err := c.ca.server()
	if err != nil {
		return err
	}
	tokenKey, tokenPub, err := tokenKeys()
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"ca.crt": c.ca.pem, "apiserver.crt": server.cert, "apiserver.key": server.key,
		"tokens.key": tokenKey, "tokens.pub": tokenPub, "audit.yaml": []byte(auditPolicy),
	} {
		if err := os.WriteFile(c.path("pki", name), data, 0o600); err != nil {
			return fmt.Errorf("cannot write the cluster's keys: %w", err)
		}
	}
	return nil
}

// Server returns the API server's URL, https://127.0.0.1:port. It stays the
// same when the API server is restarted.
func (c *Cluster) Server() string { return "https://" + c.serverPort.Address() }

// CA returns the certificate, in PEM, that the API server's certificate was
// issued under.
func (c *Cluster) CA() []byte { return c.ca.pem }

// StrangerCA returns a certificate, in PEM, of an authority with the same name
// as CA's that issued nothing that is in use here.
func (c *Cluster) StrangerCA() []byte { return c.stranger.pem }

// Dir returns the absolute path of the cluster's directory.
func (c *Cluster) Dir() string { return c.options.Dir }

// Stop ends the API server, then etcd, and returns when both are gone. A
// second call does nothing. Errors: a server that had ended before it was asked
// to, or did not end when asked to (it was killed then). Nothing is running
// afterwards in either case.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.stopAPIServer()
	if c.etcd != nil {
		err = errors.Join(err, c.etcd.Stop())
		c.etcd = nil
	}
	err = errors.Join(err, c.serverPort.Release(), c.etcdPort.Release())
	c.serverPort, c.etcdPort = nil, nil
	return err
}

func (c *Cluster) path(elem ...string) string {
	return filepath.Join(append([]string{c.options.Dir}, elem...)...)
}

func (c *Cluster) logf(format string, args ...any) {
	if c.options.Logf != nil {
		c.options.Logf(format, args...)
	}
}

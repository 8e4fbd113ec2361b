package live

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/clustertest"
	"flux-verify-gate/test/stack/crd"
	"flux-verify-gate/test/stack/testcontroller"
)

// late are the inputs of a run that waits for another digest than the first.
func late() map[string]string { return map[string]string{"digest": testcontroller.Digest("b")} }

// waits starts a gate and returns when it is seen waiting.
func (p *place) waits(changes ...map[string]string) *actiontest.Process {
	p.t.Helper()
	g := p.gate(changes...)
	g.Saw(waiting)
	return g
}

// TestUpgrades takes a cluster from no Flux to an old one and to a new one.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, cluster.Options{})

	t.Run("the API is missing for good", func(t *testing.T) {
		p := newPlace(t, c, shipped(t, "role.yaml"))
		comes := newPlace(t, c, shipped(t, "role.yaml"))
		// It comes for one gate, in the next test, and not for the other, whose
		// minute is over.
		p.gate(map[string]string{"timeout": "0"}).Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.APIMissing})
		f := p.gate().Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.APIMissing}).Finding(t, gate.APIMissing)
		if !strings.Contains(f.Found, "no source.toolkit.fluxcd.io among the API groups") {
			t.Errorf("got %q", f.Found)
		}
		g := comes.waits()
		define(t, c, crd.Flux27(), "v1beta2")
		comes.resource = schema.GroupVersionResource{Group: sourcev1.GroupVersion.Group, Version: "v1beta2", Resource: "ocirepositories"}
		comes.create()
		comes.settle(revision("a"))
		if r := g.Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified}); r.Report.Source.APIVersion != "source.toolkit.fluxcd.io/v1beta2" {
			t.Errorf("got %q", r.Report.Source.APIVersion)
		}
	})
	if t.Failed() {
		return
	}

	t.Run("v1beta2, then v1", func(t *testing.T) {
		p := newPlace(t, c, shipped(t, "role.yaml"))
		p.resource = schema.GroupVersionResource{Group: sourcev1.GroupVersion.Group, Version: "v1beta2", Resource: "ocirepositories"}
		p.create()
		p.settle(revision("a"))
		r := p.gate().Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
		if r.Report.Source.APIVersion != "source.toolkit.fluxcd.io/v1beta2" {
			t.Errorf("got %q", r.Report.Source.APIVersion)
		}
		g := p.waits(late())
		// Flux is upgraded while the gate waits.
		define(t, c, crd.Flux29(), "")
		p.resource = testcontroller.Resource()
		p.settle(revision("b"))
		if r := g.Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified}); r.Report.Source.APIVersion != "source.toolkit.fluxcd.io/v1" {
			t.Errorf("got %q", r.Report.Source.APIVersion)
		}
	})
}

// TestOutages takes a cluster through a restart, a crash with a compaction, a
// cut line and the end.
func TestOutages(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, cluster.Options{})
	define(t, c, crd.Flux29(), "")
	// Each outage is seen by gates in several states at once.
	for _, outage := range []struct {
		name  string
		cause func(t *testing.T)
	}{
		{"a restart", func(t *testing.T) { check(t, c.RestartAPIServer(t.Context())) }},
		{"a crash and a compaction", func(t *testing.T) {
			check(t, c.KillAPIServer())
			_, err := c.Compact(t.Context())
			check(t, err)
			check(t, c.StartAPIServer(t.Context()))
		}},
	} {
		t.Run(outage.name, func(t *testing.T) {
			settled := func(edits ...func(*sourcev1.OCIRepository)) *place {
				p := newPlace(t, c, shipped(t, "role.yaml"))
				p.create(edits...)
				p.settle(revision("a"))
				return p
			}
			artifact, policy, missing, still := settled(), settled(func(o *sourcev1.OCIRepository) { o.Spec.Verify.SecretRef.Name = "other" }),
				newPlace(t, c, shipped(t, "role.yaml")), settled()
			gates := []*actiontest.Process{
				artifact.waits(late()), policy.waits(), missing.waits(),
				still.waits(late(), map[string]string{"timeout": "20s"}),
			}
			// History for the compaction to drop.
			for range 5 {
				artifact.settle(revision("c"))
				artifact.settle(revision("a"))
			}
			outage.cause(t)
			artifact.settle(revision("b"))
			policy.edit(func(o *sourcev1.OCIRepository) { o.Spec.Verify.SecretRef.Name = "cosign" })
			policy.settle(revision("a"))
			missing.create()
			missing.settle(revision("a"))
			for _, g := range gates[:3] {
				g.Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
			}
			gates[3].Is(actiontest.Want{Verdict: gate.Rejected, Reason: gate.DigestMismatch})
			for _, p := range []*place{artifact, policy, missing, still} {
				// Two watches or a few, and not one for each moment of the outage.
				if got := p.requests(); got["watch"] > 12 || got["get"] > 12 {
					t.Errorf("got requests %v", got)
				}
			}
		})
	}

	t.Run("unreachable, then reachable", func(t *testing.T) {
		p := newPlace(t, c, shipped(t, "role.yaml"))
		p.create()
		p.settle(revision("a"))
		line := newLine(t, c)
		inputs := map[string]string{"server": line.address, "tls-server-name": cluster.ServerName}
		line.cut()
		p.gate(inputs, map[string]string{"timeout": "2s"}).Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.Unreachable})
		g := p.waits(inputs)
		line.mend()
		g.Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})

		// Cut while the gate waits, and mended.
		g = p.waits(inputs, late())
		line.cut()
		g.Saw("cannot be reached")
		p.settle(revision("b"))
		line.mend()
		g.Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
	})

	t.Run("the server is gone for good", func(t *testing.T) {
		p := newPlace(t, c, shipped(t, "role.yaml"))
		p.create()
		p.settle(revision("a"))
		g := p.waits(late(), map[string]string{"timeout": "8s"})
		check(t, c.StopAPIServer())
		// What was pending fails at the deadline by the last read.
		r := g.Is(actiontest.Want{Verdict: gate.Rejected, Reason: gate.DigestMismatch})
		r.Finding(t, gate.NoAnswer)
		p.gate().Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.Unreachable})
		check(t, c.StartAPIServer(t.Context()))
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// line is a connection to the API server from an address that is not a
// loopback one, on which nothing is final, and that can be cut.
type line struct {
	t        *testing.T
	host     string
	target   string
	address  string
	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
}

func newLine(t *testing.T, c *cluster.Cluster) *line {
	t.Helper()
	l := &line{t: t, target: strings.TrimPrefix(c.Server(), "https://"), open: map[net.Conn]bool{}}
	addresses, err := net.InterfaceAddrs()
	check(t, err)
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			l.host = ip.IP.String()
		}
	}
	if l.host == "" {
		t.Skip("this machine has no address but its loopback ones, on which the gate gives up at once")
	}
	l.listen("0")
	l.address = "https://" + l.listener.Addr().String()
	t.Cleanup(l.cut)
	return l
}

func (l *line) listen(port string) {
	l.t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(l.host, port))
	check(l.t, err)
	l.mu.Lock()
	l.listener = listener
	l.mu.Unlock()
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", l.target)
			if err != nil {
				from.Close()
				continue
			}
			l.mu.Lock()
			l.open[from], l.open[to] = true, true
			l.mu.Unlock()
			go l.copy(from, to)
			go l.copy(to, from)
		}
	}()
}

func (l *line) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, from)
	delete(l.open, to)
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener.Close()
	for c := range l.open {
		c.Close()
	}
}

func (l *line) mend() {
	l.t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(l.address, "https://"))
	check(l.t, err)
	l.listen(port)
}

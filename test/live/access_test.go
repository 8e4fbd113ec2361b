package live

import (
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
)

// What the gate may not do it names, with the Role that would allow it; the
// Role that it prints does allow it.
func TestNoRole(t *testing.T) {
	t.Parallel()
	p := newPlace(t, steadyCluster(t), "")
	p.create()
	p.settle(revision("a"))
	r := p.gate(map[string]string{"timeout": "4m"}).Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.AccessDenied})
	f := r.Finding(t, gate.AccessDenied)
	for _, part := range []string{p.user, "get ocirepositories.source.toolkit.fluxcd.io", object, p.namespace} {
		if !strings.Contains(f.Title, part) {
			t.Errorf("the finding does not name %q: %s", part, f.Title)
		}
	}
	p.allow(printedRole(t, r.Stdout))
	p.gate().Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
}

// printedRole cuts the Role and RoleBinding out of the log.
func printedRole(t *testing.T, log string) string {
	t.Helper()
	_, rest, found := strings.Cut(log, "apiVersion: rbac.authorization.k8s.io/v1\n")
	if !found {
		t.Fatalf("the log has no Role:\n%s", log)
	}
	var role strings.Builder
	role.WriteString("apiVersion: rbac.authorization.k8s.io/v1\n")
	for line := range strings.Lines(rest) {
		// What comes after it begins with one of the log's symbols.
		if !strings.ContainsAny(line[:1], " -abcdefghijklmnopqrstuvwxyz") {
			break
		}
		role.WriteString(line)
	}
	return role.String()
}

// The shipped Role is for one name, and for nothing else.
func TestShippedRoleIsForOneName(t *testing.T) {
	t.Parallel()
	p := steadyPlace(t)
	p.create()
	p.settle(revision("a"))
	p.gate(map[string]string{"name": "other", "timeout": "4m"}).Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.AccessDenied})
	p.gate(map[string]string{"namespace": "default", "timeout": "4m"}).Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.AccessDenied})
	p.gate(map[string]string{"reconcile": "true", "timeout": "4m"}).Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.AccessDenied})
	p.gate().Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
}

// Watching is a convenience: without it the gate says so, reads every 15 s and
// comes to the same verdict.
func TestNoWatch(t *testing.T) {
	t.Parallel()
	p := newPlace(t, steadyCluster(t), strings.Replace(shipped(t, "role.yaml"), "'get', 'watch'", "'get'", 1))
	p.create()
	g := p.gate()
	g.Saw("it reads every 15s instead")
	p.settle(revision("a"))
	g.Is(actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified})
	if got := p.requests(); got["watch"] > 3 || got["get"] < 2 || got["get"] > 8 {
		t.Errorf("got requests %v", got)
	}
}

// Without get there is nothing: watch alone is not used.
func TestNoGet(t *testing.T) {
	t.Parallel()
	p := newPlace(t, steadyCluster(t), strings.Replace(shipped(t, "role.yaml"), "'get', 'watch'", "'watch'", 1))
	p.create()
	p.settle(revision("a"))
	p.gate(map[string]string{"timeout": "4m"}).Is(actiontest.Want{Verdict: gate.Undecided, Reason: gate.AccessDenied})
}

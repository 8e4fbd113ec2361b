package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// testSigner is a Sigstore that signs in the older layout too, which needs a log
// like Rekor v1. Everything else is done with a real Sigstore.
type testSigner struct {
	s     *stage
	root  string
	input io.Writer
	lines *bufio.Scanner
}

var testsign struct {
	once sync.Once
	path string
	err  error
}

// testSigstore starts a Sigstore of the scenario's own and has the policy and
// the gate trust it instead of the stack's.
func (s *stage) testSigstore() *testSigner {
	s.t.Helper()
	testsign.once.Do(func() {
		testsign.path = filepath.Join(s.world.dir, "testsign")
		cmd := exec.Command("go", "build", "-o", testsign.path, "./gate/signature/internal/testsigstore/testsign")
		cmd.Dir = filepath.Join("..", "..")
		var output []byte
		if output, testsign.err = cmd.CombinedOutput(); testsign.err != nil {
			s.t.Logf("%s", output)
		}
	})
	s.check(testsign.err)
	signer := &testSigner{s: s, root: filepath.Join(s.t.TempDir(), "trusted_root.json")}
	cmd := exec.Command(testsign.path, signer.root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	input, err := cmd.StdinPipe()
	s.check(err)
	output, err := cmd.StdoutPipe()
	s.check(err)
	s.check(cmd.Start())
	s.t.Cleanup(func() {
		_ = input.Close()
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("testsign: %v: %s", err, stderr.String())
		}
	})
	signer.input, signer.lines = input, bufio.NewScanner(output)
	signer.answer()
	s.trustRoot(signer.root)
	return signer
}

func (g *testSigner) answer() {
	g.s.t.Helper()
	if !g.lines.Scan() || g.lines.Text() != "ok" {
		g.s.t.Fatalf("testsign: %s %v", g.lines.Text(), g.lines.Err())
	}
}

// job is a job of GitHub Actions, as testsign takes it.
type job struct {
	Repository string `json:"repository"`
	Workflow   string `json:"workflow"`
	Ref        string `json:"ref"`
}

var (
	ofDefault  = job{"acme/platform", "cd.yaml", "refs/heads/main"}
	ofRelease  = job{"acme/platform", "release.yaml", "refs/heads/main"}
	ofStranger = job{"mallory/platform", "cd.yaml", "refs/heads/main"}
)

func (g *testSigner) sign(digest string, by job, bundle bool) {
	g.s.t.Helper()
	line, err := json.Marshal(struct {
		job
		Reference string `json:"reference"`
		Bundle    bool   `json:"bundle"`
	}{by, g.s.reference(digest), bundle})
	g.s.check(err)
	_, err = g.input.Write(append(line, '\n'))
	g.s.check(err)
	g.answer()
}

// signTag signs under the tag sha256-<hex>.sig.
func (g *testSigner) signTag(digest string, by job) { g.s.t.Helper(); g.sign(digest, by, false) }

// signBundle signs with a bundle among the referrers.
func (g *testSigner) signBundle(digest string, by job) { g.s.t.Helper(); g.sign(digest, by, true) }

package cluster_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/clustertest"
)

// processesNaming returns the command lines of the running processes that name
// text, as the servers name their cluster's directory.
func processesNaming(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), text) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

func noProcessNames(t *testing.T, dir string) {
	t.Helper()
	if left := processesNaming(t, dir); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, cluster.Options{})
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("second stop: %v", err)
	}
	if err := c.StartAPIServer(context.Background()); err == nil {
		t.Error("an API server started in a stopped cluster")
	}
	noProcessNames(t, c.Dir())
	for _, name := range []string{"etcd.log", "kube-apiserver.log"} {
		if data, err := os.ReadFile(c.Dir() + "/log/" + name); err != nil || len(data) == 0 {
			t.Errorf("the log %s was not kept: %v", name, err)
		}
	}
}

const orphanDir = "STACK_TEST_ORPHAN_DIR"

// TestOrphan is the victim of TestKilled.
func TestOrphan(t *testing.T) {
	dir := os.Getenv(orphanDir)
	if dir == "" {
		t.Skip("runs in a process that TestKilled starts")
	}
	clustertest.Start(t, cluster.Options{Dir: dir})
	fmt.Println("ready")
	<-t.Context().Done()
	select {} // killed here
}

// TestKilled kills a test process with a running cluster, which can then do
// nothing for its children.
func TestKilled(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	victim := exec.CommandContext(t.Context(), self, "-test.run=^TestOrphan$")
	victim.Env = append(os.Environ(), orphanDir+"="+dir)
	stdout, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the victim said %q, %v", line, err)
	}
	// etcd and the API server. The victim has the directory in its environment.
	if running := processesNaming(t, dir); len(running) != 2 {
		t.Errorf("before: %d processes, want 2: %q", len(running), running)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	victim.Wait() // it was killed: an error
	until(t, "the servers died with their test", func() bool { return len(processesNaming(t, dir)) == 0 })
}

package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"flux-verify-gate/test/stack/cluster"
	"flux-verify-gate/test/stack/clustertest"
	"flux-verify-gate/test/stack/process/processtest"
)

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
	processtest.NoneNames(t, c.Dir())
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
	if running := processtest.Naming(t, dir); len(running) != 2 {
		t.Errorf("before: %d processes, want 2: %q", len(running), running)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	victim.Wait() // it was killed: an error
	until(t, "the servers died with their test", func() bool { return len(processtest.Naming(t, dir)) == 0 })
}

package localsigstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"flux-verify-gate/test/stack/localsigstore"
	"flux-verify-gate/test/stack/process/processtest"
)

func TestStop(t *testing.T) {
	t.Parallel()
	s := start(t, localsigstore.Options{})
	if running := processtest.Naming(t, s.Dir()); len(running) != len(localsigstore.Services()) {
		t.Errorf("before: %d processes: %q", len(running), running)
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.StartService(context.Background(), localsigstore.Rekor); err == nil {
		t.Error("a service started in a stopped Sigstore")
	}
	processtest.NoneNames(t, s.Dir())
	for _, name := range localsigstore.Services() {
		if data, err := os.ReadFile(s.Log(name)); err != nil || len(data) == 0 {
			t.Errorf("the log of %s was not kept: %v", name, err)
		}
	}
}

const orphanDir = "STACK_TEST_ORPHAN_SIGSTORE_DIR"

// TestOrphan is the victim of TestKilled.
func TestOrphan(t *testing.T) {
	dir := os.Getenv(orphanDir)
	if dir == "" {
		t.Skip("runs in a process that TestKilled starts")
	}
	if _, err := localsigstore.Start(t.Context(), localsigstore.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	select {} // killed here
}

// TestKilled kills a test process with a running Sigstore, which can then do
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
	if running := processtest.Naming(t, dir); len(running) != len(localsigstore.Services()) {
		t.Errorf("before: %d processes: %q", len(running), running)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	victim.Wait() // it was killed: an error
	for len(processtest.Naming(t, dir)) > 0 {
		select {
		case <-t.Context().Done():
			t.Fatalf("left running: %q", processtest.Naming(t, dir))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

package container_test

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// How the runner cancels a step (actions/runner v2.336, ProcessInvoker.cs):
// SIGINT, SIGTERM when that has not ended it, and then it is killed.
const (
	untilTerminate = 7500 * time.Millisecond
	untilKill      = 2500 * time.Millisecond
)

// silent is a server on the loopback interface that accepts connections and
// never answers. Its channel gives one value for each.
func silent(t *testing.T) (address string, asked <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections := make(chan struct{}, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			open = append(open, conn)
			connections <- struct{}{}
		}
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String(), connections
}

// await waits until a step has asked a server, and ends the test if it ends
// before. The step's own timeout bounds it.
func (r *running) await(asked <-chan struct{}) {
	r.t.Helper()
	select {
	case <-asked:
	case err := <-r.done:
		r.t.Fatalf("the step ended and asked nobody: %v\n%s", err, r.printed())
	}
}

// gate gives the process of the gate, which Docker would signal.
func (r *running) gate() *os.Process {
	r.t.Helper()
	return r.descendant(filepath.Base(theAction(r.t).Runs.Entrypoint))
}

// descendant gives the process below buildah that runs a program, waiting for it
// to have started; the test ends if buildah ends before.
func (r *running) descendant(name string) *os.Process {
	r.t.Helper()
	for {
		if pid := descendant(r.cmd.Process.Pid, name); pid != 0 {
			process, err := os.FindProcess(pid)
			r.must(err)
			return process
		}
		select {
		case err := <-r.done:
			r.t.Fatalf("%s is not running: %v\n%s", name, err, r.printed())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// descendant gives the number of a process, or of one below it, that runs a
// program of that name; 0 if there is none.
func descendant(pid int, name string) int {
	if program, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil && filepath.Base(program) == name {
		return pid
	}
	// Processes come and go while this looks; what cannot be read is gone.
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			number, err := strconv.Atoi(child)
			if err != nil {
				continue
			}
			if found := descendant(number, name); found != 0 {
				return found
			}
		}
	}
	return 0
}

// cancel ends the step as the runner does, with the signals that are given, and
// fails the test if it had to be killed.
func (r *running) cancel(signals ...syscall.Signal) result {
	t := r.t
	t.Helper()
	process := r.gate()
	signal := func(s syscall.Signal) {
		if err := process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%v: %v", s, err)
		}
	}
	started := time.Now()
	signal(signals[0])
	pause := untilTerminate
	for _, s := range append(signals[1:], syscall.SIGKILL) {
		if s == syscall.SIGKILL {
			pause = untilKill
		}
		select {
		case err := <-r.done:
			t.Logf("it ended %s after the first signal", time.Since(started).Round(time.Millisecond))
			return r.ended(err)
		case <-time.After(pause):
			signal(s)
		}
	}
	t.Errorf("it had to be killed")
	return r.ended(<-r.done)
}

// isProcessOne says that a process is the first one of its namespace.
func isProcessOne(t *testing.T, pid int) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		// The last of these is its number in its own namespace.
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			return strings.HasSuffix(strings.TrimSpace(ids), "\t1")
		}
	}
	t.Fatal("expected a line NSpid: in the status of a process, found none")
	return false
}

func TestCancelledWhileItWaits(t *testing.T) {
	theImage(t)
	tests := []struct {
		name       string
		signals    []syscall.Signal
		processOne bool
	}{
		{"as the runner does", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, false},
		{"as the runner does, as process 1", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, true},
		{"by SIGTERM alone", []syscall.Signal{syscall.SIGTERM}, false},
		{"by SIGTERM alone, as process 1", []syscall.Signal{syscall.SIGTERM}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			address, asked := silent(t)
			s := live(map[string]string{"timeout": "10m"}, map[string]string{"KUBECONFIG": hostTemp + "/kc"},
				map[string]string{hostTemp + "/kc": kubeconfig("https://"+address, "")})
			s.processOne = tt.processOne
			r := s.start(t.Context(), t)
			r.await(asked)
			if got := isProcessOne(t, r.gate().Pid); got != tt.processOne {
				t.Errorf("the gate is process 1: %v, want %v", got, tt.processOne)
			}
			res := r.cancel(tt.signals...)
			res.want("undecided", "cancelled", 2)
			res.says("https://" + address)
			res.wantReport("flux-verify-gate-report.json", "undecided")
		})
	}
}

// TestCancelledWithASecondSignal sends the second signal at once, so that it
// comes while the outputs are being written.
func TestCancelledWithASecondSignal(t *testing.T) {
	address, asked := silent(t)
	r := live(map[string]string{"timeout": "10m"}, map[string]string{"KUBECONFIG": hostTemp + "/kc"},
		map[string]string{hostTemp + "/kc": kubeconfig("https://"+address, "")}).start(t.Context(), t)
	r.await(asked)
	process := r.gate()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGINT} {
		if err := process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	}
	r.wait().want("undecided", "cancelled", 2)
}

// TestKilled holds that a step that has no time to say anything has said that
// nothing is known.
func TestKilled(t *testing.T) {
	address, asked := silent(t)
	r := live(map[string]string{"timeout": "10m"}, map[string]string{"KUBECONFIG": hostTemp + "/kc"},
		map[string]string{hostTemp + "/kc": kubeconfig("https://"+address, "")}).start(t.Context(), t)
	r.await(asked)
	r.must(r.gate().Kill())
	res := r.wait()
	if res.status == 0 || res.outputs["verdict"] != "undecided" || res.outputs["verified"] != "false" || res.outputs["reference"] != "" {
		t.Errorf("exit status %d and outputs %v, want a failure and undecided", res.status, res.outputs)
	}
}

// TestTrustedRootInTheContainer holds that the TUF client has the folder that
// it needs: it gets as far as asking its repository, here through a proxy that
// does not answer, and the folder is gone when the step is cancelled.
func TestTrustedRootInTheContainer(t *testing.T) {
	asked := make(chan struct{}, 100)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			// The registry of the recording is asked too.
			if request, err := http.ReadRequest(bufio.NewReader(conn)); err == nil && strings.Contains(request.Host, "sigstore") {
				asked <- struct{}{}
			}
		}
	}()
	s := recorded(t, "verified.json", map[string]string{"signature": "verify"})
	s.env = map[string]string{"HTTPS_PROXY": "http://" + listener.Addr().String()}
	r := s.start(t.Context(), t)
	r.await(asked)
	folders, err := filepath.Glob(filepath.Join(r.image.root, "tmp", "flux-verify-gate-tuf-*"))
	if err != nil || len(folders) != 1 {
		t.Errorf("found the folders %v in /tmp, want one of the TUF client's: %v", folders, err)
	}
	res := r.cancel(syscall.SIGINT, syscall.SIGTERM)
	if res.status == 0 || res.outputs["verified"] != "false" {
		t.Errorf("exit status %d and verified=%q, want a failure and false", res.status, res.outputs["verified"])
	}
	if strings.Contains(res.log, "temporary directory") {
		t.Errorf("the TUF client had no temporary folder")
	}
	res.showIfFailed()
}

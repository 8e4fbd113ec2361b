package process

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// interruptGrace is how long an interrupted command may clean up.
const interruptGrace = 10 * time.Second

// Run runs cmd, made by exec.CommandContext, to its end, as cmd.Run does. When
// its context ends, or this process dies, cmd is interrupted (SIGINT, which the
// go command takes as the order to clean up), and ten seconds after the
// context's end it is killed. It sets SysProcAttr, Cancel and WaitDelay.
func Run(cmd *exec.Cmd) error {
	// The kernel's signal is bound to the starting thread. See the package
	// comment.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tie(cmd, syscall.SIGINT)
	cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = interruptGrace
	return cmd.Run()
}

// signalGroup signals the process group of a started child.
func signalGroup(pid int, sig syscall.Signal) error {
	err := syscall.Kill(-pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

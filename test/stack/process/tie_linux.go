package process

import (
	"os/exec"
	"syscall"
)

// tie puts cmd, before it is started, into a process group of its own (a
// terminal's interrupt must not reach it: the stack has an order to stop in)
// and has the kernel send it sig when the starting thread dies.
func tie(cmd *exec.Cmd, sig syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: sig}
}

//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// tie puts cmd, before it is started, into a process group of its own. There is
// no signal of the parent's death here.
func tie(cmd *exec.Cmd, _ syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

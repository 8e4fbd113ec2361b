package actiontest

import "syscall"

// tied ends the gate with the test binary, however that ends.
func tied() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

//go:build !linux

package live

import "syscall"

func tied() *syscall.SysProcAttr { return nil }

//go:build !linux

package actiontest

import "syscall"

func tied() *syscall.SysProcAttr { return nil }

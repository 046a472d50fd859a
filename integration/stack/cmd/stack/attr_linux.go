package main

import "syscall"

// commandAttr ends the command when this process dies, so that it does not go on without its stack. It stays in the
// process group, and so can read from the terminal.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}

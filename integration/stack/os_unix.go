//go:build unix

package stack

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes the lock of an open file, which goes with the process. Without wait it reports whether it got it.
func lockFile(f *os.File, wait bool) (got bool, err error) {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), how); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case !wait && errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return false, err
		}
	}
}

// pauseProcess freezes a process, or lets it go on.
func pauseProcess(p *os.Process, pause bool) error {
	if pause {
		return p.Signal(syscall.SIGSTOP)
	}
	return p.Signal(syscall.SIGCONT)
}

// terminateProcess asks a process to end, one that is frozen too.
func terminateProcess(p *os.Process) error {
	return errors.Join(p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT))
}

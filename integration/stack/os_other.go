//go:build !unix

package stack

import (
	"errors"
	"os"
	"syscall"
)

// Elsewhere the package builds, so that the module does. There are no locks, and no pauses.

func childAttr() *syscall.SysProcAttr { return nil }

func lockFile(*os.File, bool) (bool, error) { return true, nil }

func pauseProcess(*os.Process, bool) error { return errors.ErrUnsupported }

func terminateProcess(p *os.Process) error { return p.Kill() }

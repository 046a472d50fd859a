package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"blobfeed/integration/stack"
)

// Instance is a process of the program.
type Instance struct {
	Name string
	slot int
	cmd  *exec.Cmd
	log  string          // path
	done <-chan struct{} // closed when it has ended
}

// Launch starts the program with settings NAME=value. What it writes goes to the file log.
func Launch(program, log string, args []string, settings ...string) (*Instance, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("opening the log of an instance: %w", err)
	}
	i := &Instance{cmd: exec.Command(program, args...), log: log}
	i.cmd.Env = append(append(os.Environ(), "BRIDGE_HTTP_ADDR=off"), settings...) // there are several
	if i.done, err = stack.StartTied(i.cmd, out); err != nil {
		return nil, fmt.Errorf("starting an instance: %w", err)
	}
	return i, nil
}

// PID is of the process, which may have ended.
func (i *Instance) PID() int { return i.cmd.Process.Pid }

// Running reports whether it has not ended.
func (i *Instance) Running() bool {
	select {
	case <-i.done:
		return false
	default:
		return true
	}
}

// Signal is for a process that may have ended.
func (i *Instance) Signal(s syscall.Signal) error {
	if err := i.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signalling %s: %w", i.Name, err)
	}
	return nil
}

// Kill ends it as a crash does.
func (i *Instance) Kill() {
	_ = i.cmd.Process.Kill() // it may have ended
	<-i.done
}

// Wait returns when it has ended in order, or not in time.
func (i *Instance) Wait(limit time.Duration) error {
	select {
	case <-i.done:
		if code := i.cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("%s ended with exit code %d:\n%s", i.Name, code, i.tail())
		}
		return nil
	case <-time.After(limit):
		_ = i.cmd.Process.Signal(syscall.SIGQUIT) // its stacks are in the log then
		<-i.done
		return fmt.Errorf("%s has not ended after %s:\n%s", i.Name, limit, i.tail())
	}
}

// tail returns the last lines of the log.
func (i *Instance) tail() string {
	b, err := os.ReadFile(i.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(b), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "")
}

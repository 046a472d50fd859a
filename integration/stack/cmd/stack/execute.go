package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// execute runs a command and returns its exit code, as a shell has it: 128 and the number for one that a signal ended.
// A signal is passed on, and the command decides; a second one kills it.
func execute(command, env []string, signals <-chan os.Signal, logf func(string, ...any)) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = commandAttr()
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the death signal is tied to the thread that forks
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return 0, fmt.Errorf("starting %s: %w", command[0], err)
	}
	for count := 0; ; {
		select {
		case sig := <-signals:
			count++
			switch {
			case count > 1:
				logf("killing %s: this was the second signal", command[0])
				_ = cmd.Process.Kill() // it may have ended
			case sig == os.Interrupt && terminal(os.Stdin):
				// Ctrl-C went to the command as well: it is in the terminal's process group.
			default:
				_ = cmd.Process.Signal(sig) // it may have ended
			}
		case err := <-ended:
			return exitCode(err)
		}
	}
}

func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// terminal reports whether f is one. The null device is of the same kind, but no Ctrl-C comes from there.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

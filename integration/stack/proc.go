package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// proc is a child process.
type proc struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has been reaped
}

// spawn starts a child that, on Linux, the kernel kills when this process dies, however it dies. Pdeathsig is sent when
// the *thread* that forked exits, so the child is started and awaited on a locked thread that lives as long as the child.
func (s *Stack) spawn(name, bin string, args ...string) (*proc, error) {
	p := &proc{name: name, log: filepath.Join(s.dir, name+".log"), cmd: exec.Command(bin, args...), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = childAttr()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		defer close(p.done)
		defer out.Close()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the state tells
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	s.mu.Lock()
	s.procs = append(s.procs, p)
	s.mu.Unlock()
	return p, nil
}

// await returns when ready does not fail any more.
func (p *proc) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		try, c := context.WithTimeout(ctx, time.Second)
		err := ready(try)
		c()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s exited: %v\n%s", p.name, p.cmd.ProcessState, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.name, err, p.tail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tail returns the end of the log.
func (p *proc) tail() []byte {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return b[max(0, len(b)-2000):]
}

func (p *proc) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the process as a crash does, and returns when it is gone.
func (p *proc) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// stop lets the process end in order, if it does so in time.
func (p *proc) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

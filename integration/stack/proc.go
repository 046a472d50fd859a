package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// proc is a child process.
type proc struct {
	name    string
	log     string // path
	archive string // the class archive it writes when it ends in order, or ""
	cmd     *exec.Cmd
	began   time.Time
	logf    func(string, ...any)
	done    <-chan struct{} // closed when the process has been reaped
}

// spawn starts a child that, on Linux, the kernel kills when this process dies, however it dies.
func (s *Stack) spawn(name, archive, bin string, args ...string) (*proc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("starting %s: the stack is closed", name)
	}
	p := &proc{name: name, log: filepath.Join(s.dir, name+".log"), archive: archive, cmd: exec.Command(bin, args...),
		began: time.Now(), logf: s.logf}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) // a node that is started again goes on
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	p.cmd.Dir = s.dir
	if p.done, err = StartTied(p.cmd, out); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	s.procs = append(s.procs, p)
	return p, nil
}

// StartTied starts a command that does not outlive this process. What the command writes goes to log, which is closed
// when the command has ended; then ended is closed, too. The state of the process says how.
func StartTied(cmd *exec.Cmd, log *os.File) (ended <-chan struct{}, err error) {
	cmd.Stdout, cmd.Stderr = log, log
	started, done := make(chan error), make(chan struct{})
	go func() {
		defer close(done)
		defer log.Close()
		_ = runTied(cmd, started)
	}()
	return done, <-started
}

// runTied runs a command that does not outlive this process. Pdeathsig is sent when the *thread* that forked exits, so
// the child is started and awaited on a locked thread that lives as long as the child. Call it in a goroutine of its
// own.
func runTied(cmd *exec.Cmd, started chan<- error) error {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	cmd.SysProcAttr = childAttr()
	err := cmd.Start()
	started <- err
	if err != nil {
		return err
	}
	return cmd.Wait()
}

// runTool runs a command to its end. What it writes is in the error.
func runTool(ctx context.Context, bin string, args ...string) error {
	cmd := exec.CommandContext(ctx, bin, args...)
	var out tailBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() { ended <- runTied(cmd, started) }()
	if err := <-ended; err != nil {
		return fmt.Errorf("running %s: %w\n%s", bin, errors.Join(err, context.Cause(ctx)), out.b)
	}
	return nil
}

// tailSize is how much of a log is shown.
const tailSize = 3000

// tailBuffer keeps the end of what is written.
type tailBuffer struct{ b []byte }

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-tailSize):]
	return len(p), nil
}

// await returns when ready does not fail any more.
func (p *proc) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		try, c := context.WithTimeout(ctx, time.Second)
		err := ready(try)
		c()
		if err == nil {
			p.logf("%s is up after %s", p.name, time.Since(p.began).Round(100*time.Millisecond))
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("starting %s: it has ended (%v), and its log with\n%s", p.name, p.cmd.ProcessState,
				p.tail())
		case <-ctx.Done():
			return fmt.Errorf("starting %s: %w: %w; its log ends with\n%s", p.name, context.Cause(ctx), err, p.tail())
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
	return b[max(0, len(b)-tailSize):]
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

// stop lets the process end in order, and returns when it is gone. It reports whether it ended by itself.
func (p *proc) stop() bool {
	_ = terminateProcess(p.cmd.Process) // it may have ended
	select {
	case <-p.done:
		return true
	case <-time.After(stopTimeout):
		p.kill()
		return false
	}
}

//go:build integration

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"blobfeed/integration/stack"
	"blobfeed/internal/config"
)

var (
	shared *stack.Stack // Kafka, registry, Azurite: from the environment, or started for this run
	binary string       // the program under test
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bridge-integration")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "bridge")
	if err := stack.Build(binary, ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared, err = stack.Get(context.Background(), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the stack:", err)
		return 1
	}
	defer shared.Close()
	return m.Run()
}

// program is a running bridge.
type program struct {
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{} // closed when it has ended
	err  error         // of Wait, after done
}

// start runs the program with settings such as "TOPIC=x". It does not outlive the test.
func start(t *testing.T, args []string, settings ...string) *program {
	t.Helper()
	return launch(t, exec.Command(binary, args...), settings...)
}

// launch starts a command with settings.
func launch(t *testing.T, cmd *exec.Cmd, settings ...string) *program {
	t.Helper()
	p := &program{cmd: cmd, log: new(logBuffer), done: make(chan struct{})}
	// A port of its own for each, which the log tells.
	p.cmd.Env = append(os.Environ(), "BRIDGE_HTTP_ADDR=127.0.0.1:0")
	var tuning []string
	for _, s := range settings {
		switch name, value, _ := strings.Cut(s, "="); name {
		case "DEBUG":
			tuning = append(tuning, value)
		case "GOMEMLIMIT":
			p.cmd.Env = append(p.cmd.Env, s)
		default:
			p.cmd.Env = append(p.cmd.Env, "BRIDGE_"+s)
		}
	}
	p.cmd.Env = append(p.cmd.Env, "BRIDGE_DEBUG="+strings.Join(tuning, ","))
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.done
		for _, s := range settings {
			name, value, _ := strings.Cut(s, "=")
			if secret, ok := strings.CutSuffix(name, "_FILE"); ok && slices.Contains(config.SecretNames(),
				"BRIDGE_"+secret) {
				text, err := os.ReadFile(value)
				if err != nil {
					t.Error(err)
				}
				name, value = secret, strings.TrimSpace(string(text))
			}
			if slices.Contains(config.SecretNames(), "BRIDGE_"+name) && strings.Contains(p.log.String(), value) {
				t.Errorf("the program shows its %s", name)
			}
		}
		if t.Failed() {
			t.Logf("output of the program:\n%s", p.log)
		}
	})
	return p
}

// signal is for a process that may have ended already.
func (p *program) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		panic(err)
	}
}

// wait returns the exit code.
func (p *program) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		p.signal(syscall.SIGQUIT)
		<-p.done
		t.Fatalf("the program has not ended after %s", limit)
		return 0
	}
}

// runOnce runs the program to its end.
func runOnce(t *testing.T, settings ...string) {
	t.Helper()
	p := start(t, []string{"run", "--once"}, settings...)
	if code := p.wait(t, 3*time.Minute); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, p.log)
	}
}

// logBuffer keeps the output of a process.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

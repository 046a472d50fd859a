package deploy

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lines is a log that a program writes while a test reads it.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// started is a program that runs, with what it has logged so far.
type started struct {
	*exec.Cmd
	log   *lines
	ended chan error
}

// start runs the program with a settings file.
func start(t *testing.T, program string, env []string, args ...string) *started {
	t.Helper()
	s := &started{Cmd: exec.CommandContext(t.Context(), program, args...), log: new(lines), ended: make(chan error, 1)}
	s.Env = append(os.Environ(), env...)
	s.Stdout, s.Stderr = s.log, s.log
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.Wait() }()
	return s
}

// stop ends the program as an operator does.
func (s *started) stop(t *testing.T) {
	t.Helper()
	_ = s.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		if err != nil {
			t.Errorf("it ends with %v:\n%.3000s", err, s.log)
		}
	case <-time.After(30 * time.Second):
		t.Errorf("it does not stop:\n%.3000s", s.log)
	}
}

// within checks that the program runs, and has taken no more memory than a limit.
func (s *started) within(t *testing.T, limit int64) {
	t.Helper()
	peak, running := peakOf(s.Cmd)
	t.Logf("a peak of %d MiB", peak>>20)
	if !running || peak > limit {
		t.Errorf("it runs: %t, a peak of %d MiB:\n%.3000s", running, peak>>20, s.log)
	}
}

var served = regexp.MustCompile(`"serving HTTP","address":"([^"]*)"`)

// address waits for the address of the program's HTTP server.
func (s *started) address(t *testing.T) (base string) {
	t.Helper()
	s.until(t, "the HTTP server", func() bool {
		at := served.FindStringSubmatch(s.log.String())
		if at != nil {
			base = "http://" + at[1]
		}
		return at != nil
	})
	return base
}

// until waits for a condition while the program runs.
func (s *started) until(t *testing.T, what string, met func() bool) {
	t.Helper()
	deadline := time.After(90 * time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); !met(); {
		select {
		case <-tick.C:
		case err := <-s.ended:
			t.Fatalf("waiting for %s: it ends with %v:\n%.5000s", what, err, s.log)
		case <-deadline:
			t.Fatalf("waiting for %s:\n%.5000s", what, s.log)
		}
	}
}

// get returns an answer of a server, "" if there is none.
func get(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body) // a part of an answer meets no condition
	return string(text)
}

package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// onTerminal runs a verb whose output and errors are a terminal, and returns what that was sent.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	var locked, number int32
	for request, arg := range map[uintptr]*int32{syscall.TIOCSPTLCK: &locked, syscall.TIOCGPTN: &number} {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request,
			uintptr(unsafe.Pointer(arg))); failed != 0 {
			t.Fatal(failed)
		}
	}
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan string)
	go func() {
		text, _ := io.ReadAll(master) // fails when nobody has the terminal open
		sent <- string(text)
	}()
	execute(t.Context(), environ(t), args, terminal, terminal)
	if err := terminal.Close(); err != nil {
		t.Error(err)
	}
	return <-sent
}

// On a terminal the verdicts have colours, unless its user wants none.
func TestColours(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	const green, yellow, red = "\x1b[32m", "\x1b[33m", "\x1b[31m"
	for _, c := range []struct{ verb, want string }{
		{"run --once", green + "Delivered\x1b[0m 717 events as "},
		{"status", green + "up to date\x1b[0m: run --once"},
		{"verify --feed", "\n" + green + "holds\x1b[0m  "},
		{"check", green + "ok\x1b[0m       reach "},
		{"check", "\n" + yellow + "warning\x1b[0m "},
	} {
		if got := onTerminal(t, strings.Fields(c.verb)...); !strings.Contains(got, c.want) {
			t.Errorf("bridge %s: want %q in %q", c.verb, c.want, got)
		}
	}
	t.Run("failed", func(t *testing.T) {
		setenv(t, "BRIDGE_KAFKA_BROKERS", "")
		if got, want := onTerminal(t, "check"), "\n"+red+"failed\x1b[0m   kafka "; !strings.Contains(got, want) {
			t.Errorf("bridge check: want %q in %q", want, got)
		}
	})
	for _, name := range []string{"TERM=dumb", "NO_COLOR=1"} {
		t.Run(name, func(t *testing.T) {
			variable, value, _ := strings.Cut(name, "=")
			setenv(t, variable, value)
			for _, verb := range []string{"run --once", "status", "verify", "check"} {
				if got := onTerminal(t, strings.Fields(verb)...); strings.Contains(got, "\x1b[3") {
					t.Errorf("bridge %s: %q", verb, got)
				}
			}
		})
	}
}

// On a terminal, what to do about an error has its own line. In a pipe, the error is one line.
func TestRemedyOnItsOwnLine(t *testing.T) {
	t.Parallel()
	setenv(t, "BRIDGE_KAFKA_BROKERS", "127.0.0.1:1")
	const cause, do = "connection refused", "start the brokers, or set BRIDGE_KAFKA_BROKERS"
	if got := onTerminal(t, "status"); !strings.Contains(got, cause+"\r\n-> "+do) {
		t.Errorf("%q", got)
	}
	if _, _, got := call(t, "status"); !strings.Contains(got, cause+": "+do) {
		t.Errorf("%q", got)
	}
}

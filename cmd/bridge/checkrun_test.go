package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What stops run, check reports before, in the same words.
func TestCheckReportsWhatStopsRun(t *testing.T) {
	t.Parallel()
	for says, made := range map[string]mistake{
		"history is lost: the next to read is segment 2026/01/01/0": ofFeeds["history is lost: the next to read is …"],
		"and its state is made for 4":                               ofTopics["and its state is made for …"],
		"topic changes has max.message.bytes=600: a record of the feed takes 1": ofTopics["and the smallest "+
			"max.message.bytes of the topics in use is …"],
		"topic b.dlq has max.message.bytes=600: a record of the feed takes 1": func(t *testing.T) []string {
			t.Helper()
			setenv(t, "BRIDGE_ON_ERROR", "dead_letter")
			return created("b.dlq", "max.message.bytes", "600")(t)
		},
		"topic b.offsets has max.message.bytes=100: progress takes": created("b.offsets", "max.message.bytes", "100"),
	} {
		t.Run(says, func(t *testing.T) {
			made(t)
			if code, stdout, stderr := call(t, "check"); code != exitFailed || !strings.Contains(stdout, says) {
				t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
			}
		})
	}
}

// Lost history that run may continue behind is a warning, and history that is there is well.
func TestCheckOfHistory(t *testing.T) {
	t.Parallel()
	ofFeeds["history is lost: the next to read is …"](t)
	setenv(t, "BRIDGE_ON_GAP", "continue")
	if code, stdout, stderr := call(t, "check"); code != exitOK ||
		!strings.Contains(stdout, "warning  history       it is lost up to segment 2026/01/01/0300") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	runToEnd(t)
	if code, stdout, stderr := call(t, "check"); code != exitOK ||
		!strings.Contains(stdout, "ok       history ") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

// An address that something else has stops run if the settings name it. An instance has it already.
func TestCheckOfTheAddress(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := taken.Addr().String()
	setenv(t, httpAddr, at)
	says := func(code int, line string) {
		t.Helper()
		if got, stdout, stderr := call(t, "check"); got != code || !strings.Contains(stdout, line) {
			t.Errorf("exit code %d, want %d and %q:\n%s%s", got, code, line, stdout, stderr)
		}
	}
	says(exitFailed, "failed   http          listen tcp "+at)
	if code, _, stderr := call(t, "run"); code != exitSettings || !strings.Contains(stderr, "listen tcp "+at) {
		t.Errorf("run: exit code %d: %s", code, stderr)
	}
	instance := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_ = instance.Listener.Close()
	instance.Listener = taken
	instance.Start()
	says(exitOK, "an instance serves HTTP there")
	instance.Close()
	says(exitOK, "ok       http          run can serve HTTP at "+at)
}

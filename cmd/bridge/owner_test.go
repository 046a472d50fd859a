package main

import (
	"strings"
	"testing"
)

// The way of an operator who gives a second bridge the topic of the first: run and check refuse it, and each
// way out that they name works.
func TestSecondBridgeOnATopic(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	runToEnd(t)
	first := len(read(t, c, changes))
	check := func(code int, line string) {
		t.Helper()
		if got, stdout, stderr := call(t, "check"); got != code || !strings.Contains(stdout, line) {
			t.Errorf("check: exit code %d, want %d and %q:\n%s%s", got, code, line, stdout, stderr)
		}
	}
	check(exitOK, "no other bridge writes to "+changes)
	setenv(t, "BRIDGE_NAME", "second")
	const problem = "topic " + changes + " belongs to bridge b"
	check(exitFailed, problem)
	check(exitFailed, "-> set another BRIDGE_TOPIC; if b is retired, run bridge reset")
	for _, shared := range []string{"false", "true"} { // which is for other accounts
		setenv(t, "BRIDGE_TOPIC_SHARED", shared)
		code, _, stderr := call(t, "run", "--once")
		if code != exitSettings || !strings.Contains(stderr, problem) ||
			!strings.Contains(stderr, "run bridge reset --yes with BRIDGE_NAME=b") {
			t.Errorf("run: exit code %d: %s", code, stderr)
		}
	}
	if n := len(read(t, c, changes)); n != first {
		t.Errorf("%d records, %d of them of the second bridge", n, n-first)
	}
	setenv(t, "BRIDGE_NAME", "b")
	if code, _, stderr := call(t, "reset", "--yes"); code != exitOK {
		t.Fatalf("reset: exit code %d: %s", code, stderr)
	}
	setenv(t, "BRIDGE_NAME", "second")
	check(exitFailed, "topic "+changes+" holds records, and bridge second has no progress")
	if code, _, stderr := call(t, "run", "--once"); code != exitSettings || !strings.Contains(stderr, "bridge reset --yes") {
		t.Errorf("run: exit code %d: %s", code, stderr)
	}
	if code, _, stderr := call(t, "reset", "--yes"); code != exitOK {
		t.Fatalf("reset: exit code %d: %s", code, stderr)
	}
	check(exitOK, "no progress yet")
	runToEnd(t)
	setenv(t, "BRIDGE_TOPIC", "others")
	setenv(t, "BRIDGE_NAME", "b")
	runToEnd(t)
	check(exitOK, "bridges of other accounts may write to the same topics")
}

// The events of a directory name its account, whatever the settings say: check sees by the first ones where run writes.
func TestSecondBridgeOnAnAccount(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setenv(t, "BRIDGE_TOPIC", "{account}")
	runToEnd(t)
	copied(t, func(string) error { return nil })
	setAll(t, map[string]string{"NAME": "second", "SOURCE_ACCOUNT": "beta"})
	for _, verb := range []string{"check", "run --once"} {
		code, stdout, stderr := call(t, strings.Fields(verb)...)
		if all := stdout + stderr; code == exitOK || !strings.Contains(all, " belongs to bridge b, which reads feed ") {
			t.Errorf("%s: exit code %d: %s", verb, code, all)
		}
	}
}

// A table keeps the last record of a key, and keys do not name the account.
func TestSharedTable(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setAll(t, map[string]string{
		"TOPIC_SHARED": "true", "ENVELOPE": "row", "RESOLVED_TO": "off", "EVENTS": "state",
	})
	if code, _, stderr := call(t, "run", "--once"); code != exitSettings ||
		!strings.Contains(stderr, "put {account} into TOPIC") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

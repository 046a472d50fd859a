package main

import (
	"strings"
	"testing"
)

// The way of an operator: what verify has to know to tell the accounts apart, it asks for by name.
func TestVerifySharedTopicOfDirectories(t *testing.T) {
	t.Parallel()
	delivered(t, simulated(t, 2, "alpha"), "TOPIC_SHARED=true", "NAME=alpha")
	setenv(t, "BRIDGE_NAME", "bravo")
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+simulated(t, 2, "bravo"))
	if code, _, stderr := call(t, "run", "--once"); code != exitOK {
		t.Fatal(stderr)
	}
	for _, c := range []struct {
		set, args string
		code      int
		says      string
	}{
		{"", "verify", exitSettings, "does not name the account whose records are judged: set BRIDGE_SOURCE_ACCOUNT"},
		{"SOURCE_ACCOUNT=bravo", "verify", exitOK, "records of account alpha"},
		{"", "verify --feed", exitOK, "holds        replay"},
		{"SOURCE_ACCOUNT=alpha", "verify --feed", exitSettings,
			"of account bravo, not alpha: set BRIDGE_SOURCE_ACCOUNT=bravo"},
		{"HEADERS=none", "verify", exitFailed, "a record does not name its account"},
		{"HEADERS=cloudevents", "verify --topic copy", exitSettings, "no state names the feed whose records are judged"},
	} {
		if name, value, set := strings.Cut(c.set, "="); set {
			setenv(t, "BRIDGE_"+name, value)
		}
		code, stdout, stderr := call(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s %s: exit code %d, want %d and %q: %s%s", c.set, c.args, code, c.code, c.says, stdout, stderr)
		}
	}
}

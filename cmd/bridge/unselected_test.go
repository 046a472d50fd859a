package main

import (
	"strings"
	"testing"
)

// A filter that selects nothing is a warning in the log, once, and a line of status: nothing fails, and nothing comes.
func TestFilterThatSelectsNothing(t *testing.T) {
	t.Parallel()
	const says = "no event has become a record: 717 of 717 events read are left out by the settings; check BRIDGE_"
	for _, tc := range []struct {
		setting string
		hint    bool
	}{
		{"CONTAINERS=no-such-container", true},
		{"PREFIXES=container0/blob9", false},
		{"START=2020-05-29T21:59:00Z", false},
		{"EVENT_TYPES=BlobTierChanged", true},
	} {
		t.Run(tc.setting, func(t *testing.T) {
			clusterFor(t)
			name, value, _ := strings.Cut(tc.setting, "=")
			setenv(t, "BRIDGE_"+name, value)
			code, _, stderr := call(t, "run", "--once")
			logged := strings.Count(stderr, says) == 1 && strings.Contains(stderr, `"level":"WARN","msg":"the settings`)
			_, text, _ := call(t, "status")
			if code != exitOK || logged != tc.hint || strings.Contains(text, "\nhint      "+says) != tc.hint ||
				(statusOf(t).Hint != "") != tc.hint {
				t.Errorf("exit code %d: %s%s", code, stderr, text)
			}
		})
	}
}

package main

import (
	"strings"
	"testing"
)

// verify judges topics without columns that it would otherwise read, with and without headers. A check that needs such
// a column does not apply, and is no failure.
func TestVerifyWithoutColumns(t *testing.T) {
	t.Parallel()
	const fewest = "COLUMNS=path"
	for settings, unchecked := range map[string]string{
		fewest: "",
		"COLUMNS=!event_id,!sequencer,!account HEADERS=none":                         "sequence",
		fewest + " HEADERS=none":                                                     "sequence",
		fewest + " HEADERS=none OPTIONS=none":                                        "unique",
		fewest + " HEADERS=none EVENTS=state ENVELOPE=enriched":                      "sequence",
		fewest + " ENVELOPE=row DELETES=tombstone EVENTS=state":                      "",
		"MAPS=json OPTIONS=diff,updated EVENTS=state":                                "",
		"MAPS=omit ENVELOPE=enriched OPTIONS=diff EVENTS=state":                      "",
		"COLUMNS=etag,blob_tier EVENTS=state ENVELOPE=enriched OPTIONS=updated,diff": "",
		"PRESET=table EVENTS=state":                                                  "",
		"PRESET=debezium EVENTS=state":                                               "",
		"PRESET=log":                                                                 "",
	} {
		t.Run(settings, func(t *testing.T) {
			delivered(t, "../../testdata/real-2020", strings.Fields(settings)...)
			code, stdout, stderr := call(t, "verify", "--feed", "--output", "json")
			_, of := statusFrom(t, stdout)
			if code != exitOK || of["replay"] != "holds" || unchecked != "" && of[unchecked] != "not_checked" {
				t.Errorf("exit code %d, %v: %s", code, of, stderr)
			}
		})
	}
}

// The choice of columns is part of what a reader of the topic knows, so it stays as it was.
func TestColumnsAreFrozen(t *testing.T) {
	t.Parallel()
	delivered(t, "../../testdata/real-2020", "COLUMNS=!etag,!url")
	setenv(t, "BRIDGE_COLUMNS", "!url, !etag") // the same
	if code, _, stderr := call(t, "run", "--once"); code != exitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for name, value := range map[string]string{"BRIDGE_COLUMNS": "!etag", "BRIDGE_MAPS": "json"} {
		t.Run(name, func(t *testing.T) {
			setenv(t, name, value)
			code, _, stderr := call(t, "run", "--once")
			if code != exitSettings || !strings.Contains(stderr, name+"="+value) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
}

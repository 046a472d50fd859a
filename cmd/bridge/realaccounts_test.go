package main

import (
	"encoding/json"
	"strings"
	"testing"

	"blobfeed/internal/fakebroker"
	"blobfeed/internal/realfeed"
	"blobfeed/verify/judge"
)

// The feeds of real accounts are delivered, the run ends, and verify agrees, with each event as often as the log has it.
func TestRealAccounts(t *testing.T) {
	for _, a := range realfeed.Accounts {
		t.Run(a.Name, func(t *testing.T) {
			c := fakebroker.New(t)
			setAll(t, map[string]string{
				"SOURCE_URL": "file://" + a.Unpack(t, "../.."), "KAFKA_BROKERS": strings.Join(c.ListenAddrs(), ","),
				"TOPIC": changes, "EVENTS": "all", "TOPIC_PARTITIONS": "4", "TOPIC_REPLICATION": "1",
				"OFFSETS_LEASES": "4", "POLL_INTERVAL": "50ms", "NAME": "b",
			})
			code, stdout, stderr := call(t, "run", "--once")
			if code != exitOK {
				t.Fatalf("run --once: %d: %s%s", code, stdout, stderr)
			}
			if a.Waits != "" && !strings.Contains(stderr, a.Waits) {
				t.Errorf("the end does not say that later segments wait for %s: %s", a.Waits, stderr)
			}
			code, stdout, stderr = call(t, "verify", "--feed", "--output", "json")
			var reports []judge.Report
			if err := json.Unmarshal([]byte(stdout), &reports); err != nil {
				r, _ := statusFrom(t, stdout)
				reports = []judge.Report{r}
			}
			r := reports[0]
			if code != exitOK || r.Records != int64(a.Delivered) || r.Twice != int64(a.Twice) {
				t.Errorf("verify --feed: %d: %d records, %d twice in the log: %s%s", code, r.Records, r.Twice, stdout,
					stderr)
			}
		})
	}
}

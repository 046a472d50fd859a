package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/realfeed"
)

// Events of a type that a newer schema brings are not left out silently: the log names the type once, and status counts
// them. EVENTS=all delivers them, and a type that EVENT_TYPES leaves out is no news.
func TestUnknownTypesAreReported(t *testing.T) {
	t.Parallel()
	a := realfeed.Accounts[0]
	dir := a.Unpack(t, "../..")
	files, err := filepath.Glob(filepath.Join(dir, "log/*/*/*/*/*/*.avro"))
	if err != nil || len(files) == 0 {
		t.Fatal("no chunks", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		// In the schema only: events have the number of the symbol.
		b = bytes.Replace(b, []byte("BlobSnapshotCreated"), []byte("BlobTurnedIntoAFrog"), 1)
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		setting, value   string
		records, unknown string
		warnings         int
	}{
		"state":        {"EVENTS", "state", "1,595 records", "unknown   13 events", 1},
		"all":          {"EVENTS", "all", "1,608 records", "", 0},
		"not selected": {"EVENT_TYPES", "!BlobTurnedIntoAFrog", "1,595 records", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			broker := fakebroker.New(t)
			setAll(t, map[string]string{
				"SOURCE_URL": "file://" + dir, "KAFKA_BROKERS": strings.Join(broker.ListenAddrs(), ","), "TOPIC": changes,
				c.setting: c.value, "TOPIC_PARTITIONS": "2", "TOPIC_REPLICATION": "1", "OFFSETS_LEASES": "2",
				"POLL_INTERVAL": "50ms", "NAME": "b",
			})
			code, stdout, stderr := call(t, "run", "--once")
			if n := strings.Count(stderr, "BlobTurnedIntoAFrog"); code != exitOK || n != c.warnings {
				t.Errorf("run --once: %d, %d warnings: %s%s", code, n, stdout, stderr)
			}
			code, stdout, _ = call(t, "status")
			if code != exitOK || !strings.Contains(stdout, c.records) || !strings.Contains(stdout, c.unknown) ||
				c.unknown == "" && strings.Contains(stdout, "\nunknown") {
				t.Errorf("status: %d: %s", code, stdout)
			}
			if code, stdout, _ = call(t, "verify", "--feed"); code != exitOK {
				t.Errorf("verify --feed: %d: %s", code, stdout)
			}
		})
	}
}

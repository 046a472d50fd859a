package judge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobfeed/bridge"
	"blobfeed/internal/testing/feedsim"
)

// form is a way in which topics are written.
type form struct {
	name     string
	settings string
	scan     bridge.InitialScan // of an account, before the feed
	// then is what happens to the bridge after its first run, and before the feed's last segments are delivered.
	then  func(t *testing.T, l *liveFeed)
	topic string // that is judged, and broken; "": that of all
	// stateful says that without the bridge's state the feed says little or nothing.
	stateful bool
	// unknown are the faults that can't be seen in this form, by what finds them elsewhere: "state:" or "feed:" and a
	// name, or a name alone for both.
	unknown []string
}

// liveFeed is a feed that grows, and where it is.
type liveFeed struct {
	*feedsim.Feed
	dir string
}

// grow fills segments, and begins the next one.
func (l *liveFeed) grow(t *testing.T, segments int) {
	t.Helper()
	for range segments {
		if err := errors.Join(l.Append(t.Context(), 24, nil), l.Next(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

// goesOn lets the feed go on.
func goesOn(t *testing.T, l *liveFeed) { l.grow(t, 3) }

func forms() []form {
	return []form{
		{name: "wrapped", settings: "EVENTS=all"},
		{
			name:     "wrapped, everything",
			settings: "OPTIONS=updated,key_in_value,diff,mvcc_timestamp,topic_in_value EXTRA_HEADERS=team=a",
		},
		{name: "wrapped, key and tombstone", settings: "DELETES=both KEY_FORMAT=json_object"},
		{name: "wrapped, tombstones", settings: "DELETES=tombstone KEY_FORMAT=string PARTITIONER=fnv-1a"},
		{name: "wrapped, empty", settings: "DELETES=empty"},
		{name: "wrapped, markers aside", settings: "RESOLVED_TO=topic"},
		{name: "wrapped, no markers", settings: "RESOLVED_TO=off", stateful: true},
		{name: "wrapped, no headers", settings: "HEADERS=none"},
		{name: "wrapped, no headers, key and tombstone", settings: "HEADERS=none DELETES=both", unknown: []string{
			"state:a record is doubled", "state:a record is repeated at the end", "state:an old record comes last",
			"a record is below its marker"}},
		{name: "bare", settings: "ENVELOPE=bare"},
		{name: "row", settings: "ENVELOPE=row EVENTS=all"},
		{name: "row, empty", settings: "ENVELOPE=row DELETES=empty"},
		{name: "table", settings: "ENVELOPE=row RESOLVED_TO=topic OPTIONS=none KEY_FORMAT=string"},
		{name: "key only", settings: "ENVELOPE=key_only"},
		{name: "enriched", settings: "ENVELOPE=enriched"},
		{
			name: "enriched, everything",
			settings: "ENVELOPE=enriched RESOLVED_TO=inline ENRICHED_PROPERTIES=source,schema " +
				"OPTIONS=updated,key_in_value,topic_in_value,mvcc_timestamp,diff",
		},
		{
			name: "enriched, nothing",
			settings: "ENVELOPE=enriched ENRICHED_PROPERTIES=none OPTIONS=!before HEADERS=none RESOLVED_TO=inline " +
				"DELETES=both",
			unknown: []string{
				"state:a record is doubled", "state:a record is repeated at the end",
				"state:an old record comes last", "a record is below its marker", "state:a timestamp is wrong"},
		},
		{name: "Avro", settings: "FORMAT=avro EVENTS=all"},
		{
			name: "Avro, everything",
			settings: "FORMAT=avro OPTIONS=updated,key_in_value,diff,mvcc_timestamp,topic_in_value DELETES=both " +
				"AVRO_TIMESTAMPS=string KEY_FORMAT=string",
		},
		{name: "Avro, no headers", settings: "FORMAT=avro HEADERS=none"},
		{name: "Avro, bare", settings: "FORMAT=avro ENVELOPE=bare AVRO_TIMESTAMPS=millis"},
		{name: "Avro, key only", settings: "FORMAT=avro ENVELOPE=key_only"},
		{name: "Avro, enriched", settings: "FORMAT=avro ENVELOPE=enriched"},
		{
			name: "Avro, enriched, everything",
			settings: "FORMAT=avro ENVELOPE=enriched RESOLVED_TO=inline OPTIONS=updated,key_in_value,diff " +
				"OPTIONS=updated,key_in_value,topic_in_value DELETES=both",
		},
		{name: "at least once", settings: "DELIVERY=at_least_once", stateful: true, unknown: []string{
			"a record is doubled", "a record is repeated at the end", "state:an old record comes last",
			"a marker is missing everywhere"}},
		{name: "at least once, seek", settings: "DELIVERY=at_least_once DEBUG=bundle_bytes=0", stateful: true,
			unknown: []string{"a record is doubled", "a record is repeated at the end", "state:an old record comes last",
				"a marker is missing everywhere"},
			then: func(t *testing.T, _ *liveFeed) { seek(t, "2026/01/01/0100") }},
		{name: "no bundles", settings: "DEBUG=bundle_bytes=0"},
		{name: "template", settings: "TOPIC={container}", topic: "photos"},
		{name: "interval", settings: "START=2026-01-01T00:30:00Z END_TIME=2026-01-01T02:30:00Z"},
		{name: "seek", stateful: true, then: func(t *testing.T, _ *liveFeed) { seek(t, "2026/01/01/0100") }},
		{name: "seek, replaced", stateful: true,
			then: func(t *testing.T, l *liveFeed) {
				l.grow(t, 2)
				seek(t, "2026/01/01/0300")
				seek(t, "2026/01/01/0500")
			}},
		{name: "seek, markers aside", settings: "RESOLVED_TO=topic", stateful: true,
			then: func(t *testing.T, _ *liveFeed) {
				seek(t, "2026/01/01/0100")
			}},
		{name: "gap", settings: "ON_GAP=continue", stateful: true, then: func(t *testing.T, l *liveFeed) {
			l.grow(t, 2)
			// And what is before, as retention does.
			for _, name := range []string{"idx/segments/2026/01/01/0400", "log/00/2026/01/01/0400"} {
				for _, hour := range []string{"0000", "0100", "0200", "0300", "0400"} {
					if err := os.RemoveAll(filepath.Join(l.dir, strings.Replace(name, "0400", hour, 1))); err != nil {
						t.Fatal(err)
					}
				}
			}
		}},
		{name: "replay", stateful: true, topic: "again"},
		{name: "scan", scan: bridge.ScanYes, then: goesOn},
		{name: "scan, no headers", settings: "HEADERS=none", scan: bridge.ScanYes, then: goesOn},
		{name: "scan, Avro, aside", settings: "FORMAT=avro ENVELOPE=enriched", scan: bridge.ScanYes, then: goesOn},
		{name: "scan only", scan: bridge.ScanOnly, stateful: true},
	}
}

//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"blobfeed/partitioner"
	"blobfeed/verify"
)

// realSegments is how many segments of the real feed are finalized: all of them.
const realSegments = 10

// The real feed, from a directory, and from Azurite: each event once, in the blob's order, on murmur2's partition, a
// marker per segment on every partition; a second run adds nothing; both stores give the same bytes.
func TestRealFeed(t *testing.T) {
	t.Parallel()
	brokers := shared.KafkaBrokers
	ids, byBlob := realIDs(t)
	fromDir := func(t *testing.T) []verify.Record {
		name, topic := names(t, brokers, -1)
		settings := []string{"NAME=" + name, "TOPIC=" + topic, "EVENTS=all", "KAFKA_BROKERS=" + strings.Join(brokers,
			","), "SOURCE_URL=" + fileURL(t, realFeed)}
		runOnce(t, settings...)
		records := read(t, brokers, topic)
		runOnce(t, settings...)
		if again := read(t, brokers, topic); len(again) != len(records) {
			t.Errorf("the second run added %d records", len(again)-len(records))
		}
		return records
	}(t)

	seen := map[string]bool{}
	order := map[string][]string{}
	markers := map[int32]int{}
	for _, r := range fromDir {
		if r.Key == nil {
			markers[r.Partition]++
			continue
		}
		id := header(r, "ce_id")
		if seen[id] {
			t.Errorf("event %s came twice", id)
		}
		seen[id] = true
		var key []string
		if err := json.Unmarshal(r.Key, &key); err != nil || len(key) != 1 {
			t.Fatalf("key %q: %v", r.Key, err)
		}
		order[key[0]] = append(order[key[0]], id)
		if want := partitioner.Murmur2(r.Key, partitions); r.Partition != want {
			t.Errorf("key %q is on partition %d, want %d", r.Key, r.Partition, want)
		}
	}
	if !maps.Equal(seen, ids) {
		t.Errorf("got %d events, want %d", len(seen), len(ids))
	}
	if !maps.EqualFunc(order, byBlob, slices.Equal) {
		t.Error("the order of some blob's events differs from the feed's")
	}
	for p := range int32(partitions) {
		if markers[p] != realSegments {
			t.Errorf("partition %d has %d markers, want %d", p, markers[p], realSegments)
		}
	}

	t.Run("azurite", func(t *testing.T) {
		source := uploadFeed(t, realFeed)
		name, topic := names(t, brokers, -1)
		runOnce(t, append(source, "NAME="+name, "TOPIC="+topic, "EVENTS=all",
			"KAFKA_BROKERS="+strings.Join(brokers, ","))...)
		fromBlobs := read(t, brokers, topic)
		if len(fromBlobs) != len(fromDir) {
			t.Fatalf("%d records, from the directory %d", len(fromBlobs), len(fromDir))
		}
		for i, r := range fromBlobs {
			if d := fromDir[i]; !bytes.Equal(r.Key, d.Key) || !bytes.Equal(r.Value, d.Value) ||
				r.Partition != d.Partition || r.Millis != d.Millis ||
				!slices.EqualFunc(r.Headers, d.Headers, func(a, b verify.Header) bool {
					return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
				}) {
				t.Fatalf("record %d differs:\n%+v\n%+v", i, r, d)
			}
		}
	})
}

// read returns all that is committed, by partition and offset.
func read(t *testing.T, brokers []string, topic string) []verify.Record {
	t.Helper()
	c := consume(t, brokers, topic)
	var records []verify.Record
	c.onNote = func(r verify.Record) { records = append(records, r) }
	c.drain(t)
	slices.SortFunc(records, func(a, b verify.Record) int {
		if a.Partition != b.Partition {
			return int(a.Partition - b.Partition)
		}
		return int(a.Offset - b.Offset)
	})
	return records
}

func header(r verify.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

//go:build integration

package integration

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/status"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// verb runs the program, which must succeed, and returns what it prints.
func verb(t *testing.T, args string, settings []string) string {
	t.Helper()
	p := start(t, strings.Fields(args), settings...)
	if code := p.wait(t, time.Minute); code != 0 {
		t.Fatalf("%s: exit code %d:\n%s", args, code, p.log)
	}
	return p.log.String()
}

// collected is what a topic holds: how often each event, by its position in the feed, and the last record of each.
type collected struct {
	times   map[string]int
	records map[string]verify.Record
	told    int // markers of a seek
}

func collect(t *testing.T, topic string) collected {
	t.Helper()
	got := collected{times: map[string]int{}, records: map[string]verify.Record{}}
	c := consume(t, shared.KafkaBrokers, topic)
	c.onNote = func(r verify.Record) {
		for _, h := range r.Headers {
			switch h.Key {
			case "position":
				got.times[string(h.Value)]++
				got.records[string(h.Value)] = r
			case "seek":
				got.told++
			}
		}
	}
	c.drain(t)
	return got
}

// The verbs that look at the state and change it, on real brokers: after a seek exactly the events from there on come
// again, and a replay into another topic brings the records of the original.
func TestVerbs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), feedsim.Spec{Seed: 7, Segments: 5, Shards: 3,
		EventsPerSegment: 400, Blobs: 100, Versions: []int{6}}, nil); err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, shared.KafkaBrokers, -1)
	settings := []string{"NAME=" + name, "TOPIC=" + topic, "EVENTS=all",
		"KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers, ","), "SOURCE_URL=" + fileURL(t, dir),
		"TOPIC_PARTITIONS=6", "POLL_INTERVAL=500ms", "DEBUG=bundle_bytes=0"}
	runOnce(t, settings...)
	first := collect(t, topic)

	var s status.Status
	if err := json.Unmarshal([]byte(verb(t, "status --output json", settings)), &s); err != nil {
		t.Fatal(err)
	}
	if int(s.Totals.Emitted) != len(first.times) || s.Position.Resolved == nil || s.Position.Event == nil ||
		len(s.Group.Members) != 0 || s.Leases[2].State != status.Free || len(s.Errors) != 0 {
		t.Errorf("%+v", s)
	}

	const segment = "2026/01/01/0300"
	if said := verb(t, "seek --to "+segment, settings); !strings.Contains(said, "nothing changed; add --yes") {
		t.Errorf("it says %s", said)
	}
	verb(t, "seek --yes --to "+segment, settings)
	runOnce(t, settings...)
	again := collect(t, topic)
	want := maps.Clone(first.times)
	for position := range want {
		if position >= segment {
			want[position]++
		}
	}
	if !maps.Equal(again.times, want) || again.told != partitions {
		t.Errorf("%d events, %d markers tell of the seek; want each event from %s on twice, and the others once",
			len(again.times), again.told, segment)
	}

	// What was delivered between the times, records and partitions, and nothing else.
	from, to := time.Date(2026, 1, 1, 1, 30, 0, 0, time.UTC), time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	other := name + ".again"
	verb(t, "replay --from "+from.Format(time.RFC3339)+" --to "+to.Format(time.RFC3339)+" --topic "+other, settings)
	replayed := collect(t, other)
	originals := 0
	for position, r := range first.records {
		if at := time.UnixMilli(r.Millis); at.Before(from) || at.After(to) {
			continue
		}
		originals++
		if p := replayed.records[position]; replayed.times[position] != 1 || string(p.Key) != string(r.Key) ||
			string(p.Value) != string(r.Value) || p.Partition != r.Partition {
			t.Errorf("%s came %d times, as %s", position, replayed.times[position], p.Value)
		}
	}
	if originals == 0 || len(replayed.times) != originals {
		t.Errorf("%d events were replayed, want %d", len(replayed.times), originals)
	}
	verb(t, "replay --cleanup --topic "+other, settings)

	verb(t, "reset --yes", settings)
	if err := json.Unmarshal([]byte(verb(t, "status --output json", settings)), &s); err != nil || s.Started {
		t.Errorf("after the reset: %+v, %v", s, err)
	}
	t.Logf("%d events, %d of them replayed", len(first.times), originals)
}

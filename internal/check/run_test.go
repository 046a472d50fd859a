package check

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/kafka"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/topics"
	"blobfeed/source"
	"blobfeed/source/dir"
)

// Retention is a warning if the feed holds older events that run will read, of the records and of their markers.
func TestRetentionGoesByTheFeed(t *testing.T) {
	fake := fakebroker.New(t)
	cl := fakebroker.Client(t, fake)
	hour := "3600000"
	configs := map[string]*string{"retention.ms": &hour}
	if _, err := kadm.NewClient(cl).CreateTopics(t.Context(), 3, 1, configs, "t", "t.resolved"); err != nil {
		t.Fatal(err)
	}
	store, err := dir.New("../../testdata/real-2020")
	if err != nil {
		t.Fatal(err)
	}
	all, err := envelope.NewTopics("t", "")
	if err != nil {
		t.Fatal(err)
	}
	for start, want := range map[string]int{"earliest": 2, "latest": 0} {
		o := bridge.Options{
			Name:    "b",
			Feed:    bridge.Feed{Source: source.New(store, source.Options{}), ID: "feed"},
			Records: bridge.Records{Markers: envelope.MarkersTopic},
			Topics:  bridge.Topics{Names: all, Create: topics.Creation{Partitions: 3, Replication: 1}},
			Kafka:   bridge.Kafka{TxnTimeout: time.Minute, Session: 10 * time.Second, Transactional: true, Leases: 4},
		}
		if o.Feed.Start, err = history.ParseStart(start); err != nil {
			t.Fatal(err)
		}
		client := kafka.Client{Brokers: fake.ListenAddrs(), ID: "test", Compression: "none", Buffered: 1}
		found, err := Run(t.Context(), &Bridge{Options: &o, Kafka: &client}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		warnings := 0
		for _, f := range found {
			if f.Status == Warning && strings.Contains(f.Detail, "has retention.ms="+hour) {
				warnings++
			}
		}
		if warnings != want || found.Count(Failed) > 0 {
			t.Errorf("%s: %+v", start, found)
		}
	}
}

// What a start rejects, the check does as well: a topic that does not stay a copy of the account.
func TestCopyIsLimited(t *testing.T) {
	fake := fakebroker.New(t)
	week := "604800000"
	configs := map[string]*string{"retention.ms": &week}
	if _, err := fakebroker.Admin(t, fake).CreateTopics(t.Context(), 3, 1, configs, "t"); err != nil {
		t.Fatal(err)
	}
	store, err := dir.New("../../testdata/real-2020")
	if err != nil {
		t.Fatal(err)
	}
	all, err := envelope.NewTopics("t", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, limited := range []bool{false, true} {
		o := bridge.Options{
			Name: "b",
			Feed: bridge.Feed{Source: source.New(store, source.Options{}), ID: "feed", InitialScan: bridge.ScanYes},
			Topics: bridge.Topics{
				Names: all, Create: topics.Creation{Partitions: 3, Replication: 1}, Limited: limited,
			},
			Kafka: bridge.Kafka{TxnTimeout: time.Minute, Session: 10 * time.Second, Transactional: true, Leases: 4},
		}
		client := kafka.Client{Brokers: fake.ListenAddrs(), ID: "test", Compression: "none", Buffered: 1}
		found, err := Run(t.Context(), &Bridge{Options: &o, Kafka: &client}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for _, f := range found {
			if f.Status == Failed && strings.Contains(f.Do, "BRIDGE_TOPIC_LIMITED=true") {
				failed++
			}
		}
		if limited && found.Count(Failed) > 0 || !limited && failed != 1 {
			t.Errorf("limited %t: %+v", limited, found)
		}
	}
}

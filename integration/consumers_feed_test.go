//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// jobFeed is what the jobs read. Its last segment is open: its events are delivered, and not complete.
var jobFeed = feedsim.Spec{Seed: 5, Start: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Segments: 8, Shards: 3,
	EventsPerSegment: 2500, Blobs: 400,
	HotShare: 0.1, Versions: []int{5}, LeaveOpen: true}

// form is a form in which the bridge delivers it, to a topic of its own.
type form struct {
	name     string
	settings []string
	markers  bool // in the topic
}

// forms are those that the jobs read.
func forms() []form {
	avro := []string{"FORMAT=avro", "REGISTRY_URL=" + shared.SchemaRegistryURL}
	return []form{
		{"json", []string{"KEY_FORMAT=string"}, true},
		{"avro", avro, true},
		{"text-avro", slices.Concat(avro, []string{"KEY_FORMAT=string"}), true},
		{"enriched", []string{"ENVELOPE=enriched"}, false},
		{"schema", []string{"ENVELOPE=enriched", "ENRICHED_PROPERTIES=source,schema"}, false},
		{"table", []string{"ENVELOPE=row", "KEY_FORMAT=string", "OPTIONS=none", "RESOLVED_TO=topic"}, false},
	}
}

// deliver lets the bridge deliver the feed, kills it on the way, and aborts transactions, there and at the end, that
// would mislead whoever reads them. It returns the topic.
func (f form) deliver(t *testing.T, dir string, events []feedsim.Event) string {
	for range 3 {
		if topic, inTime := f.killed(t, dir, events); inTime {
			return topic
		}
	}
	t.Fatal("each kill came too late")
	return ""
}

// killed is an attempt at it. InTime is false where the bridge had delivered everything when it was killed.
func (f form) killed(t *testing.T, dir string, events []feedsim.Event) (_ string, inTime bool) {
	complete := arrivals.New()
	for _, e := range events {
		complete.Expect(e.ID)
	}
	notes := []verify.Validator{verify.NewUnique(), complete, verify.NewOrder()}
	if f.markers {
		notes = append(notes, verify.NewResolved(partitions))
	}
	name, topic := names(t, shared.KafkaBrokers, -1)
	if f.name == "table" {
		topic = name + ".table" // the bridge creates it: it is compacted
	} else {
		configure(t, shared.KafkaBrokers, topic, "retention.ms", "-1")
	}
	// Without bundles, and in small transactions, one after the other: it takes long enough to be killed on the way.
	settings := append([]string{"NAME=" + name, "TOPIC=" + topic, "KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers,
		","),
		"SOURCE_URL=" + fileURL(t, dir), "SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=100ms", "TXN_BYTES=64KiB",
		"OFFSETS_LEASES=1", "DEBUG=bundle_bytes=0"}, f.settings...)
	p := start(t, []string{"run"}, settings...)
	c := consume(t, shared.KafkaBrokers, topic, notes...)
	var seen []verify.Record
	c.onNote = func(r verify.Record) { seen = append(seen, r) }
	moment := seed(t).Int64N(int64(len(events) / 4))
	c.until(t, time.Minute, fmt.Sprintf("%d records", moment),
		func() bool { return c.data >= moment && (c.marks > 0 || !f.markers) })
	p.signal(syscall.SIGKILL)
	<-p.done
	ends, err := kadm.NewClient(c.cl).ListCommittedOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	var came int64 // at most: markers and ends of transactions count, too
	ends.Each(func(o kadm.ListedOffset) { came += o.Offset })
	t.Logf("killed after %d of %d records", came, len(events))
	if came >= int64(len(events)) {
		return "", false
	}
	c.onNote = nil
	abort(t, topic, seen)
	runOnce(t, settings...)
	abort(t, topic, seen) // once more, for those who look for the latest state
	c.drain(t)
	c.check(t)
	return topic, true
}

// abort writes, and takes back, all records once more, the oldest last, and then a marker that would complete all there
// is.
func abort(t *testing.T, topic string, seen []verify.Record) {
	t.Helper()
	cl := client(t, shared.KafkaBrokers, kgo.TransactionalID(topic+".foreign"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	var records []*kgo.Record
	for _, r := range seen {
		if r.Key == nil { // its time has the same length in each format
			resolved := string(r.Header("resolved"))
			wall, err := strconv.ParseInt(resolved[:19], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			r.Value = bytes.Replace(r.Value, []byte(resolved[:19]), strconv.AppendInt(nil, wall+int64(48*time.Hour),
				10), 1)
		}
		records = append(records, &kgo.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value,
			Timestamp: time.UnixMilli(r.Millis)})
	}
	slices.Reverse(records)
	slices.SortStableFunc(records, func(a, b *kgo.Record) int { // markers last
		switch {
		case (a.Key == nil) == (b.Key == nil):
			return 0
		case a.Key == nil:
			return 1
		}
		return -1
	})
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := cl.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
}

// createTopic makes a topic that keeps records, whose timestamps are those of the events.
func createTopic(t *testing.T, topic string, partitions int32) {
	t.Helper()
	if _, err := kadm.NewClient(client(t, shared.KafkaBrokers)).CreateTopic(t.Context(), partitions, -1, nil,
		topic); err != nil {
		t.Fatal(err)
	}
	configure(t, shared.KafkaBrokers, topic, "retention.ms", "-1")
}

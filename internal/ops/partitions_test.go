package ops

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/bridge/pipeline"
)

// The page has what was written to each partition of the topics of records, not of others, and not of too many.
func TestPartitions(t *testing.T) {
	m, engine, clock := watching(t)
	metrics := NewMetrics(m)
	cl, err := kgo.NewClient(metrics.Hook()) // the hook's metrics need one
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	hook := metrics.clients
	wrote := func(topic string, p int32, records int) {
		hook.OnProduceBatchWritten(kgo.BrokerMetadata{}, topic, p, kgo.ProduceBatchMetrics{NumRecords: records})
	}
	wrote("changes", 1, 10)
	if have := m.Snapshot().Partitions; len(have) != 0 {
		t.Errorf("before the state is known: %+v", have)
	}
	engine.state = state(nil)
	wrote("changes", 0, 3)
	wrote("changes", 1, 5)
	wrote("test.offsets", 1, 1)
	want := []Partition{{"changes", 0, 3, *clock}, {"changes", 1, 15, *clock}}
	have := m.Snapshot().Partitions
	if len(have) != 2 || have[0] != want[0] || have[1] != want[1] {
		t.Errorf("%+v, want %+v", have, want)
	}
	for p := range int32(mostWritten + 10) {
		wrote("changes", p, 1)
	}
	if have, kept := len(m.Snapshot().Partitions), len(m.written); have != mostPartitions || kept > mostWritten {
		t.Errorf("%d of %d partitions", have, kept)
	}
}

// The status has the last records that were committed, the newest first, and their keys as text that does no harm.
func TestLastRecords(t *testing.T) {
	m, _, clock := watching(t)
	if have := m.Snapshot().Recent; have == nil || len(have) > 0 {
		t.Errorf("at first: %+v", have)
	}
	offset := int64(0)
	commit := func(keys ...string) {
		r := new(pipeline.Recent)
		for _, key := range keys {
			offset++
			r.Keep(&kgo.Record{
				Topic: "changes", Partition: 2, Offset: offset, Key: []byte(key), Value: []byte("{}"), Timestamp: *clock,
				Headers: []kgo.RecordHeader{
					{Key: "ce_type", Value: []byte("Microsoft.Storage.BlobCreated")},
					{Key: "ce_subject", Value: []byte("/blobServices/default/containers/photos/blobs/blobs/a.jpg")},
				},
			})
		}
		m.Committed(bridge.Commit{Recent: r})
	}
	commit(`["photos/a.jpg"]`, "a\x1b[2J\n\xff", "\x00\x00\x00\x00\x01\x02avro")
	m.Committed(bridge.Commit{}) // of no record
	have := m.Snapshot().Recent
	if len(have) != 3 || have[0].Key != "photos/blobs/a.jpg" || have[1].Key != `a\u001b[2J\u000a` ||
		have[2] != (Record{"changes", 2, 1, `["photos/a.jpg"]`, "BlobCreated", *clock, 2}) {
		t.Errorf("%+v", have)
	}
	for i := range 3 {
		commit(fmt.Sprint("first", i), fmt.Sprint("second", i), strings.Repeat("x", 1000))
	}
	have = m.Snapshot().Recent
	if len(have) != recordsKept || have[0].Offset != offset || have[7].Offset != offset-7 || len(have[0].Key) > 260 ||
		have[1].Key != "second2" {
		t.Errorf("%+v", have)
	}
	// A transaction has the records of a partition after those of another one, whatever their times.
	newest := *clock
	*clock = clock.Add(-time.Minute)
	commit("older")
	if have = m.Snapshot().Recent; have[7].Key != "older" || !have[0].Time.Equal(newest) || len(have) != recordsKept {
		t.Errorf("%+v", have)
	}
}

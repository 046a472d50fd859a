package resolved

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Complete reports whether every shard of a finalized segment is delivered: the lease of each says that it is done.
// The cursors are committed ones, so a later owner of the lease can't take that back.
func Complete(m source.Manifest, s *offsets.State) bool {
	if !m.Finalized {
		return false
	}
	for _, shard := range m.Shards {
		c := s.Cursors[shard%len(s.Cursors)]
		if c == nil || !c.Finished(m.Segment) {
			return false
		}
	}
	return true
}

// After returns the time that may be promised when the segment of m is complete, and before was promised earlier.
func After(m source.Manifest, slack time.Duration, before envelope.Timestamp) envelope.Timestamp {
	ts := envelope.Timestamp{Wall: m.Begin.Add(m.Interval - slack).UnixNano()}
	// I6: a short segment after a long one ends less than the slack later; the promise does not fall.
	if ts.Compare(before) < 0 {
		return before
	}
	return ts
}

// Markers returns the marker of each partition of each topic, topics in order of their names.
func Markers(topics map[string]int32, of func(topic string, partition int32) envelope.Record) []*kgo.Record {
	var records []*kgo.Record
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		for p := range topics[topic] {
			marker := of(topic, p)
			r := &kgo.Record{Topic: topic, Partition: p, Key: marker.Key, Value: marker.Value, Timestamp: time.UnixMilli(marker.Millis)}
			for _, h := range marker.Headers {
				r.Headers = append(r.Headers, kgo.RecordHeader(h))
			}
			records = append(records, r)
		}
	}
	return records
}

// Package resolved decides when a segment is complete, what may be promised then, and which markers say so.
//
// A marker with time R on a partition says: no record with updated <= R follows here (I6). Segment N is
// complete when committed cursors say that each of its shards was read to the end of a listing. That listing
// was taken after the manifest said "Finalized" (I7).
//
// An event can lie up to Slack outside the interval of its segment. So the promised time is the end of N
// minus a slack, which is a setting (ResolvedSlack). The promised time never falls, and is never zero.
package resolved

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Slack is how far outside its segment's interval an event may be.
const Slack = 15 * time.Minute

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

// End is the last time that is delivered; the zero End is none.
type End envelope.Timestamp

// Reached reports whether the segments up to a moment hold every event up to the end: events lie less than the slack
// outside their segment, which is what their markers promise as well (I6). So an end that equals the last marker is
// reached. An idle account publishes no later segment to wait for.
func (e End) Reached(moment time.Time) bool {
	return e != (End{}) && moment.Add(-Slack).UnixNano() >= e.Wall
}

// Within reports whether the segment of m may be the last before the end.
func (e End) Within(m source.Manifest) bool {
	return e != (End{}) && m.Begin.Add(m.Interval+Slack+time.Second).UnixNano() > e.Wall
}

// Barred reports whether a marker would promise too much after an initial scan. The listing shows each blob at another
// moment, so the topic is not the account of any moment before its end; the slack covers the service's clocks.
func Barred(at envelope.Timestamp, scan *offsets.Scan, slack time.Duration) bool {
	bar, always := scan.Barred()
	listed, err := envelope.ParseTimestamp(bar)
	return always || err == nil && at.Wall < listed.Wall+int64(slack)
}

// Marker is a promise that is written to every partition of every topic.
type Marker struct {
	At    envelope.Timestamp
	Feed  string             // of a shared topic: other bridges' markers there promise nothing about this feed
	Seek  *offsets.Seek      // that the marker announces, if any
	Gap   *offsets.Gap       // that the marker announces, if any
	Scan  string             // the scan that the marker ends, if any
	Extra []kgo.RecordHeader // of every record
	// End returns the end of a partition of records; nil puts markers among the records, not in a topic of their own.
	End func(topic string, partition int32) int64
}

// Records returns the records of the marker, topics in order of their names. Topics has the partitions of each.
func (m *Marker) Records(topics map[string]int32, encoders map[string]*envelope.Encoder) []*kgo.Record {
	headers := append(m.headers(), m.Extra...)
	var records []*kgo.Record
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		for p := range topics[topic] {
			r := m.record(topic, p, encoders[topic])
			r.Headers = append(r.Headers, headers...)
			records = append(records, r)
		}
	}
	return records
}

// record returns the marker of one partition.
func (m *Marker) record(topic string, p int32, enc *envelope.Encoder) *kgo.Record {
	r := &kgo.Record{Topic: topic, Partition: p}
	var e envelope.Record
	if m.End == nil {
		e = enc.Resolved(m.At)
	} else {
		e = enc.ResolvedUpTo(m.At, p, m.End(topic, p))
		r.Topic = plain.MarkerTopic(topic)
	}
	r.Key, r.Value, r.Timestamp = e.Key, e.Value, time.UnixMilli(e.Millis)
	for _, h := range e.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader(h))
	}
	return r
}

// headers returns those that say more than the time.
func (m *Marker) headers() (headers []kgo.RecordHeader) {
	add := func(key, value string) { headers = append(headers, kgo.RecordHeader{Key: key, Value: []byte(value)}) }
	if m.Feed != "" {
		add("feed", m.Feed)
	}
	if m.Seek != nil && !m.Seek.Told {
		add("seek", cmp.Or(m.Seek.From.String(), "-")+" "+m.Seek.To)
	}
	if m.Gap != nil {
		add("gap", m.Gap.From.String()+" "+m.Gap.To.String())
	}
	if m.Scan != "" {
		add("scan", m.Scan)
	}
	return headers
}

// Count returns how many records a marker takes.
func Count(topics map[string]int32) (n int) {
	for _, partitions := range topics {
		n += int(partitions)
	}
	return n
}

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
)

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

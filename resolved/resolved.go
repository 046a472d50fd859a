package resolved

import (
	"time"

	"blobfeed/envelope"
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

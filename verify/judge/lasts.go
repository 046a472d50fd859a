package judge

import (
	"time"

	"blobfeed/envelope"
	"blobfeed/verify"
)

// After partitions were added, a key can have records in its partition of today and in former ones, and the order of
// records in two partitions is unknown. The record with the highest updated is the newest: the last one of a partition
// is compared with the last ones of others.

// lane is a key in a partition.
type lane struct {
	key       uint64
	partition int32
}

// last is the last record of a key in a partition.
type last struct {
	row     uint64
	deleted bool
	at      envelope.Timestamp
}

// timeOf returns the updated of a record, or its timestamp if it does not say that.
func timeOf(r *verify.Record) envelope.Timestamp {
	at, err := envelope.ParseTimestamp(r.Updated())
	if err != nil {
		at = envelope.Timestamp{Wall: r.Millis * int64(time.Millisecond)}
	}
	return at
}

// merge puts the newest record of each key of a topic into rows.
func (c *census) merge(s *subject) {
	newest := map[uint64]last{}
	for l, x := range c.lasts {
		if y, known := newest[l.key]; !known || x.at.Compare(y.at) > 0 {
			newest[l.key] = x
		}
	}
	stale := map[uint64]bool{}
	for l, x := range c.lasts {
		if y := newest[l.key]; !x.deleted && (x.row != y.row || y.deleted) {
			stale[l.key] = true
		}
	}
	for key, x := range newest {
		if !x.deleted {
			c.rows[key] = x.row
		}
	}
	s.growth.stale += len(stale)
	clear(c.lasts)
}

// take makes a record of a partition the last one there.
func (x *difference) take(partition int32, row verify.Row, at envelope.Timestamp) {
	if x.lasts == nil {
		x.lasts = map[int32]keyLast{}
	}
	x.lasts[partition] = keyLast{row, at}
	x.row = row
	for _, l := range x.lasts {
		if l.at.Compare(at) > 0 {
			x.row, at = l.row, l.at
		}
	}
}

package verify

import (
	"bytes"
	"cmp"
	"strings"

	"blobfeed/envelope"
)

// Order checks that the events of a key come in the feed's order, by the header position, and that the key stays on
// one partition. Records of a replay count as disorder.
type Order struct {
	failures
	last map[string]place
}

type place struct {
	partition int32
	pos       envelope.Position
}

// NewOrder returns an Order.
func NewOrder() *Order { return &Order{last: map[string]place{}} }

// Note implements Validator.
func (o *Order) Note(r Record) {
	if r.Key == nil {
		return
	}
	pos, err := envelope.ParsePosition(string(r.Header("position")))
	if err != nil {
		o.add(&r, "header position: %v", err)
		return
	}
	before, known := o.last[string(r.Key)]
	if known && before.partition != r.Partition {
		o.add(&r, "key %q was on partition %d", r.Key, before.partition)
	}
	if known && !later(pos, before.pos) {
		o.add(&r, "key %q: the event at %s comes after the one at %s", r.Key, pos, before.pos)
	}
	o.last[string(r.Key)] = place{r.Partition, pos}
}

// later reports whether a is behind b. In a segment a blob is in one shard, so another shard is disorder, too.
func later(a, b envelope.Position) bool {
	if c := strings.Compare(a.Segment, b.Segment); c != 0 {
		return c > 0
	}
	return a.Shard == b.Shard && cmp.Or(cmp.Compare(a.Chunk, b.Chunk), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Index, b.Index)) > 0
}

// Barrier checks that no record of a segment comes after one of a later segment on its partition.
type Barrier struct {
	failures
	last map[int32]string
}

// NewBarrier returns a Barrier.
func NewBarrier() *Barrier { return &Barrier{last: map[int32]string{}} }

// Note implements Validator.
func (b *Barrier) Note(r Record) {
	if r.Key == nil {
		return
	}
	pos := string(r.Header("position"))
	if len(pos) < 15 {
		b.add(&r, "header position is %q", pos)
		return
	}
	segment := pos[:15] // YYYY/MM/DD/HHMM
	if segment < b.last[r.Partition] {
		b.add(&r, "an event of segment %s comes after one of %s", segment, b.last[r.Partition])
		return
	}
	b.last[r.Partition] = segment
}

// Partition checks that keys are where a function says.
type Partition struct {
	failures
	partitions int
	of         func(key []byte, partitions int) int32
}

// NewPartition returns a Partition for a topic with so many partitions.
func NewPartition(partitions int, of func(key []byte, partitions int) int32) *Partition {
	return &Partition{partitions: partitions, of: of}
}

// Note implements Validator.
func (p *Partition) Note(r Record) {
	if r.Key == nil {
		return
	}
	if want := p.of(r.Key, p.partitions); want != r.Partition {
		p.add(&r, "key %q belongs to partition %d", r.Key, want)
	}
}

// Resolved checks the markers: after R on a partition no record has updated <= R, and R never falls. Failures also
// compares the partitions: each has to get every marker.
type Resolved struct {
	failures
	partitions int
	last       map[int32]envelope.Timestamp
	seen       map[int32][]envelope.Timestamp
}

// NewResolved returns a Resolved for a topic with so many partitions.
func NewResolved(partitions int) *Resolved {
	return &Resolved{partitions: partitions, last: map[int32]envelope.Timestamp{}, seen: map[int32][]envelope.Timestamp{}}
}

// Markers is how many markers partition 0 has.
func (v *Resolved) Markers() int { return len(v.seen[0]) }

// Note implements Validator.
func (v *Resolved) Note(r Record) {
	last := v.last[r.Partition]
	if r.Key != nil {
		ts, err := envelope.ParseTimestamp(string(r.Header("updated")))
		if err != nil {
			v.add(&r, "header updated: %v", err)
		} else if ts.Compare(last) <= 0 {
			v.add(&r, "updated %s comes after the marker %s", ts, last)
		}
		return
	}
	text, ok := bytes.CutPrefix(r.Value, []byte(`{"resolved":"`))
	ts, err := envelope.ParseTimestamp(string(bytes.TrimSuffix(text, []byte(`"}`))))
	if !ok || err != nil {
		v.add(&r, "%q is no marker", r.Value)
		return
	}
	if ts.Compare(last) < 0 {
		v.add(&r, "the marker %s comes after %s", ts, last)
	}
	v.last[r.Partition] = ts
	v.seen[r.Partition] = append(v.seen[r.Partition], ts)
}

// Failures implements Validator.
func (v *Resolved) Failures() []Failure {
	f := v.failures
	for p := range int32(v.partitions) {
		if have, want := v.seen[p], v.seen[0]; len(have) != len(want) {
			f.add(&Record{Partition: p}, "partition %d has %d markers, partition 0 has %d", p, len(have), len(want))
		}
	}
	return f.Failures()
}

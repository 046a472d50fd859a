package verify

import (
	"bytes"
	"fmt"
	"slices"
)

// Order checks that the events of a partition come in the feed's order, each once, by the header position. No event may
// come after one of a later segment (I4). In a segment, those of a shard come by chunk, block and index. A shard has
// one reader at a time, which writes in the order in which it reads (I1), so this holds for every topic of the bridge.
// A repeated event is a failure, except the tombstone that follows its value with DELETES=both. After a seek a
// partition starts again, where the seek went to.
//
// If keys are also on their partitions (Partition), then no event is repeated on the topic and each key's events are in
// order. That is what Unique proves with memory for each event. Order keeps about 100 bytes per partition and shard.
type Order struct {
	// Exact says that no event before the place of a seek comes after it. Without transactions a repair may bring some.
	Exact bool

	failures
	lanes lanes[orderLane]
}

// orderLane is a partition.
type orderLane struct {
	headed  bool               // a record or marker with headers came: those before are from before HEADERS was changed
	segment uint64             // the newest
	from    clock              // of the last seek: events before it are left out
	shards  map[uint64]inShard // the last event of each in that segment
}

type inShard struct {
	form form
	pos  position
}

// NewOrder returns an Order.
func NewOrder() *Order { return &Order{} }

// Note implements Validator.
func (o *Order) Note(r Record) {
	l := o.lanes.of(&r)
	if r.seeks() {
		came, newest := len(l.shards) > 0, l.segment
		*l = orderLane{headed: l.headed, shards: map[uint64]inShard{}}
		if from, to, _ := bytes.Cut(r.Header("seek"), []byte(" ")); o.Exact {
			if came && segmentOf(from) < newest {
				o.add(&r, "the marker names a seek from %s, and an event of segment %s came before it", from,
					segmentText(newest))
			}
			l.segment = segmentOf(to) // zero of a time
			l.from, _ = parseClock(to)
		}
	}
	if r.Scanned() || !l.headed && r.bare() {
		return
	}
	if l.headed = true; r.Key == nil {
		return
	}
	header := r.Header("position")
	pos, ok := parsePosition(header)
	if !ok {
		o.add(&r, "header position is %q", header)
		return
	}
	o.checked++
	if updated, ok := parseClock(r.Header("updated")); ok && updated.compare(l.from) < 0 {
		o.add(&r, "the event at %s is before %s, where a seek has moved the bridge", header, l.from)
	}
	if pos.segment > l.segment {
		l.segment, l.shards = pos.segment, map[uint64]inShard{}
	}
	last, known := l.shards[pos.shard]
	switch c := slices.Compare(pos.inShard[:], last.pos.inShard[:]); {
	case pos.segment < l.segment:
		o.add(&r, "the event at %s comes after one of segment %s", header, segmentText(l.segment))
		return
	case known && c == 0 && !last.form.follows(&r):
		o.add(&r, "the event at %s is repeated", header)
	case known && c < 0:
		at := last.pos.inShard
		o.add(&r, "the event at %s comes after the one in chunk %05d at %d/%d", header, at[0], at[1], at[2])
	}
	l.shards[pos.shard] = inShard{formOf(&r), pos}
}

// segmentOf returns a segment as a number, 0 of other texts.
func segmentOf(text []byte) uint64 {
	p, _ := parsePosition(slices.Concat(text, []byte("/0/0/0/0")))
	return p.segment
}

func segmentText(s uint64) string {
	return fmt.Sprintf("%04d/%02d/%02d/%04d", s/1e8, s/1e6%100, s/1e4%100, s%1e4)
}

// Sequence checks that the sequencers of a key never decrease, by the header sequence, or by the value without
// headers. Sequencers are compared as the service documents: without case, padded to equal length. Order trusts
// the feed's order; Sequence fails if the service wrote a blob's events out of order. Records with an empty
// sequence are skipped, and so are deletions without headers. Sequence keeps the key and about 120 bytes per
// key.
type Sequence struct {
	failures
	rounds rounds
	topics map[string]*byKey[reached]
}

// reached is the last position of a key.
type reached struct {
	sequence sequence
	round    uint16
}

// NewSequence returns a Sequence.
func NewSequence() *Sequence { return &Sequence{topics: map[string]*byKey[reached]{}} }

// Note implements Validator.
func (s *Sequence) Note(r Record) {
	round := s.rounds.at(&r)
	if r.Key == nil || r.Scanned() {
		return
	}
	header, present := r.sequence()
	if present && len(header) == 0 {
		return
	}
	seq, ok := parseSequence(header)
	if !ok {
		s.add(&r, "header sequence is %q", header)
		return
	}
	s.checked++
	if s.topics[r.Topic] == nil {
		s.topics[r.Topic] = &byKey[reached]{}
	}
	last, known := s.topics[r.Topic].at(r.Key)
	if b := last.sequence; known && last.round == round && bytes.Compare(seq[:], b[:]) < 0 {
		s.add(&r, "sequence %s comes after %x", header, b)
	}
	*last = reached{seq, round}
}

package verify

// Order checks that the events of a key come in the feed's order, by the header position, and that the key stays on one
// partition of its topic. The next event is in a later segment, or in the same segment and shard in a later chunk,
// block or index. In a segment a blob is in one shard, so a change of the shard is a failure. A repeated event is a
// failure, except the tombstone that follows its value with DELETES=both. After a seek a key starts again. Order keeps
// the key and about 150 bytes per key.
type Order struct {
	positioned
	rounds rounds
	moves  bool
	topics byTopic[byKey[place]]
}

// NewOrder returns an Order.
func NewOrder() *Order { return &Order{} }

// Moves allows keys to move between partitions, because partitions were added. Then only events on the same partition
// are compared: the order of records on two partitions is unknown.
func (o *Order) Moves() *Order {
	o.moves = true
	return o
}

// Note implements Validator.
func (o *Order) Note(r Record) {
	round := o.rounds.at(&r)
	header, pos, ok := o.locate(&r)
	if !ok {
		return
	}
	last, known := o.topics.at(r.Topic).at(r.Key)
	known = known && last.round == round
	if known && last.partition != r.Partition {
		if o.moves {
			*last = place{r.Partition, formOf(&r), round, pos}
			return
		}
		o.add(&r, "the key was on partition %d", last.partition)
	}
	switch b := last.pos; {
	case !known || pos.segment > b.segment:
	case pos.segment < b.segment:
		o.add(&r, "the event at %s comes after one of segment %012d", header, b.segment)
	case pos.shard != b.shard:
		o.add(&r, "the event at %s comes after one of shard %02d of the segment", header, b.shard)
	case pos.inShard(b) < 0 || pos.inShard(b) == 0 && !last.form.follows(&r):
		o.add(&r, "the event at %s comes after the one at %d/%d/%d of the shard", header, b.chunk, b.offset, b.index)
	}
	*last = place{r.Partition, formOf(&r), round, pos}
}

// Sequence checks that the sequencers of a key never decrease, by the header sequence, or by the value without
// headers. Sequencers are compared as the service documents: without case, padded to equal length. Order trusts
// the feed's order; Sequence fails if the service wrote a blob's events out of order. Records with an empty
// sequence are skipped, and so are deletions without headers. Sequence keeps the key and about 120 bytes per
// key.
type Sequence struct {
	failures
	rounds rounds
	topics byTopic[byKey[reached]]
}

// reached is the last position of a key.
type reached struct {
	sequence sequence
	round    uint16
}

// NewSequence returns a Sequence.
func NewSequence() *Sequence { return &Sequence{} }

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
	last, known := s.topics.at(r.Topic).at(r.Key)
	if b := last.sequence; known && last.round == round && seq.compare(b) < 0 {
		s.add(&r, "sequence %s comes after %016x%016x%016x", header, b[0], b[1], b[2])
	}
	*last = reached{seq, round}
}

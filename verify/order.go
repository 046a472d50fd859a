package verify

// Order checks that the events of a key come in the feed's order, by the header position, and that the key stays on one
// partition of its topic: a later segment, or in the same segment the same shard and a later chunk, block or index. In a
// segment a blob is in one shard, so another shard is disorder, too. So is an event that is repeated, but for the tombstone
// that follows its value with DELETES=both. After a seek a key begins anew. It keeps about 150 bytes a key, and the key.
type Order struct {
	failures
	bare   bareFirst
	rounds rounds
	moves  bool
	topics byTopic[byKey[place]]
}

type place struct {
	partition int32
	form      form
	round     uint16
	pos       position
}

// NewOrder returns an Order.
func NewOrder() *Order { return &Order{} }

// Moves says that keys may move between partitions, since partitions were added. Then only what comes one after the other on
// one partition is compared: nobody knows in which order records of two partitions came.
func (o *Order) Moves() *Order {
	o.moves = true
	return o
}

// Note implements Validator.
func (o *Order) Note(r Record) {
	round := o.rounds.at(&r)
	if r.Key == nil {
		return
	}
	if o.bare.over(&r) {
		return
	}
	header := r.Header("position")
	pos, ok := parsePosition(header)
	if !ok {
		o.add(&r, "header position is %q", header)
		return
	}
	o.checked++
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

// Sequence checks that the sequencers of a key never fall, by the header sequence, or the value where there are no headers.
// They are compared as the service asks: without case, padded to equal length. Where Order trusts the feed's order, this
// does not; it fails if the service itself wrote a blob's events out of order. A record with an empty sequence, as rows of an
// initial scan have, is passed over, and so is a deletion without headers. It keeps about 120 bytes a key, and the key.
type Sequence struct {
	failures
	rounds rounds
	topics byTopic[byKey[reached]]
}

// reached is where a key is.
type reached struct {
	sequence sequence
	round    uint16
}

// NewSequence returns a Sequence.
func NewSequence() *Sequence { return &Sequence{} }

// Note implements Validator.
func (s *Sequence) Note(r Record) {
	round := s.rounds.at(&r)
	if r.Key == nil {
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

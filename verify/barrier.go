package verify

// Barrier checks that on a partition no event comes after an event of a later segment (I4), by the header position.
// It keeps one number per partition.
type Barrier struct {
	positioned
	topics byTopic[map[int32]uint64] // the newest segment by partition
}

// NewBarrier returns a Barrier.
func NewBarrier() *Barrier {
	return &Barrier{topics: mapsByTopic[int32, uint64]()}
}

// Note implements Validator.
func (b *Barrier) Note(r Record) {
	newest := *b.topics.at(r.Topic)
	if r.seeks() {
		delete(newest, r.Partition)
	}
	header, pos, ok := b.locate(&r)
	if !ok {
		return
	}
	switch last := newest[r.Partition]; {
	case pos.segment < last:
		b.add(&r, "the event at %s comes after one of segment %012d", header, last)
	case pos.segment > last:
		newest[r.Partition] = pos.segment
	}
}

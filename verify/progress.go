package verify

// Progress checks that on a partition the events of a shard come in the feed's order, each once, by the header
// position. A shard has one reader at a time, which writes in the order in which it reads (I1, I4), so this holds for
// every topic of the bridge. If keys are also on their partitions (Partition with a function), then no event is
// repeated on the topic and each key's events are in order. That is what Unique and Order prove, without memory that
// grows with events or keys. Progress keeps about 100 bytes per partition and shard.
type Progress struct {
	positioned
	rounds rounds
	topics byTopic[map[lot]place]
}

// lot is the progress of a shard on a partition.
type lot struct {
	partition int32
	shard     uint64
}

// NewProgress returns a Progress.
func NewProgress() *Progress {
	return &Progress{topics: mapsByTopic[lot, place]()}
}

// Note implements Validator.
func (v *Progress) Note(r Record) {
	round := v.rounds.at(&r)
	header, pos, ok := v.locate(&r)
	if !ok {
		return
	}
	lots := *v.topics.at(r.Topic)
	l := lot{r.Partition, pos.shard}
	last, known := lots[l]
	switch b := last.pos; {
	case !known || last.round != round || pos.segment > b.segment:
	case pos.segment < b.segment:
		v.add(&r, "the event at %s comes after one of segment %012d", header, b.segment)
	case pos.inShard(b) == 0 && !last.form.follows(&r):
		v.add(&r, "the event at %s is repeated", header)
	case pos.inShard(b) < 0:
		v.add(&r, "the event at %s comes after the one at %d/%d/%d of the shard", header, b.chunk, b.offset, b.index)
	}
	lots[l] = place{r.Partition, formOf(&r), round, pos}
}

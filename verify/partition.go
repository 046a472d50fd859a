package verify

// Partition checks that each key is on the partition that a function says. Without a function it checks that each key stays
// on the partition where it came first. It does not know of topics whose partition count changes. It keeps nothing; without
// a function, about 60 bytes a key, and the key.
type Partition struct {
	failures
	partitions int
	of         func(key []byte, partitions int) int32
	topics     byTopic[byKey[int32]] // where keys are, without a function
}

// NewPartition returns a Partition for a topic with so many partitions. Of may be nil.
func NewPartition(partitions int, of func(key []byte, partitions int) int32) *Partition {
	return &Partition{partitions: partitions, of: of}
}

// Note implements Validator.
func (p *Partition) Note(r Record) {
	if r.Key == nil {
		return
	}
	p.checked++
	if p.of != nil {
		if want := p.of(r.Key, p.partitions); want != r.Partition {
			p.add(&r, "the key belongs to partition %d", want)
		}
		return
	}
	switch first, known := p.topics.at(r.Topic).at(r.Key); {
	case !known:
		*first = r.Partition
	case *first != r.Partition:
		p.add(&r, "the key came first on partition %d", *first)
	}
}

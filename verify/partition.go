package verify

// Partition checks that each key is on the partition that a function says. Without a function it checks that each key stays
// on the partition where it came first. It keeps nothing; without a function, about 60 bytes a key, and the key.
type Partition struct {
	failures
	counts []int
	of     func(key []byte, partitions int) int32
	topics byTopic[byKey[int32]] // where keys are, without a function
}

// NewPartition returns a Partition for a topic with so many partitions. Of may be nil.
func NewPartition(partitions int, of func(key []byte, partitions int) int32) *Partition {
	return &Partition{counts: []int{partitions}, of: of}
}

// GrownFrom says that the topic had fewer partitions once, or in turn: a key may also be where that count puts it. When
// it moved is not checked.
func (p *Partition) GrownFrom(partitions ...int) *Partition {
	p.counts = append(p.counts, partitions...)
	return p
}

// Note implements Validator.
func (p *Partition) Note(r Record) {
	if r.Key == nil {
		return
	}
	p.checked++
	if p.of != nil {
		for _, n := range p.counts {
			if p.of(r.Key, n) == r.Partition {
				return
			}
		}
		p.add(&r, "the key belongs to partition %d", p.of(r.Key, p.counts[0]))
		return
	}
	switch first, known := p.topics.at(r.Topic).at(r.Key); {
	case !known:
		*first = r.Partition
	case *first != r.Partition:
		p.add(&r, "the key came first on partition %d", *first)
	}
}

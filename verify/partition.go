package verify

// Partition checks that each key is on the partition that a function returns. Without a function it checks that each
// key stays on its first partition, and keeps the key and about 60 bytes per key.
type Partition struct {
	failures
	counts []int
	of     func(key []byte, partitions int) int32
	topics byTopic[byKey[int32]] // where keys are, without a function
}

// NewPartition returns a Partition for a topic with that number of partitions. Of may be nil.
func NewPartition(partitions int, of func(key []byte, partitions int) int32) *Partition {
	return &Partition{counts: []int{partitions}, of: of}
}

// GrownFrom sets former numbers of partitions: a key may also be where one of these puts it. Partition does not check
// when a key moved.
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

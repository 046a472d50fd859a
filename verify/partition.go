package verify

import "slices"

// Partition checks that each key is on the partition that a function returns.
type Partition struct {
	failures
	of     func(key []byte, partitions int) int32
	counts []int // of partitions, rising
	steps  []step
	again  bool
	lanes  lanes[int] // how many steps each partition is behind
}

// step is the marker behind which keys are spread over the next number of partitions.
type step struct {
	at    clock
	seek  string
	vague bool
}

// NewPartition returns a Partition for a topic with that number of partitions.
func NewPartition(partitions int, of func(key []byte, partitions int) int32) *Partition {
	return &Partition{counts: []int{partitions}, of: of}
}

// Grows says that the topic got partitions, and that keys are spread over all of them behind the marker of a time, on
// each partition. A seek repeats a marker: then seek is its header, else it is "". If only a later marker is known, the
// step is vague: until that marker a key may also be where any number between puts it. Call Grows in the order of time.
func (p *Partition) Grows(partitions int, resolved, seek string, vague bool) *Partition {
	at, _ := parseClock([]byte(resolved))
	p.counts, p.steps = append(p.counts, partitions), append(p.steps, step{at, seek, vague})
	return p
}

// Repeats lets a key be where a former number of partitions puts it: with DELIVERY=at_least_once, an instance that was
// paused can repeat records.
func (p *Partition) Repeats() *Partition {
	p.again = true
	return p
}

// Note implements Validator.
func (p *Partition) Note(r Record) {
	if r.Key == nil {
		if len(p.steps) > 0 {
			p.marker(&r)
		}
		return
	}
	p.checked++
	if !p.right(&r) {
		p.add(&r, "the key belongs to partition %d", p.of(r.Key, p.counts[*p.lanes.of(&r)]))
	}
}

// marker takes the steps up to a marker.
func (p *Partition) marker(r *Record) {
	at, _ := marker(r)
	for taken := p.lanes.of(r); *taken < len(p.steps); *taken++ {
		s := p.steps[*taken]
		if c := at.compare(s.at); c < 0 || c == 0 && s.seek != string(r.Header("seek")) {
			break
		}
	}
}

// right reports whether a key is where it belongs.
func (p *Partition) right(r *Record) bool {
	lane := *p.lanes.of(r)
	is := func(n int) bool { return p.of(r.Key, n) == r.Partition }
	if is(p.counts[lane]) || p.again && slices.ContainsFunc(p.counts[:lane], is) {
		return true
	}
	if lane == len(p.steps) || !p.steps[lane].vague {
		return false
	}
	for n := p.counts[lane] + 1; n <= p.counts[lane+1]; n++ {
		if is(n) {
			return true
		}
	}
	return false
}

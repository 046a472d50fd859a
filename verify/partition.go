package verify

import "slices"

// Partition checks that each key is on the partition that a function returns.
type Partition struct {
	// Repeats lets a key be where a former number of partitions puts it: with DELIVERY=at_least_once, an instance that
	// was paused can repeat records.
	Repeats bool

	failures
	of     func(key []byte, partitions int) int32
	counts []int // of partitions, rising
	steps  []Growth
	lanes  lanes[int] // how many steps each partition is behind
}

// Growth says that a topic got partitions, and that keys are spread over all of them behind a marker, on each
// partition.
type Growth struct {
	Partitions int
	Resolved   string // the time of the marker
	Seek       string // its header, if it is that of a seek, which repeats a marker
	// Vague says that only a later marker is known: until that one, a key may also be where any number of partitions
	// between puts it.
	Vague bool
}

// NewPartition returns a Partition for a topic with that number of partitions, which grew, in the order of time.
func NewPartition(partitions int, of func(key []byte, partitions int) int32, grew ...Growth) *Partition {
	p := &Partition{counts: []int{partitions}, of: of, steps: grew}
	for _, g := range grew {
		p.counts = append(p.counts, g.Partitions)
	}
	return p
}

// Note implements Validator.
func (p *Partition) Note(r Record) {
	if r.Key == nil {
		p.marker(&r)
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
		from, _ := parseClock([]byte(s.Resolved))
		if c := at.compare(from); c < 0 || c == 0 && s.Seek != string(r.Header("seek")) {
			break
		}
	}
}

// right reports whether a key is where it belongs.
func (p *Partition) right(r *Record) bool {
	lane := *p.lanes.of(r)
	is := func(n int) bool { return p.of(r.Key, n) == r.Partition }
	if is(p.counts[lane]) || p.Repeats && slices.ContainsFunc(p.counts[:lane], is) {
		return true
	}
	if lane == len(p.steps) || !p.steps[lane].Vague {
		return false
	}
	for n := p.counts[lane] + 1; n <= p.counts[lane+1]; n++ {
		if is(n) {
			return true
		}
	}
	return false
}

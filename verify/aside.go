package verify

// Aside inserts markers from a topic of their own (RESOLVED_TO=topic) among the records: before the record at the
// offset that a marker names. So they are judged as if they were in the topic of records. Aside keeps the markers.
type Aside struct {
	topic   string // of the records
	markers map[int32][]aside
	next    map[int32]int
}

type aside struct {
	at     int64 // shown before the record of this offset
	marker Record
}

// NewAside returns an Aside for the records of a topic.
func NewAside(topic string) *Aside {
	return &Aside{topic: topic, markers: map[int32][]aside{}, next: map[int32]int{}}
}

// Add adds a marker, in the order of its topic. A marker without an offset, or with a lower one, is shown after the one
// before it.
func (a *Aside) Add(r Record) {
	r.In, r.Topic, r.doc = r.Topic, a.topic, nil
	x := aside{marker: r}
	if place := r.document().upTo; place != nil {
		x.at = *place.Offset
	}
	lane := a.markers[r.Partition]
	if n := len(lane); n > 0 {
		x.at = max(x.at, lane[n-1].at)
	}
	a.markers[r.Partition] = append(lane, x)
}

// Rewind starts again with the first marker.
func (a *Aside) Rewind() { clear(a.next) }

// Show shows the markers of a partition that belong in front of the record at an offset, until there is enough of them.
func (a *Aside) Show(partition int32, offset int64, note func(Record) (more bool)) (more bool) {
	for lane := a.markers[partition]; a.next[partition] < len(lane) && lane[a.next[partition]].at <= offset; {
		a.next[partition]++
		if !note(lane[a.next[partition]-1].marker) {
			return false
		}
	}
	return true
}

// First returns the offset that the first marker of a partition names, -1 without a marker.
func (a *Aside) First(partition int32) int64 {
	if lane := a.markers[partition]; len(lane) > 0 {
		return lane[0].at
	}
	return -1
}

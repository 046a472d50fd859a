package verify

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// Resolved checks the markers (I6): on a partition, no data comes after a marker R with updated <= R, and R never falls. At
// the end it compares the partitions of each topic: they have to have the same markers. So it takes readers to the end of
// all partitions. Data that the service published too late, which the bridge counts and logs as late, fails here. After a
// seek the last marker promises nothing, until there is a later one.
//
// A marker's time is that of its header resolved, or of its value {"resolved":"…"}; if it has both, they must agree. Data is
// judged by the header updated, or, without headers, by the value. It keeps 16 bytes a marker and partition.
type Resolved struct {
	failures
	partitions int
	late       map[int32]bool // partitions that begin later; true: with nothing
	topics     byTopic[map[int32]*lane]
}

// lane is a partition.
type lane struct {
	last    clock
	markers []clock // rising, each once
	sought  bool    // by a seek, and there was no newer marker since: what the last one promised is taken back
}

// NewResolved returns a Resolved for topics with so many partitions.
func NewResolved(partitions int) *Resolved {
	return &Resolved{partitions: partitions, late: map[int32]bool{}, topics: byTopic[map[int32]*lane]{fresh: func() *map[int32]*lane { return &map[int32]*lane{} }}}
}

// Markers is how many different markers partition 0 has, of each topic together.
func (v *Resolved) Markers() int {
	n := 0
	for _, lanes := range v.topics.all {
		if l := (*lanes)[0]; l != nil {
			n += len(l.markers)
		}
	}
	return n
}

// Late says that a partition begins later than others: it was added, or retention has removed its begin. It may lack the
// markers before its first one, but not the last; or, if retention has left it nothing, all.
func (v *Resolved) Late(partition int32, nothing bool) { v.late[partition] = nothing }

// Checked is how many markers came, on all partitions. Without one nothing was promised, so nothing can be checked.
func (v *Resolved) Checked() int64 { return v.checked }

// Note implements Validator.
func (v *Resolved) Note(r Record) {
	lanes := *v.topics.at(r.Topic)
	l := lanes[r.Partition]
	if l == nil {
		l = &lane{}
		lanes[r.Partition] = l
	}
	if r.Key != nil {
		header := r.updated()
		switch updated, ok := parseClock(header); {
		case !ok && r.bare():
			v.add(&r, "%s", noUpdated)
		case !ok:
			v.add(&r, "header updated is %q", header)
		case len(l.markers) > 0 && !l.sought && updated.compare(l.last) <= 0:
			v.add(&r, "updated %s comes after the marker %s", header, l.last)
		}
		return
	}
	v.checked++
	at, err := marker(&r)
	switch c := at.compare(l.last); {
	case err != nil:
		v.add(&r, "%v", err)
	case len(l.markers) > 0 && c < 0:
		v.add(&r, "the marker %s comes after %s", at, l.last)
	case len(l.markers) == 0 || c > 0:
		l.last, l.sought = at, r.seeks()
		l.markers = append(l.markers, at)
	default:
		l.sought = l.sought || r.seeks()
	}
}

// marker returns the time of a marker.
func marker(r *Record) (clock, error) {
	header, hasHeader := r.lookup("resolved")
	value := r.document().resolved
	hasValue := len(value) > 0
	if hasHeader && hasValue && !bytes.Equal(header, value) {
		return clock{}, fmt.Errorf("the marker's header says %q, its value %q", header, value)
	}
	text := header
	if !hasHeader {
		text = value
	}
	c, ok := parseClock(text)
	if !ok {
		return clock{}, fmt.Errorf("a record without a key is no marker: header %q, value %q", header, r.Value)
	}
	return c, nil
}

// Failures implements Validator. It also compares the partitions.
func (v *Resolved) Failures() []Failure {
	f := v.copy()
	for _, topic := range slices.Sorted(maps.Keys(v.topics.all)) {
		lanes := *v.topics.all[topic]
		all := map[clock]bool{}
		for _, l := range lanes {
			for _, m := range l.markers {
				all[m] = true
			}
		}
		if len(all) == 0 {
			continue
		}
		sorted := slices.SortedFunc(maps.Keys(all), clock.compare)
		for p := range int32(v.partitions) {
			var have []clock
			if l := lanes[p]; l != nil {
				have = l.markers
			}
			want := sorted
			switch nothing, late := v.late[p]; {
			case late && len(have) > 0:
				i, _ := slices.BinarySearchFunc(sorted, have[0], clock.compare)
				want = sorted[i:]
			case nothing:
				want = nil
			case late:
				want = sorted[len(sorted)-1:]
			}
			if missing := len(want) - len(have); missing > 0 {
				f.end("%s, partition %d lacks %d of %d markers; the first is %s", topic, p, missing, len(want), firstMissing(want, have))
			}
		}
		for _, p := range slices.Sorted(maps.Keys(lanes)) {
			if p < 0 || int(p) >= v.partitions {
				f.end("%s has a partition %d, expected are %d partitions", topic, p, v.partitions)
			}
		}
	}
	return f.Failures()
}

func firstMissing(want, have []clock) clock {
	for i, m := range want {
		if i >= len(have) || have[i] != m {
			return m
		}
	}
	return clock{} // never: want has more than have
}

func (c clock) String() string { return fmt.Sprintf("%d.%010d", c.wall, c.logical) }

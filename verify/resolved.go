package verify

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// Resolved checks the markers (I6): on a partition, no data comes after a marker R with updated <= R, and R never
// falls. At the end it compares the partitions of each topic: they have to have the same markers. So it takes readers
// to the end of all partitions. What the markers say beyond that can be known from the feed (Expect, Due) and from the
// bridge's state (Last). Data that the service published too late, which the bridge counts and logs as late, fails
// here. After a seek the last marker promises nothing, until there is a later one.
//
// A marker's time is that of its value, and of its header resolved if it has one; they must agree, and so must the
// record's timestamp. Data is judged by the header updated, or, without headers, by the value. It keeps 16 bytes a
// marker and partition.
type Resolved struct {
	failures
	partitions int
	late       map[int32]bool // partitions that begin later; true: with nothing
	topics     byTopic[map[int32]*lane]

	expected    map[clock]bool // of the feed; true: due
	former      map[clock]bool // of the feed, before a change of settings
	unexpected  []string
	earliest    clock // of those
	timeless    bool  // records say no time
	ends        map[int32]int64
	least, most clock // the last marker is between them; zero: not known
}

// lane is a partition.
type lane struct {
	last    clock
	markers []clock // rising, each once
	since   bool    // a marker was as it is expected now, and not before a change
	sought  bool    // by a seek, and there was no newer marker since: what the last one promised is taken back
	seek    clock   // the marker of the last seek
	upTo    int64   // of markers in a topic of their own
}

// NewResolved returns a Resolved for topics with so many partitions.
func NewResolved(partitions int) *Resolved {
	return &Resolved{partitions: partitions, late: map[int32]bool{},
		topics: byTopic[map[int32]*lane]{fresh: func() *map[int32]*lane { return &map[int32]*lane{} }}}
}

// Expect says that a segment of the feed ends with this marker, before any record is shown. A marker that is not
// expected then fails, unless it is from before all of them: the feed may have lost its begin.
func (v *Resolved) Expect(resolved string) {
	at, ok := parseClock([]byte(resolved))
	if !ok {
		return
	}
	if len(v.expected) == 0 || at.compare(v.earliest) < 0 {
		v.earliest = at
	}
	if v.expected == nil {
		v.expected = map[clock]bool{}
	}
	if _, known := v.expected[at]; !known {
		v.expected[at] = false
	}
}

// Former says how the marker of a segment was before a change of settings: right in front of all that are as expected now.
func (v *Resolved) Former(resolved string) {
	at, ok := parseClock([]byte(resolved))
	if !ok {
		return
	}
	if v.former == nil {
		v.former = map[clock]bool{}
	}
	v.former[at] = true
}

// Unexpected returns the first markers that no segment gives reason for.
func (v *Resolved) Unexpected() []string { return v.unexpected }

// Came reports whether a partition has a marker.
func (v *Resolved) Came(resolved string) bool {
	at, _ := parseClock([]byte(resolved))
	for _, lanes := range v.topics.all {
		for _, l := range *lanes {
			if slices.Contains(l.markers, at) {
				return true
			}
		}
	}
	return false
}

// Due says, at any time, that an expected marker has to be there. Those at or below the marker of a seek need not be.
func (v *Resolved) Due(resolved string) {
	if at, ok := parseClock([]byte(resolved)); ok && v.expected != nil {
		v.expected[at] = true
	}
}

// Last says between which times the last marker is, by the bridge's own state. An empty text says nothing.
func (v *Resolved) Last(least, most string) {
	v.least, _ = parseClock([]byte(least))
	v.most, _ = parseClock([]byte(most))
}

// Timeless says that records say no time (HEADERS=none, and no updated in the value): only the markers are judged.
func (v *Resolved) Timeless() { v.timeless = true }

// Ends says where the partitions end, of which markers in a topic of their own speak.
func (v *Resolved) Ends(ends map[int32]int64) { v.ends = ends }

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

// Newest returns the time of the newest marker, or "".
func (v *Resolved) Newest() string {
	var newest clock
	for _, lanes := range v.topics.all {
		for _, l := range *lanes {
			if l.last.compare(newest) > 0 {
				newest = l.last
			}
		}
	}
	if newest == (clock{}) {
		return ""
	}
	return newest.String()
}

// Late says that a partition begins later than others: it was added, or retention has removed its begin. It may lack
// the markers before its first one, but not the last; or, if retention has left it nothing, all.
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
	if r.Key != nil && v.timeless {
		return
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
	if err != nil {
		v.add(&r, "%v", err)
	}
	if at == (clock{}) {
		return
	}
	switch _, now := v.expected[at]; {
	case v.expected == nil, at.compare(v.earliest) < 0, v.former[at] && (now || !l.since):
	case now:
		l.since = true
	default:
		if len(v.unexpected) < kept {
			v.unexpected = append(v.unexpected, at.String())
		}
		v.add(&r, "the marker says %s, and with these settings no segment of the feed ends so", at)
	}
	if r.seeks() {
		l.seek = at
	}
	if r.In != "" {
		v.place(&r, l)
	}
	switch c := at.compare(l.last); {
	case len(l.markers) > 0 && c < 0:
		v.add(&r, "the marker %s comes after %s", at, l.last)
	case len(l.markers) == 0 || c > 0:
		l.last, l.sought = at, r.seeks()
		l.markers = append(l.markers, at)
	default:
		l.sought = l.sought || r.seeks()
	}
}

// place checks where a marker in a topic of its own says that its records end.
func (v *Resolved) place(r *Record, l *lane) {
	at := r.document().upTo
	if at == nil {
		v.add(r, "the marker says no partition and offset: %.100q", r.Value)
		return
	}
	end, known := v.ends[r.Partition]
	switch {
	case *at.Partition != r.Partition:
		v.add(r, "the marker speaks of partition %d of %s, and is on partition %d", *at.Partition, r.Topic, r.Partition)
	case *at.Offset < l.upTo:
		v.add(r, "the marker speaks of offset %d, the one before of %d", *at.Offset, l.upTo)
	case known && *at.Offset > end:
		v.add(r, "the marker speaks of offset %d, and the partition ends at %d", *at.Offset, end)
	}
	l.upTo = *at.Offset
}

// MarkerTime returns the time of a marker, "" of what is none: that of the value, or else of the header.
func (r *Record) MarkerTime() string {
	if r.Key != nil {
		return ""
	}
	for _, text := range [...][]byte{r.document().resolved, r.Header("resolved")} {
		if _, ok := parseClock(text); ok {
			return string(text)
		}
	}
	return ""
}

// marker returns the time of a marker, the zero time if it is none, and what is wrong with it. Readers such as Flink
// read the value, others the header: both count. Only a value in Avro that nobody reads is taken on the header's word.
func marker(r *Record) (clock, error) {
	header, hasHeader := r.lookup("resolved")
	value := r.document().resolved
	if r.Avro == nil && framed(r.Value) && len(value) == 0 {
		value = header
	}
	at, ok := parseClock(value)
	switch {
	case !ok && hasHeader:
		return clock{}, fmt.Errorf("the marker's header says %q, and its value no time: %.100q", header, r.Value)
	case !ok:
		return clock{}, fmt.Errorf("a record without a key is no marker: %.100q", r.Value)
	case hasHeader && !bytes.Equal(header, value):
		return clock{}, fmt.Errorf("the marker's header says %q, its value %q", header, value)
	case r.Millis != 0 && uint64(r.Millis) != at.wall/1e6:
		return at, fmt.Errorf("the marker says %s, and its record's timestamp %d", at, r.Millis)
	}
	return at, nil
}

// Failures implements Validator. It also compares the partitions.
func (v *Resolved) Failures() []Failure {
	f := v.copy()
	if len(v.topics.all) == 0 && v.least != (clock{}) {
		f.end("there is no marker, and the state says that there is one for %s", v.least)
	}
	for _, topic := range slices.Sorted(maps.Keys(v.topics.all)) {
		lanes := *v.topics.all[topic]
		for _, p := range slices.Sorted(maps.Keys(lanes)) {
			if p < 0 || int(p) >= v.partitions {
				f.end("%s has a partition %d, expected are %d partitions", topic, p, v.partitions)
			}
		}
		sorted := v.wanted(lanes)
		var last clock
		for _, l := range lanes {
			if l.last.compare(last) > 0 {
				last = l.last
			}
		}
		switch {
		case last == (clock{}) && len(v.late) == v.partitions: // retention has removed them all
		case last.compare(v.least) < 0 && last == (clock{}):
			f.end("%s has no marker, and the state says that there is one for %s", topic, v.least)
		case last.compare(v.least) < 0:
			f.end("the last marker of %s is %s, and the state says that there is one for %s", topic, last, v.least)
		case v.most != (clock{}) && last.compare(v.most) > 0:
			f.end("the last marker of %s is %s, and the state says that nothing is resolved above %s", topic, last, v.most)
		}
		if len(sorted) == 0 {
			continue
		}
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
	}
	return f.Failures()
}

// wanted returns the markers that each partition has to have: what one of them has, and what is due.
func (v *Resolved) wanted(lanes map[int32]*lane) []clock {
	all := map[clock]bool{}
	var seek clock
	for _, l := range lanes {
		for _, m := range l.markers {
			all[m] = true
		}
		if l.seek.compare(seek) > 0 {
			seek = l.seek
		}
	}
	for m, due := range v.expected {
		if due && m.compare(seek) > 0 {
			all[m] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), clock.compare)
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

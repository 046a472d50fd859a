package verify

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
)

// Resolved checks the markers (I6): on a partition, no record with updated <= R comes after a marker R, and R never
// decreases. At the end it compares the partitions of each topic, which must have the same markers, so all partitions
// have to be read to the end. The right times of markers come from the feed (Expect, Require) and from the bridge's
// state (Last). Records that the service published too late, which the bridge counts and logs as late, fail here.
// After a seek the last marker promises nothing until there is a later one.
//
// The time of a marker is in its value, and in its header resolved if it has one. They must agree with each other and
// with the record's timestamp. Records are judged by the header updated, or without headers by the value. Resolved
// keeps 16 bytes per marker and partition.
type Resolved struct {
	// Feed is the feed whose markers these are, "" if it is not known.
	Feed string
	// Seeks and Gaps are what the state of the bridge says, read after the topic: how many markers of a partition can
	// name a seek, or lost history. More are a failure.
	Seeks, Gaps int64
	// Repeats says that a marker may come twice (at_least_once).
	Repeats bool
	// Headers says that markers have headers, from the first one on that has.
	Headers bool
	// Timeless declares records without a time (HEADERS=none, and no updated in the value): only the markers are
	// judged.
	Timeless bool
	// Ends are those of the partitions that markers in a topic of their own name.
	Ends map[int32]int64

	failures
	partitions int
	late       map[int32]bool // partitions that start later; true: empty ones
	lanes      lanes[lane]

	expected    map[clock]bool // of the feed; true: due
	earliest    clock          // of the expected
	least, most clock          // bounds of the last marker; zero: unknown
}

// lane is a partition.
type lane struct {
	last    clock
	markers []clock // rising, each once
	same    int     // how many have the time of the last one
	sought  bool    // a seek has taken the last promise back, and no newer marker has come since
	moves   []moved // and lost history
	headed  bool    // a marker with the header resolved came
	seeks   naming
	gaps    naming
	upTo    int64 // of markers in a topic of their own
}

// moved is what a marker says of a seek or of lost history: its time, the header, and which one of that time it is on
// its partition; 0: unknown.
type moved struct {
	at         clock
	name, text string
	same       int
}

// naming counts the markers with a header that names two places in the feed.
type naming struct {
	markers int64
	last    Record
	texts   map[string]bool // of the header
}

// NewResolved returns a Resolved for topics with that number of partitions.
func NewResolved(partitions int) *Resolved {
	return &Resolved{partitions: partitions, late: map[int32]bool{}, expected: map[clock]bool{},
		Seeks: math.MaxInt64, Gaps: math.MaxInt64}
}

// StartsLate declares a partition that starts later than others, because it was added or retention deleted its start.
// It may lack the markers before its first one, but not the last one. If retention has left it empty, it may lack all.
func (v *Resolved) StartsLate(partition int32, nothing bool) { v.late[partition] = nothing }

// Note implements Validator.
func (v *Resolved) Note(r Record) {
	l := v.lanes.of(&r)
	if r.Key != nil {
		header := r.Updated()
		switch updated, ok := parseClock(header); {
		case v.Timeless:
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
	if _, known := v.expected[at]; len(v.expected) > 0 && !known && at.compare(v.earliest) >= 0 {
		v.add(&r, "the marker has time %s, which with these settings no segment of the feed explains", at)
	}
	v.heed(&r, l)
	if r.seeks() && !v.Repeats && len(l.markers) > 0 && at.compare(l.last) > 0 {
		v.add(&r, "the marker names a seek, and does not repeat the one before, %s", l.last)
	}
	if r.In != "" {
		v.checkOffset(&r, l)
	}
	switch c := at.compare(l.last); {
	case len(l.markers) > 0 && c < 0:
		v.add(&r, "the marker %s comes after %s", at, l.last)
	case len(l.markers) == 0 || c > 0:
		l.last, l.same, l.sought = at, 1, r.seeks()
		l.markers = append(l.markers, at)
	default:
		l.same++
		l.sought = l.sought || r.seeks()
	}
	for _, name := range [...]string{"seek", "gap"} {
		if text, ok := r.lookup(name); ok {
			l.moves = append(l.moves, moved{at, name, string(text), l.same})
		}
	}
	_, headed := r.lookup("resolved")
	if v.Headers && l.headed && !headed {
		v.add(&r, "the marker has no header resolved, and one before it has")
	}
	l.headed = l.headed || headed
}

// Failures implements Validator. It also compares the partitions.
func (v *Resolved) Failures() []Failure {
	f := v.copy()
	for _, at := range slices.SortedFunc(maps.Keys(v.lanes.all), topicPartition.compare) {
		l := v.lanes.all[at]
		if n := l.seeks.markers; n > v.Seeks {
			f.add(&l.seeks.last, "the marker names a seek, number %d of its partition, and the state counts %d",
				n, v.Seeks)
		}
		if n := l.gaps.markers; n > v.Gaps {
			f.add(&l.gaps.last, "the marker names lost history, number %d of its partition, and the state counts %d",
				n, v.Gaps)
		}
	}
	if len(v.lanes.all) == 0 && len(v.late) < v.partitions && v.least != (clock{}) {
		f.end("there is no marker, but by the state there is one for %s", v.least)
	}
	topics := map[string]map[int32]*lane{}
	for _, at := range slices.SortedFunc(maps.Keys(v.lanes.all), topicPartition.compare) {
		if at.partition < 0 || int(at.partition) >= v.partitions {
			f.end("%s has a partition %d, but %d partitions are expected", at.topic, at.partition, v.partitions)
		}
		if topics[at.topic] == nil {
			topics[at.topic] = map[int32]*lane{}
		}
		topics[at.topic][at.partition] = v.lanes.all[at]
	}
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		lanes := topics[topic]
		sorted := v.wanted(lanes)
		v.movesEverywhere(f, topic, lanes)
		var last clock
		for _, l := range lanes {
			if l.last.compare(last) > 0 {
				last = l.last
			}
		}
		switch {
		case last == (clock{}) && len(v.late) == v.partitions: // retention has removed them all
		case last.compare(v.least) < 0 && last == (clock{}):
			f.end("%s has no marker, but by the state there is one for %s", topic, v.least)
		case last.compare(v.least) < 0:
			f.end("the last marker of %s is %s, but by the state there is one for %s", topic, last, v.least)
		case v.most != (clock{}) && last.compare(v.most) > 0:
			f.end("the last marker of %s is %s, but by the state nothing above %s is resolved", topic, last, v.most)
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
			missing := slices.DeleteFunc(slices.Clone(want), func(m clock) bool {
				_, has := slices.BinarySearchFunc(have, m, clock.compare)
				return has
			})
			if len(missing) > 0 {
				f.end("%s, partition %d lacks %d of %d markers; the first is %s",
					topic, p, len(missing), len(want), missing[0])
			}
		}
	}
	return f.Failures()
}

// movesEverywhere adds the seeks and the lost history that some partitions have and others lack: one transaction writes
// a marker to all of them.
func (v *Resolved) movesEverywhere(f *failures, topic string, lanes map[int32]*lane) {
	known := map[moved]bool{}
	for _, p := range slices.Sorted(maps.Keys(lanes)) {
		for _, m := range lanes[p].moves {
			if _, late := v.late[p]; late && m.at == lanes[p].markers[0] {
				m.same = 0
			}
			if v.Repeats || known[m] {
				continue
			}
			known[m] = true
			for _, q := range slices.Sorted(maps.Keys(lanes)) {
				if _, late := v.late[q]; v.lacks(lanes[q], late, m) {
					f.end("%s, partition %d lacks the %s %q at the marker %s, which partition %d has",
						topic, q, m.name, m.text, m.at, p)
				}
			}
		}
	}
}

// lacks reports whether a partition lacks what another one has. With a state, the bridge may have written the marker
// while the topic was read.
func (v *Resolved) lacks(l *lane, late bool, m moved) bool {
	has := slices.ContainsFunc(l.moves, func(o moved) bool {
		if late || m.same == 0 {
			o.same = m.same
		}
		return o == m
	})
	switch {
	case has, len(l.markers) == 0, late && l.markers[0].compare(m.at) >= 0:
		return false
	case l.last == m.at && (m.same == 0 || l.same < m.same):
		return v.Seeks == math.MaxInt64
	}
	return l.last.compare(m.at) >= 0 || v.Seeks == math.MaxInt64
}

// heed judges and counts what markers say of the bridge, which validators and consumers believe.
func (v *Resolved) heed(r *Record, l *lane) {
	if header, ok := r.lookup("feed"); ok && v.Feed != "" && string(header) != v.Feed {
		v.add(r, "the marker names feed %q, and by the state the topic is of %s", header, v.Feed)
	}
	for name, n := range map[string]*naming{"seek": &l.seeks, "gap": &l.gaps} {
		header, ok := r.lookup(name)
		if !ok {
			continue
		}
		if !places.Match(header) {
			v.add(r, "the marker's header %s does not name two places in the feed: %.100q", name, header)
		}
		if v.Repeats && n.texts[string(header)] {
			continue
		}
		if n.texts == nil {
			n.texts = map[string]bool{}
		}
		n.markers, n.last, n.texts[string(header)] = n.markers+1, r.place(), true
	}
}

// places matches the header of a seek or of lost history: from where, and to a segment, a time or the earliest event.
var places = regexp.MustCompile(`^(-|\d{4}/\d\d/\d\d/\d{4}) (\d{4}/\d\d/\d\d/\d{4}|\d+\.\d{10}|earliest)$`)

// checkOffset checks the offset that a marker in a topic of its own names.
func (v *Resolved) checkOffset(r *Record, l *lane) {
	at := r.document().upTo
	if at == nil {
		v.add(r, "the marker names no partition and offset: %.100q", r.Value)
		return
	}
	end, known := v.Ends[r.Partition]
	switch {
	case *at.Partition != r.Partition:
		v.add(r, "the marker names partition %d of %s, and is on partition %d", *at.Partition, r.Topic, r.Partition)
	case *at.Offset < l.upTo:
		v.add(r, "the marker names offset %d, the one before it offset %d", *at.Offset, l.upTo)
	case known && *at.Offset > end:
		v.add(r, "the marker names offset %d, and the partition ends at %d", *at.Offset, end)
	}
	l.upTo = *at.Offset
}

// wanted returns the markers that each partition must have: those of any partition, and those that are due.
func (v *Resolved) wanted(lanes map[int32]*lane) []clock {
	all := map[clock]bool{}
	var seek clock
	for _, l := range lanes {
		for _, m := range l.markers {
			all[m] = true
		}
		for _, m := range l.moves {
			if m.name == "seek" && m.at.compare(seek) > 0 {
				seek = m.at
			}
		}
	}
	for m, due := range v.expected {
		if due && m.compare(seek) > 0 {
			all[m] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), clock.compare)
}

// The feed and the state of the bridge say which markers a topic must have.

// Expect adds the marker of a segment of the feed. Call it before any record is shown, and before Require. Then an
// unexpected marker is a failure, unless it is below all expected ones: the feed may have lost its start.
func (v *Resolved) Expect(resolved string) {
	at, ok := parseClock([]byte(resolved))
	if !ok {
		return
	}
	if len(v.expected) == 0 || at.compare(v.earliest) < 0 {
		v.earliest = at
	}
	v.expected[at] = false
}

// Require makes an expected marker required, at any time, unless it is at or below the marker of a seek.
func (v *Resolved) Require(resolved string) {
	if at, ok := parseClock([]byte(resolved)); ok && len(v.expected) > 0 {
		v.expected[at] = true
	}
}

// Last sets the bounds of the last marker, by the state of the bridge. An empty text is no bound.
func (v *Resolved) Last(least, most string) {
	v.least, _ = parseClock([]byte(least))
	v.most, _ = parseClock([]byte(most))
}

// MarkerTime returns the time of a marker from its value, or else from its header. It returns "" for other records.
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

// marker returns the time of a marker, or the zero time for other records, and what is wrong with it. Readers such as
// Flink use the value, others the header, so both count. Only if a value in Avro can't be read, the header alone
// counts.
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

// UpTo returns the partition and the offset in the topic of records that a marker in a topic of its own names.
func (r *Record) UpTo() (partition int32, offset int64, ok bool) {
	if r.Key != nil || r.In == "" || r.document().upTo == nil {
		return 0, 0, false
	}
	at := r.document().upTo
	return *at.Partition, *at.Offset, true
}

// MarkerTopic inserts markers from a topic of their own (RESOLVED_TO=topic) among the records: before the record at the
// offset that a marker names. So they are judged as if they were in the topic of records. MarkerTopic keeps the
// markers.
type MarkerTopic struct {
	topic   string // of the records
	markers map[int32][]placedMarker
	next    map[int32]int
}

type placedMarker struct {
	at     int64 // shown before the record of this offset
	marker Record
}

// NewMarkerTopic returns an MarkerTopic for the records of a topic.
func NewMarkerTopic(topic string) *MarkerTopic {
	return &MarkerTopic{topic: topic, markers: map[int32][]placedMarker{}, next: map[int32]int{}}
}

// Add adds a marker, in the order of its topic. A marker without an offset, or with a lower one, is shown after the one
// before it.
func (a *MarkerTopic) Add(r Record) {
	r.In, r.Topic, r.doc = r.Topic, a.topic, nil
	x := placedMarker{marker: r}
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
func (a *MarkerTopic) Rewind() { clear(a.next) }

// Show shows the markers of a partition that belong in front of the record at an offset, until there is enough of them.
func (a *MarkerTopic) Show(partition int32, offset int64, note func(Record) (more bool)) (more bool) {
	for lane := a.markers[partition]; a.next[partition] < len(lane) && lane[a.next[partition]].at <= offset; {
		a.next[partition]++
		if !note(lane[a.next[partition]-1].marker) {
			return false
		}
	}
	return true
}

// First returns the offset that the first marker of a partition names, -1 without a marker.
func (a *MarkerTopic) First(partition int32) int64 {
	if lane := a.markers[partition]; len(lane) > 0 {
		return lane[0].at
	}
	return -1
}

package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
)

// Replay checks that a topic has the events of the feed, or of another topic, with the same bytes, in the same order
// per key. First add the expected records with Expect, each key's in order. Partitions and topics are not compared.
//
// Rows of scans are not compared. In a compacted topic, a row stands for all events of its key before it.
//
// An event is identified by its id, or by its key and updated, or if it has neither, by its bytes. Replay keeps 32
// bytes per event (up to a quarter more while it grows), and the key and about 130 bytes per key.
type Replay struct {
	// Repeats says that events may be repeated, but each key ends on its newest (at_least_once).
	Repeats bool
	// Latest says that only the latest event of a key is required (a compacted topic).
	Latest bool
	// Moves says that keys move between partitions. The order of records on two partitions is unknown, so the order is
	// not checked.
	Moves bool
	// Returns says that a seek back has brought all required events again: a key of which some came again ends on its
	// newest. ExpectOnce adds exceptions.
	Returns bool
	// EncodingTime declares values of the enriched envelope: their ts_ms and ts_ns at the top may differ.
	EncodingTime bool
	// Required is how many of the expected events are required. If it is 0, no loss can be found.
	Required int64

	failures
	rounds rounds
	places lanes[topicPartition] // of records
	keys   byKey[chain]
}

// Expect adds an event. If it is not required, it may be missing, because the topic does not have it yet or no longer.
func (v *Replay) Expect(r Record, required bool) {
	if required {
		v.expect(&r, replayRequired)
	} else {
		v.expect(&r, 0)
	}
}

// ExpectOnce adds a required event that a seek back may not have brought again yet.
func (v *Replay) ExpectOnce(r Record) { v.expect(&r, replayRequired|replayOnce) }

// Doubt adds an event of which nobody knows whether it is required. Doubtful counts it if it is missing.
func (v *Replay) Doubt(r Record) { v.expect(&r, replayDoubtful) }

// Skip adds an event that a seek may have skipped. Skipped counts it if it is missing.
func (v *Replay) Skip(r Record) { v.expect(&r, replaySkipped) }

func (v *Replay) expect(r *Record, flag uint64) {
	if r.Key == nil {
		return
	}
	e := v.eventOf(r)
	if e.rest |= flag; flag&replayRequired != 0 {
		v.Required++
	}
	c, _ := v.keys.at(r.Key)
	if len(c.events) == cap(c.events) { // append would double
		c.events = slices.Grow(c.events, 1+len(c.events)/4)
	}
	c.events = append(c.events, e)
}

func (v *Replay) eventOf(r *Record) event {
	value := r.Value
	if v.EncodingTime {
		value = r.withoutEncodingTime()
	}
	e := event{value: maphash.Bytes(seed, value)}
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range r.Headers {
		if v.Repeats && r.Headers[i].Key == "epoch" {
			continue // of the state that it was written under
		}
		name, text := r.Headers[i].Key, r.Headers[i].Value
		maphash.WriteComparable(&h, [2]int{len(name), len(text)}) // where each ends
		_, _ = h.WriteString(name)                                // a Hash never fails
		_, _ = h.Write(text)
	}
	e.rest = h.Sum64() & headerBits
	var known bool
	if e.id, _, known = r.identity(); !known {
		e.id = idOf(value)
	}
	if r.Value == nil {
		e.rest |= replayTombstone
	}
	if r.Millis != 0 {
		e.rest |= replayTimed | uint64(r.Millis)<<8&timeBits
	}
	return e
}

// Note implements Validator.
func (v *Replay) Note(r Record) {
	round := v.rounds.at(&r)
	if r.Key == nil {
		return
	}
	c := v.keys[string(r.Key)]
	if r.Scanned() {
		if c != nil {
			c.row = true
		}
		return
	}
	v.checked++
	if c == nil {
		v.add(&r, "no event of this key is expected")
		return
	}
	if c.round != round {
		c.begin(round)
	}
	c.row = false
	e := v.eventOf(&r)
	i := c.find(&e)
	if i < 0 {
		v.add(&r, "event %s is not expected", e.name(&r))
		return
	}
	want := &c.events[i]
	again := want.rest&replayAgain != 0
	switch {
	case again && !v.Repeats:
		v.add(&r, "event %s is repeated", e.name(&r))
	case v.Repeats && v.Latest: // compaction may remove the first copy of an event, and keep later events
	case !again && i < c.next && !v.Moves:
		v.add(&r, "event %s comes after a later one of its key", e.name(&r))
	}
	if what := e.differs(want); what != "" {
		at := failureAt(&r)
		at.Expected = i + 1
		v.put(at, "event %s has %s than expected", e.name(&r), what)
	}
	want.rest |= replaySeen | replayAgain
	c.next = max(c.next, i+1)
	c.last, c.offset, c.place = int32(i), r.Offset, v.places.of(&r)
	*c.place = topicPartition{r.Topic, r.Partition}
}

// Failures implements Validator. It includes the missing events.
func (v *Replay) Failures() []Failure {
	missing := 0
	lacking := []string{} // keys
	for key, c := range v.keys {
		if n := len(c.missing(v.Latest, replayRequired)); n > 0 {
			missing += n
			lacking = append(lacking, key)
		}
	}
	f := &failures{}
	if (v.Repeats || v.Returns) && !v.Moves {
		v.stale(f)
	}
	if missing == 0 && len(f.first) == 0 {
		return v.failures.Failures()
	}
	// In front, as in Complete.
	slices.Sort(lacking)
	if missing > 0 {
		f.end("lacks %d of %d required events", missing, v.Required)
	}
	full := len(f.first) + examples
	for _, key := range lacking[:min(examples, len(lacking))] {
		for _, i := range v.keys[key].missing(v.Latest, replayRequired) {
			if len(f.first) < full {
				f.put(Failure{Key: key, Expected: i + 1, Lacking: true},
					"an event is missing, number %d of the key's %d", i+1, len(v.keys[key].events))
			}
		}
	}
	f.first = append(f.first, v.first...)
	f.more = v.more
	return f.Failures()
}

// Doubtful returns how many events are missing of which nobody knows whether they are required.
func (v *Replay) Doubtful() int64 { return v.lacking(replayDoubtful) }

// Skipped returns how many events are missing that a seek may have skipped.
func (v *Replay) Skipped() int64 { return v.lacking(replaySkipped) }

// lacking returns how many events with a flag are missing. A deletion and the tombstone behind it are one.
func (v *Replay) lacking(flag uint64) (n int64) {
	for _, c := range v.keys {
		for _, i := range c.missing(v.Latest, flag) {
			second := i > 0 && c.events[i].rest&replayTombstone != 0 && c.events[i-1].id == c.events[i].id
			if !second || c.events[i-1].rest&replaySeen != 0 {
				n++
			}
		}
	}
	return n
}

// stale adds keys that end on an older event than required. Repeated events come in order, so no older event comes
// after the newest that has come again.
func (v *Replay) stale(f *failures) {
	var keys []string
	for key, c := range v.keys {
		again := v.Repeats || c.round > 0 && int(c.round) == len(v.rounds.numbers)
		if at := c.newest(); again && at >= 0 && c.events[at].rest&replaySeen != 0 && int(c.last) < at {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if len(keys) > 0 {
		f.end("the newest event is not the last one of %d of %d keys", len(keys), len(v.keys))
	}
	for _, key := range keys[:min(examples, len(keys))] {
		c := v.keys[key]
		at := Failure{Topic: c.place.topic, Partition: c.place.partition, Offset: c.offset, Key: key,
			Expected: c.newest() + 1, Lacking: true}
		f.put(at, "the last event is number %d of the key's %d, and number %d came before",
			c.last+1, len(c.events), at.Expected)
	}
}

// Bad returns the number of failures so far.
func (v *Replay) Bad() int64 { return int64(len(v.first)) + v.more }

// chain is the events of a key.
type chain struct {
	events []event
	next   int          // the first that did not come in this round, but for those that others overtook
	index  map[id]int32 // of events, once one came that is not the next
	place  *topicPartition
	offset int64
	last   int32 // the one that came last, at place and offset
	round  uint16
	row    bool // a row of a scan came last
	twice  bool // an event is expected more than once; known with index
}

// event is an expected event. Rest has 32 bits of its headers, 24 of its time, and 8 flags.
type event struct {
	id    id
	value uint64
	rest  uint64
}

const (
	replaySeen  uint64 = 1 << iota
	replayAgain        // and in this round
	replayRequired
	replayDoubtful
	replayTombstone
	replayTimed
	replayOnce
	replaySkipped

	timeBits   = 0xffffff << 8
	headerBits = 0xffffffff << 32
)

// same reports whether two are the same event in the same form.
func (e *event) same(o *event) bool { return e.id == o.id && (e.rest^o.rest)&replayTombstone == 0 }

// differs names the difference between two records of an event, or returns "".
func (e *event) differs(o *event) string {
	switch {
	case e.value != o.value:
		return "another value"
	case (e.rest^o.rest)&headerBits != 0:
		return "other headers"
	case e.rest&o.rest&replayTimed != 0 && (e.rest^o.rest)&timeBits != 0:
		return "another timestamp"
	}
	return ""
}

// name returns how a failure names an event.
func (e *event) name(r *Record) string {
	if _, text, ok := r.identity(); ok {
		return string(text)
	}
	return "without an id"
}

// begin allows all events to be repeated, after a seek.
func (c *chain) begin(round uint16) {
	c.round, c.next = round, 0
	for i := range c.events {
		c.events[i].rest &^= replayAgain
	}
}

// find returns the index of an event, or -1. The log can hold an event twice, and then its position, a header, says
// which one a record is. Of those that are alike, it is the first that has not come in this round, or else the last.
func (c *chain) find(e *event) int {
	if c.next < len(c.events) && c.events[c.next].same(e) && e.differs(&c.events[c.next]) == "" {
		return c.next
	}
	if c.index == nil {
		c.index = map[id]int32{}
		for i := range slices.Backward(c.events) {
			x := c.events[i].id
			if at, known := c.index[x]; known && c.events[at].same(&c.events[i]) {
				c.twice = true
			}
			c.index[x] = int32(i)
		}
	}
	first, known := c.index[e.id]
	if !known {
		return -1
	}
	end, best, rank := len(c.events), -1, -1
	if !c.twice {
		end = min(end, int(first)+2) // the value, and its tombstone
	}
	for i := int(first); i < end; i++ {
		x, r := &c.events[i], 0
		if !x.same(e) {
			continue
		}
		if e.differs(x) == "" {
			r += 2
		}
		if x.rest&replayAgain == 0 {
			r++
		}
		if r > rank || r == rank && r&1 == 0 {
			best, rank = i, r
		}
	}
	return best
}

// newest returns the last of the required events that a seek has brought again, or -1.
func (c *chain) newest() int {
	for i, e := range slices.Backward(c.events) {
		if e.rest&(replayRequired|replayOnce) == replayRequired {
			return i
		}
	}
	return -1
}

// missing returns the indexes of the events with a flag, required, doubtful or skipped, that did not come.
func (c *chain) missing(latest bool, flag uint64) (all []int) {
	if latest && c.row {
		return nil // compaction keeps the row, and may remove all events before it
	}
	for i := len(c.events) - 1; i >= 0; i-- {
		e := &c.events[i]
		switch {
		case latest && e.rest&replaySeen != 0:
			return all // what is before it may be gone
		case e.rest&(replayRequired|replayDoubtful|replaySkipped) == 0, e.rest&replaySeen != 0:
			continue
		case latest && e.rest&replayTombstone != 0:
			return all // it may be gone, too, and all before it
		}
		if e.rest&flag != 0 {
			all = append(all, i)
		}
		if latest && e.rest&(replayRequired|flag) != 0 { // else it may never have come, and the one before is required
			return all
		}
	}
	return all
}

// Differences says how a record differs from the expected one of its event: in members of the value, such as
// after.etag, in headers, and in the timestamp. It names a few of them.
func (v *Replay) Differences(got, want *Record) (parts []string) {
	x, y := content(got), content(want)
	if v.EncodingTime {
		for _, name := range [...]string{"ts_ms", "ts_ns"} {
			delete(x, name)
			delete(y, name)
		}
	}
	if framed(got.Value) && got.Avro != nil && got.Avro.JSON(got.Value) == nil {
		parts = append(parts, "the value cannot be decoded")
	} else {
		parts = differences(nil, "", x, y)
	}
	if len(parts) == 0 && !bytes.Equal(got.Value, want.Value) && !v.EncodingTime {
		parts = append(parts, "the bytes of the value")
	}
	headers := func(r *Record) map[string]any {
		all := map[string]any{}
		for _, h := range r.Headers {
			if !v.Repeats || h.Key != "epoch" {
				all[h.Key] = string(h.Value)
			}
		}
		return all
	}
	parts = differences(parts, "header ", headers(got), headers(want))
	if got.Millis != want.Millis && got.Millis != 0 && want.Millis != 0 {
		parts = append(parts, fmt.Sprintf("timestamp is %d, expected %d", got.Millis, want.Millis))
	}
	if more := len(parts) - examples; more > 0 {
		parts = append(parts[:examples], fmt.Sprintf("and %d more", more))
	}
	return parts
}

// content returns the members of a value, or the value itself as one member.
func content(r *Record) (members map[string]any) {
	text, _ := r.Avro.read(r.Value)
	if text == nil {
		text = r.Value
	}
	if json.Unmarshal(text, &members) != nil {
		return map[string]any{"value": string(text)}
	}
	return members
}

// differences appends the members in which two objects differ, in their order. A null is like no member.
func differences(parts []string, path string, x, y map[string]any) []string {
	names := maps.Clone(x)
	maps.Copy(names, y)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := x[name], y[name]
		inner, isObject := a.(map[string]any)
		other, both := b.(map[string]any)
		if isObject && both {
			parts = differences(parts, path+name+".", inner, other)
			continue
		}
		was, is := quoted(b), quoted(a)
		if was != is {
			parts = append(parts, fmt.Sprintf("%s%s is %s, expected %s", path, name, clip(is), clip(was)))
		}
	}
	return parts
}

// clip shortens a value, and shows that it did.
func clip(text string) string {
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return text
}

func quoted(v any) string {
	text, _ := json.Marshal(v) // it was JSON, or is a string
	return string(text)
}

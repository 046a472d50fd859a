package verify

import (
	"hash/maphash"
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
	failures
	mode     ReplayMode
	rounds   rounds
	moves    bool
	keys     byKey[chain]
	made     bool // values have the time at which they were made
	required int64
}

// Moves allows keys to move between partitions, as in Order. The order of records on two partitions is unknown, so the
// order is not checked.
func (v *Replay) Moves() *Replay {
	v.moves = true
	return v
}

// Made declares values of the enriched envelope: their ts_ms and ts_ns at the top may differ.
func (v *Replay) Made() *Replay {
	v.made = true
	return v
}

// NewReplay returns a Replay that expects nothing yet.
func NewReplay(mode ReplayMode) *Replay { return &Replay{mode: mode} }

// Expect adds an event. If it is not required, it may be missing, because the topic does not have it yet or no longer.
func (v *Replay) Expect(r Record, required bool) {
	if r.Key == nil {
		return
	}
	e := v.eventOf(&r)
	if required {
		e.rest |= replayRequired
		v.required++
	}
	c, _ := v.keys.at(r.Key)
	if len(c.events) == cap(c.events) { // append would double
		c.events = slices.Grow(c.events, 1+len(c.events)/4)
	}
	c.events = append(c.events, e)
}

// Required returns how many of the expected events are required. If it is 0, no loss can be found.
func (v *Replay) Required() int64 { return v.required }

func (v *Replay) eventOf(r *Record) event {
	value := r.Value
	if v.made {
		value = r.withoutMade()
	}
	e := event{value: maphash.Bytes(seed, value)}
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range r.Headers {
		if v.mode == ReplayRepeats && r.Headers[i].Key == "epoch" {
			continue // of the state that it was written under
		}
		name, text := r.Headers[i].Key, r.Headers[i].Value
		maphash.WriteComparable(&h, [2]int{len(name), len(text)}) // where each ends
		_, _ = h.WriteString(name)                                // a Hash never fails
		_, _ = h.Write(text)
	}
	e.rest = h.Sum64() & headerBits
	var known bool
	var text []byte
	if e.id, text, known = r.identity(); !known {
		e.id = idOf(value)
	} else if _, ok := parseUUID(text); ok {
		e.rest |= replayNamed
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
	case again && v.mode != ReplayRepeats:
		v.add(&r, "event %s is repeated", e.name(&r))
	case !again && i < c.next && !v.moves:
		v.add(&r, "event %s comes after a later one of its key", e.name(&r))
	}
	if what := e.differs(want); what != "" {
		at := failureAt(&r)
		at.Expected = i + 1
		v.put(at, "event %s has another %s than expected", e.name(&r), what)
	}
	want.rest |= replaySeen | replayAgain
	c.next = max(c.next, i+1)
	c.last = i
}

// Failures implements Validator. It includes the missing events.
func (v *Replay) Failures() []Failure {
	var missing int64
	lacking := []string{} // keys
	for key, c := range v.keys {
		if n := c.missing(v.mode, nil); n > 0 {
			missing += n
			lacking = append(lacking, key)
		}
	}
	f := &failures{}
	if v.mode == ReplayRepeats && !v.moves {
		v.stale(f)
	}
	if missing == 0 && len(f.first) == 0 {
		return v.failures.Failures()
	}
	// In front, as in Complete.
	slices.Sort(lacking)
	if missing > 0 {
		f.end("lacks %d of %d required events", missing, v.required)
	}
	full := len(f.first) + examples
	for _, key := range lacking[:min(examples, len(lacking))] {
		v.keys[key].missing(v.mode, func(e *event, i int) {
			name := "an event"
			if e.rest&replayNamed != 0 {
				name = "event " + e.id.uuid()
			}
			if len(f.first) < full {
				f.put(Failure{Key: key, Expected: i + 1}, "%s is missing, number %d of the key's %d", name, i+1,
					len(v.keys[key].events))
			}
		})
	}
	f.first = append(f.first, v.first...)
	f.more = v.more
	return f.Failures()
}

// stale adds keys that end on an older event than required. Repeated events come in order, so no older event comes
// after the newest required one.
func (v *Replay) stale(f *failures) {
	var keys []string
	for key, c := range v.keys {
		if at := c.newest(); at >= 0 && c.events[at].rest&replaySeen != 0 && c.last < at {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if len(keys) > 0 {
		f.end("the newest event is not the last one of %d of %d keys", len(keys), len(v.keys))
	}
	for _, key := range keys[:min(examples, len(keys))] {
		c := v.keys[key]
		f.put(Failure{Key: key}, "the last event is number %d of the key's %d, and number %d came before",
			c.last+1, len(c.events), c.newest()+1)
	}
}

// Bad returns the number of failures so far.
func (v *Replay) Bad() int64 { return int64(len(v.first)) + v.more }

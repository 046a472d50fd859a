package verify

import "slices"

// chain is the events of a key.
type chain struct {
	events []event
	next   int // the first that did not come in this round, but for those that others overtook
	last   int // the one that came last
	round  uint16
	row    bool         // a row of a scan came last
	index  map[id]int32 // of events, once one came that is not the next
	twice  bool         // an event is expected more than once; known with index
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
	replayTombstone
	replayTimed
	replayNamed // the id is a UUID, so that a failure can name it

	timeBits   = 0xffffff << 8
	headerBits = 0xffffffff << 32
)

// same reports whether two are the same event in the same form.
func (e *event) same(o *event) bool { return e.id == o.id && (e.rest^o.rest)&replayTombstone == 0 }

// differs names the difference between two records of an event, or returns "".
func (e *event) differs(o *event) string {
	switch {
	case e.value != o.value:
		return "value"
	case (e.rest^o.rest)&headerBits != 0:
		return "headers"
	case e.rest&o.rest&replayTimed != 0 && (e.rest^o.rest)&timeBits != 0:
		return "timestamp"
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

// find returns the index of an event: the first that has not come in this round, or else one that has, or -1.
func (c *chain) find(e *event) int {
	if c.next < len(c.events) && c.events[c.next].same(e) {
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
	end, last := len(c.events), -1
	if !c.twice {
		end = min(end, int(first)+2) // the value, and its tombstone
	}
	for i := int(first); i < end; i++ {
		if c.events[i].same(e) {
			if last = i; c.events[i].rest&replayAgain == 0 {
				break
			}
		}
	}
	return last
}

// newest returns the last of the required events, or -1.
func (c *chain) newest() int {
	for i, e := range slices.Backward(c.events) {
		if e.rest&replayRequired != 0 {
			return i
		}
	}
	return -1
}

// missing counts and names the required events that did not come.
func (c *chain) missing(mode ReplayMode, show func(e *event, i int)) (n int64) {
	if show == nil {
		show = func(*event, int) {}
	}
	if mode == ReplayLatest && c.row {
		return 0 // compaction keeps the row, and may remove all events before it
	}
	for i := len(c.events) - 1; i >= 0; i-- {
		e := &c.events[i]
		switch {
		case mode == ReplayLatest && e.rest&replaySeen != 0:
			return n // what is before it may be gone
		case e.rest&(replaySeen|replayRequired) != replayRequired:
			continue
		case mode == ReplayLatest && e.rest&replayTombstone != 0:
			return n // it may be gone, too, and all before it
		}
		n++
		show(e, i)
		if mode == ReplayLatest {
			return n
		}
	}
	return n
}

// ReplayMode is what a topic may hold instead of each event once.
type ReplayMode uint8

// The modes.
const (
	ReplayExact   ReplayMode = iota // each event once
	ReplayRepeats                   // events may be repeated, but each key ends on its newest (DELIVERY=at_least_once)
	ReplayLatest                    // only the latest event of a key is required (a compacted topic)
)

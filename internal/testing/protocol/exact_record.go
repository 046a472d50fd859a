package protocol

// record is a record of the state topic, packed, so that states are small and can be compared.
type record uint16

// frontier is the document of that name: what all instances agree on.
type frontier struct {
	epoch     uint8
	completed uint8 // segment; 0 is none
	current   uint8
	gaps      uint8 // bit n-1: history of segment n is recorded as lost
	moving    bool  // the first phase of a seek or reset
	sought    bool  // moved by an operator, and no segment is complete since
	told      bool  // the marker of that seek is written
	reset     bool  // there is an epoch, and no progress
	grown     bool  // two leases instead of one: see situation.grow
}

// cursor is how far a lease has read: by shard, since a lease may have both.
type cursor struct {
	epoch   uint8
	segment uint8
	pos     [2]uint8
	done    bool
	gap     bool // history of this segment is lost
}

const isCursor = 1 << 15

func bit(b bool, n uint) record {
	if b {
		return 1 << n
	}
	return 0
}

func (f frontier) pack() record {
	return 1 | record(f.epoch)<<1 | record(f.completed)<<3 | record(f.current)<<5 | record(f.gaps)<<7 |
		bit(f.moving, 10) | bit(f.sought, 11) | bit(f.told, 12) | bit(f.reset, 13) | bit(f.grown, 14)
}

func (c cursor) pack() record {
	return isCursor | record(c.epoch)<<1 | record(c.segment)<<3 | record(c.pos[0])<<5 | record(c.pos[1])<<7 |
		bit(c.done, 9) | bit(c.gap, 10)
}

func (r record) isFrontier() bool { return r&isCursor == 0 }
func (r record) has(n uint) bool  { return r>>n&1 != 0 }

func (r record) frontier() frontier {
	return frontier{
		epoch: uint8(r >> 1 & 3), completed: uint8(r >> 3 & 3), current: uint8(r >> 5 & 3), gaps: uint8(r >> 7 & 7),
		moving: r.has(10), sought: r.has(11), told: r.has(12), reset: r.has(13), grown: r.has(14),
	}
}

func (r record) cursor() cursor {
	return cursor{
		epoch: uint8(r >> 1 & 3), segment: uint8(r >> 3 & 3), pos: [2]uint8{uint8(r >> 5 & 3), uint8(r >> 7 & 3)},
		done: r.has(9), gap: r.has(10),
	}
}

// at returns the position in a shard of segment n.
func (c cursor) at(n, shard uint8) uint8 {
	if c.segment != n {
		return 0
	}
	return c.pos[shard]
}

// in returns the cursor as a cursor in segment n.
func (c cursor) in(n uint8) cursor {
	if c.segment != n {
		return cursor{epoch: c.epoch, segment: n}
	}
	return c
}

func (c cursor) finished(n uint8) bool { return c.segment == n && c.done }

// ahead reports whether c was written under a later frontier than f: the view has yet to read that one.
func (c cursor) ahead(f frontier) bool {
	return c.epoch > f.epoch || c.epoch == f.epoch && c.segment > f.current
}

// what describes a record in a trace.
func (r record) what() label {
	if r == 0 {
		return say("only events")
	}
	if r.isFrontier() {
		f := r.frontier()
		switch {
		case f.reset:
			return say("frontier{epoch %d, reset}", f.epoch)
		case f.moving:
			return say("frontier{epoch %d, completed %d, no current, moving}", f.epoch, f.completed)
		}
		return say("frontier{epoch %d, completed %d, current %d, gaps %03b}", f.epoch, f.completed, f.current, f.gaps)
	}
	c := r.cursor()
	switch {
	case c.gap:
		return say("cursor{epoch %d, segment %d, done, gap}", c.epoch, c.segment)
	case c.done:
		return say("cursor{epoch %d, segment %d, done}", c.epoch, c.segment)
	}
	return say("cursor{epoch %d, segment %d, at %d,%d}", c.epoch, c.segment, c.pos[0], c.pos[1])
}

// with puts more words before a label.
func (l label) with(format string, n ...uint8) label {
	m := say(format+l.format, n...)
	copy(m.n[len(n):], l.n[:])
	return m
}

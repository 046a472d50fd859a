package protocol

// Kinds of documents. An owner record begins an acquisition; zero is what compaction left of a record.
const (
	ownerRecord = 1 + iota
	cursorRecord
	frontierRecord
)

// doc is a record of the state topic.
type doc struct {
	kind  uint8
	acq   uint8 // the acquisition that it was written under: in the bridge, the offset of that owner record
	epoch uint8
	// of a cursor
	segment, pos uint8
	done         bool
	// of a frontier
	completed, current uint8
	moving             bool  // all leases have to enter the epoch before a segment is named
	owed               bool  // the marker of resolved may not be written yet
	sought             bool  // as the program: moved by an operator, and the marker that says so may not be written yet
	base               uint8 // as the program: completed before it was written
	repaired           [2]uint8
	// of both: the highest marker that was promised
	resolved uint8
}

// entry is a doc, packed.
type entry uint32

func (d doc) pack() entry {
	flag := func(b bool, n uint) entry { return entry(bit(b, 0)) << n }
	e := entry(d.kind) | entry(d.acq)<<2 | entry(d.epoch)<<6 | entry(d.resolved)<<9
	switch d.kind {
	case cursorRecord:
		e |= entry(d.segment)<<11 | entry(d.pos)<<13 | flag(d.done, 15)
	case frontierRecord:
		e |= entry(d.completed)<<11 | entry(d.current)<<13 | flag(d.moving, 15) | flag(d.owed, 16) |
			entry(d.repaired[0])<<17 | entry(d.repaired[1])<<20 | flag(d.sought, 23) | entry(d.base)<<24
	}
	return e
}

func (e entry) doc() doc {
	at := func(n, bits uint) uint8 { return uint8(e >> n & (1<<bits - 1)) }
	d := doc{kind: at(0, 2), acq: at(2, 4), epoch: at(6, 3), resolved: at(9, 2)}
	switch d.kind {
	case cursorRecord:
		d.segment, d.pos, d.done = at(11, 2), at(13, 2), at(15, 1) == 1
	case frontierRecord:
		d.completed, d.current, d.moving, d.owed = at(11, 2), at(13, 2), at(15, 1) == 1, at(16, 1) == 1
		d.repaired = [2]uint8{at(17, 3), at(20, 3)}
		d.sought, d.base = at(23, 1) == 1, at(24, 2)
	}
	return d
}

// key is what compaction keeps the last of.
func (e entry) key() uint8 { return uint8(e & 3) }

func (d doc) what() label {
	switch d.kind {
	case ownerRecord:
		return say("owner{acquisition %d}", d.acq)
	case cursorRecord:
		l := "cursor{acquisition %d, epoch %d, segment %d, at %d}"
		if d.done {
			l = "cursor{acquisition %d, epoch %d, segment %d, at %d, done}"
		}
		return say(l, d.acq, d.epoch, d.segment, d.pos)
	case frontierRecord:
		l := "frontier{acquisition %d, epoch %d, completed %d, current %d, resolved %d}"
		switch {
		case d.moving:
			l = "frontier{acquisition %d, epoch %d, completed %d, current %d, resolved %d, moving}"
		case d.owed:
			l = "frontier{acquisition %d, epoch %d, completed %d, current %d, resolved %d, owed}"
		}
		return say(l, d.acq, d.epoch, d.completed, d.current, d.resolved)
	}
	return say("what compaction has removed")
}

// known is what a view makes of the records that it has read.
type known struct {
	acq     [2]uint8 // by lease: the last acquisition
	cursor  [2]doc
	f       doc
	foreign [2]uint8 // by lease: how many documents were written by a former owner after that
	back    uint8    // the oldest segment that such a document leaves in doubt and that is not repaired; 0 is none
}

// fold reads the first records of each partition.
func (x *least) fold(s *leastState, read [2]uint8) (k known) {
	resolved := uint8(0)
	for p := range 2 {
		for _, e := range s.log[p][:read[p]] {
			d := e.doc()
			switch {
			case d.kind == ownerRecord:
				k.acq[p] = d.acq
			case x.byOwner && d.kind != 0 && d.acq != k.acq[p]:
				if k.foreign[p]++; d.kind == frontierRecord && k.f.kind == 0 {
					k.f = d // its owner's own is compacted away
					k.f.owed = true
				}
				continue
			case d.kind == cursorRecord:
				k.cursor[p] = d
			case !x.byOwner && k.f.kind != 0 && d.epoch == k.f.epoch && d.completed < k.f.completed: // today's rule
			case d.kind == frontierRecord:
				k.f = d
			}
			resolved = max(resolved, d.resolved)
		}
	}
	k.f.resolved = max(k.f.resolved, resolved)
	if !x.repair {
		return k
	}
	for p := range 2 {
		n := k.f.repaired[p]
		acq := uint8(0)
		for _, e := range s.log[p][:read[p]] {
			d := e.doc()
			if d.kind == ownerRecord {
				acq = d.acq
			} else if d.kind != 0 && d.acq != acq {
				if n > 0 {
					n--
					continue
				}
				to := k.f.completed + 1
				switch {
				case d.kind == cursorRecord && d.segment == 0 && x.asProgram:
					continue // it has entered an epoch, and written no events
				case d.kind == cursorRecord:
					to = min(to, max(d.segment, 1))
				case x.asProgram:
					to = min(to, d.base+1)
				default:
					to = min(to, d.completed+1)
				}
				if k.back == 0 || to < k.back {
					k.back = to
				}
			}
		}
	}
	return k
}

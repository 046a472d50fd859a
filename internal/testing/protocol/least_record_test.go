//go:build !race

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
	moving             bool // all leases have to enter the epoch before a segment is named
	owed               bool // the marker of resolved may not be written yet
	repaired           [2]uint8
	// of both: the highest marker that was promised
	resolved uint8
}

// entry is a doc, packed.
type entry uint32

func (d doc) pack() entry {
	flag := func(b bool, n uint) entry { return entry(bit(b, 0)) << n }
	e := entry(d.kind) | entry(d.acq)<<2 | entry(d.epoch)<<5 | entry(d.resolved)<<8
	switch d.kind {
	case cursorRecord:
		e |= entry(d.segment)<<10 | entry(d.pos)<<12 | flag(d.done, 14)
	case frontierRecord:
		e |= entry(d.completed)<<10 | entry(d.current)<<12 | flag(d.moving, 14) | flag(d.owed, 15) |
			entry(d.repaired[0])<<16 | entry(d.repaired[1])<<19
	}
	return e
}

func (e entry) doc() doc {
	at := func(n, bits uint) uint8 { return uint8(e >> n & (1<<bits - 1)) }
	d := doc{kind: at(0, 2), acq: at(2, 3), epoch: at(5, 3), resolved: at(8, 2)}
	switch d.kind {
	case cursorRecord:
		d.segment, d.pos, d.done = at(10, 2), at(12, 2), at(14, 1) == 1
	case frontierRecord:
		d.completed, d.current, d.moving, d.owed = at(10, 2), at(12, 2), at(14, 1) == 1, at(15, 1) == 1
		d.repaired = [2]uint8{at(16, 3), at(19, 3)}
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
				if d.kind == cursorRecord {
					to = min(to, max(d.segment, 1))
				} else {
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

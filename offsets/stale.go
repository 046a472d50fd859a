package offsets

import (
	"slices"
	"time"

	"blobfeed/source"
)

// Without transactions nothing fences a former owner: one that was paused may write, behind the records of its
// successor, what it had in memory, and then its document. That document is stale: an owner record with a
// higher offset stands before it. It never counts, but it says that old records stand behind newer ones in the
// topics of records, so the keys of these must be delivered once more. The mark it leaves is the same for every
// reader of the topic, and stays until a move of the frontier has settled it.
type mark struct {
	lease  int32
	offset int64
	after  source.Segment // delivery has to be repeated from the segment after this one
}

// staleCursor reports whether c was written by an owner that another one had followed, and marks it.
func (s *State) staleCursor(c *Cursor, lease int32, offset int64) bool {
	if c.Term == 0 || c.Term >= s.terms[lease] {
		return false
	}
	s.stale[lease] = offset + 1
	if c.Segment != (source.Segment{}) { // else it has entered an epoch, or met an error, and written no events
		s.mark(lease, offset, source.Before(c.Segment))
	}
	// A row that was listed before its blob changed: the event of the change is behind From.
	if c.Scan != nil && c.Scan.Rows+c.Scan.Swept > 0 {
		s.mark(lease, offset, c.Scan.From)
	}
	return true
}

// staleFrontier is the same for a frontier.
func (s *State) staleFrontier(f *Frontier, offset int64) bool {
	if f.Term == 0 || f.Term >= s.terms[0] {
		return false
	}
	s.stale[0] = offset + 1
	s.mark(0, offset, f.Base)
	return true
}

func (s *State) mark(lease int32, offset int64, after source.Segment) {
	if m := (mark{lease, offset, after}); !s.settled(m) { // partitions are read in any order
		s.marks = append(slices.Clone(s.marks), m)
	}
}

// forget drops the marks that a move has settled.
func (s *State) forget(seen []int64) {
	s.seen = seen
	s.marks = slices.DeleteFunc(slices.Clone(s.marks), s.settled)
}

func (s *State) settled(m mark) bool { return int(m.lease) < len(s.seen) && m.offset < s.seen[m.lease] }

// Regressed reports whether a former owner has written late, and the segment after which everything has to be
// delivered once more, so that every key ends on its newest record.
func (s *State) Regressed() (after source.Segment, ok bool) {
	for _, m := range s.marks {
		if !ok || m.after.Compare(after) < 0 {
			after, ok = m.after, true
		}
	}
	f := s.Frontier
	if f != nil && f.Term != 0 && f.Behind(s.Cursors) { // a stale one is all that compaction has left
		if !ok || f.Completed.Compare(after) < 0 {
			after, ok = f.Completed, true
		}
	}
	return after, ok
}

// Repair returns the frontier of a move that delivers everything after a segment once more. What was promised stays
// promised.
func (s *State) Repair(after source.Segment) *Frontier {
	f := *s.Frontier
	f.Epoch, f.Moving, f.Seen = s.Epoch, true, slices.Clone(s.next)
	for p, c := range s.Cursors {
		if c != nil {
			f.Epoch = max(f.Epoch, s.written[p].Epoch)
			if before(f.Resolved, c.Resolved) { // the markers of a frontier that compaction removed may not be written
				f.Resolved, f.Owed = c.Resolved, true
			}
		}
	}
	f.Epoch++
	if after.Compare(f.Completed) < 0 {
		f.Completed = after
	}
	f.Current, f.Shards, f.Ends, f.Ended = source.Segment{}, nil, time.Time{}, false
	f.OpenSince = time.Time{}
	return &f
}

// Entered reports whether the owners of all leases that were ever acquired have written a cursor in the epoch
// of the frontier. Without transactions that takes the place of a fence: what an owner writes after it is of
// the new epoch.
func (s *State) Entered() bool {
	for p := range s.Owners {
		if p != 0 && !s.EnteredBy(int32(p)) {
			return false
		}
	}
	return true
}

// EnteredBy is Entered of one lease.
func (s *State) EnteredBy(lease int32) bool {
	c := s.written[lease]
	return s.Owners[lease] == "" || c != nil && c.Epoch >= s.Epoch
}

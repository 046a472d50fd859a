package offsets

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// State is what the topic says, at some moment. It is never changed once handed out.
type State struct {
	Frontier *Frontier // nil before the first start, and after a reset
	Epoch    int64     // the frontier's, also after a reset
	Place    string    // without a frontier: where a seek wants the first one, "" if there was none
	Moving   bool      // the frontier's, also after a reset
	mover    int64     // the term in which the last move began
	Cursors  []*Cursor // by lease; nil where nothing was committed yet, or since a reset
	Owners   []string  // by lease; "" where nobody ever acquired it
	born     int64     // cursors of an earlier epoch do not count
	written  []*Cursor // by lease: the last that is not stale, also of an earlier epoch, where it has no position
	terms    []int64   // by lease: of the last owner record
	stale    []int64   // by lease: the offset behind the last stale document
	marks    []mark    // of stale documents
	seen     []int64   // the frontier's
	request  *Request  // the last one
	torn     []*torn   // by lease: the last transaction, if the brokers left it without an end
	next     []int64   // by lease: every record below this offset is in the state

	topics map[string]int32 // of the last frontier, also after a reset

	Delivered *Delivered // nil if an instance, or a request, came after it
}

// Term names the last acquisition of a lease: it rises with each.
func (s *State) Term(lease int32) int64 { return s.terms[lease] }

// Passed reports whether the state holds every committed record of partition p below offset.
func (s *State) Passed(p int32, offset int64) bool { return s.next[p] >= offset }

func (s *State) apply(r *kgo.Record) error {
	if r.Attrs.IsControl() {
		return nil
	}
	switch string(r.Key) {
	case keyCursor:
		s.torn[r.Partition] = nil
		if r.Value == nil {
			s.written[r.Partition] = nil
			return nil
		}
		c := new(Cursor)
		if err := documents.decode(keyCursor, r.Value, c); err != nil {
			return err
		}
		if s.staleCursor(c, r.Partition, r.Offset) {
			return nil
		}
		s.written[r.Partition] = c
	case keyFrontier:
		if r.Value == nil {
			s.Frontier, s.Epoch, s.Moving, s.born, s.Place = nil, 0, false, 0, ""
			return nil
		}
		f := new(Frontier)
		if err := documents.decode(keyFrontier, r.Value, f); err != nil {
			return err
		}
		if s.staleFrontier(f, r.Offset) {
			return nil
		}
		if f.Moving { // the intent of a verb, which has discarded nothing
			s.mover = s.terms[0]
		} else {
			s.torn[r.Partition] = nil
		}
		s.forget(f.Seen)
		s.Frontier, s.Epoch, s.Moving, s.born, s.topics = f, f.Epoch, f.Moving, f.Born, f.Topics
		s.Place = ""
		if f.Reset {
			s.Frontier, s.born = nil, f.Epoch
			if f.Seek != nil {
				s.Place = f.Seek.To
			}
		}
	case keyOwner:
		var o owner
		if r.Value == nil {
			s.Owners[r.Partition] = ""
			return nil
		}
		if err := documents.decode(keyOwner, r.Value, &o); err != nil {
			return err
		}
		s.Owners[r.Partition], s.terms[r.Partition] = o.Owner, r.Offset+1
		if r.Partition == 0 {
			s.Delivered = nil
		}
	case keyDelivered:
		s.Delivered = new(Delivered)
		return documents.decode(keyDelivered, r.Value, s.Delivered)
	case keyRequest:
		s.request, s.Delivered = nil, nil
		if r.Value == nil {
			return nil
		}
		s.request = new(Request)
		return documents.decode(keyRequest, r.Value, s.request)
	}
	return nil
}

// Reached reports whether the state has every record below these offsets, by lease.
func (s *State) Reached(ends []int64) bool {
	for lease, end := range ends {
		if s.next[lease] < end {
			return false
		}
	}
	return true
}

// Written reports whether a lease has written a record.
func (s *State) Written() bool {
	return slices.ContainsFunc(s.Cursors, func(c *Cursor) bool {
		return c != nil && c.Counts.Emitted+c.Counts.DeadLettered+c.Counts.Scanned > 0
	})
}

// Cursor returns a copy of the cursor of a lease that its holder may change.
func (s *State) Cursor(lease int32) *Cursor {
	c := s.Cursors[lease]
	if c == nil {
		return &Cursor{Epoch: s.Epoch}
	}
	own := *c
	own.Shards, own.Pins, own.Scan = maps.Clone(c.Shards), maps.Clone(c.Pins), c.Scan.owned()
	return &own
}

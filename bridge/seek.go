package bridge

import (
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/envelope"
	"blobfeed/internal/mutation"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Target is where a seek goes to.
type Target struct {
	text    string // as in the frontier and in the header of the marker
	segment source.Segment
	at      envelope.Timestamp // zero: a segment from its first event on, or the earliest there is
}

// ParseTarget parses a segment (2026/01/31/1200), a time, the text of an "updated", or earliest.
func ParseTarget(s string) (Target, error) {
	if s == "earliest" {
		return Target{text: s}, nil
	}
	if seg, err := source.ParseSegment(s); err == nil && s != "" {
		return Target{text: s, segment: seg}, nil
	}
	at, err := ParseTime(s)
	if err != nil {
		return Target{}, fmt.Errorf("%q is neither a segment such as 2026/01/31/1200, nor a time such as 2026-01-31T12:00:00Z, "+
			"nor the text of an \"updated\", nor earliest", s)
	}
	return Target{text: at.String(), at: at}, nil
}

func (t Target) String() string { return t.text }

// Time returns where the target begins; the zero time for the earliest.
func (t Target) Time() time.Time {
	switch {
	case t.at != (envelope.Timestamp{}):
		return time.Unix(0, t.at.Wall).UTC()
	case t.segment != (source.Segment{}):
		return t.segment.Time()
	}
	return time.Time{}
}

// After reports whether an event of a segment is before the target.
func (t Target) After(seg source.Segment, at envelope.Timestamp) bool {
	if t.at != (envelope.Timestamp{}) {
		return at.Compare(t.at) < 0
	}
	return seg.Compare(t.segment) < 0
}

// Move changes f so that delivery goes on at the target. Resolved stays: a marker that was written is not taken back (I6).
func (t Target) Move(f *offsets.Frontier) {
	from := f.At()
	if f.Seek != nil && !f.Seek.Told {
		from = f.Seek.From // nothing has moved since
	}
	f.Seek = &offsets.Seek{From: from, To: t.text}
	f.Current, f.Ended, f.Start = source.Segment{}, false, ""
	switch {
	case t.at != (envelope.Timestamp{}):
		f.Start, f.Completed = t.at.String(), before(t.at)
	case t.segment != (source.Segment{}):
		f.Completed = source.SegmentAt(t.segment.Time().Add(-time.Minute))
	default:
		f.Completed = source.Segment{}
	}
}

// endMove is the second phase of a move (R2f): the fences of all other leases, and then, in one transaction, the
// frontier that
// names segments again, and the last marker once more, with a header that says where delivery continues. Records at
// or below that
// marker may follow it, and keys may move to new partitions (I5). Where there was no marker yet, nothing was promised.
//
// After the intent, which this worker has read, every acquisition sees it (I10). Before it, an owner may have read
// the old place:
//
//	owner of lease 1                        seek, and the owner of lease 0
//	reads an event of the old place
//	                                        intent: epoch+1
//	                                        fence of lease 1
//	its commit is refused                   the first segment of the new place is named
//
// Without the fence, its commit could come behind the first record of the new place.
func (w *worker) endMove(f offsets.Frontier) (moved bool, err error) {
	if fenced, err := w.fenceOthers(); !fenced { // I11: between the intent, which is committed, and the next segment
		return false, err
	}
	s, _, err := w.view.Get() // with the pins that were committed before the fences
	if err != nil {
		return false, err
	}
	if err := w.recount(&f, s); err != nil {
		return false, err
	}
	if f.Seek != nil && !f.Seek.Told {
		if w.Markers != envelope.MarkersOff && w.promised != (envelope.Timestamp{}) {
			if _, err := w.mark(&f, w.promised); err != nil {
				return false, err
			}
		}
		told := *f.Seek
		told.Told = true
		f.Seek = &told
	}
	f.Moving = false
	return true, w.lease.Commit(w.held, nil, &f)
}

// repair begins a move that delivers everything after a segment once more, since a former owner has written old
// records behind
// newer ones. It happens only without transactions.
func (w *worker) repair(s *offsets.State, after source.Segment) error {
	w.Log.Warn("a paused instance has written old records behind newer ones; delivering again from there",
		"after_segment", after, "at", s.Frontier.At())
	return w.lease.Commit(w.held, nil, s.Repair(after))
}

// fencers is how many leases are fenced at a time: each takes a producer.
const fencers = 4

// fenceOthers ends what the owners of all other leases have open. Without transactions they are asked: it reports
// whether each
// that acquired its lease before now, and so perhaps before it could know of the move, has written a cursor of the
// new epoch.
func (w *worker) fenceOthers() (fenced bool, _ error) {
	mutation.Crash("fences", "begun")
	fences, ctx := errgroup.WithContext(w.work)
	fences.SetLimit(fencers)
	for p := int32(1); p < int32(w.leases); p++ {
		fences.Go(func() error {
			if w.Transactional {
				err := offsets.Fence(ctx, w.cfg, w.view, p)
				mutation.Crash("fences", "one")
				return err
			}
			_, err := w.view.Known(ctx, w.cfg, w.client, p)
			return err
		})
	}
	if err := fences.Wait(); err != nil {
		return false, err
	}
	mutation.Crash("fences", "done")
	s, _, err := w.view.Get()
	return err == nil && (w.Transactional || s.Entered()), err
}

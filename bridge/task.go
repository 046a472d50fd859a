package bridge

import (
	"blobfeed/internal/testing/mutation"
	"blobfeed/offsets"
	"blobfeed/source"
)

// task is what a lease has to do in a state for the barrier, a scan or a move. The coordinator's work on the frontier
// comes before it. A task is comparable: a wait, a look and a pass end when the state gives another one. Besides, they
// end with the tenure (tenure.endedBy). There is no other list of the reasons in a state for which one of them ends.
type task struct {
	kind    kind
	segment source.Segment // to deliver
	scan    string         // of a round
	round   int
	stopped bool // the scan is cancelled
	urgent  bool // of lease 0: the coordinator has a repair or a request to carry out, which its own delivery holds up
}

// kind is the kind of a task.
type kind int

const (
	waits    kind = iota // for another state
	enters               // writes a cursor of the new epoch, in place of a fence: without transactions only
	holds                // stops delivering, for a scan
	lists                // writes rows, or deletions, in a round of a scan
	delivers             // its shards of the current segment
)

// taskOf returns the task of a lease in s. It depends on what is committed only.
func taskOf(s *offsets.State, lease int32, exact bool) (do task) {
	f, c := s.Frontier, s.Cursors[lease]
	if lease == 0 {
		_, regressed := s.Regressed()
		do.urgent = regressed || s.Requested() != nil
	}
	switch {
	case s.Moving && !exact && lease != 0 && !s.EnteredBy(lease):
		do.kind = enters
	case f == nil:
	case f.Scan.Holds() && (s.Owes(lease) || !mutation.NoHold):
		if !s.Owes(lease) {
			break
		}
		do.kind, do.scan, do.round, do.stopped = holds, f.Scan.ID, f.Scan.Round, f.Scan.Cancelled
		if f.Scan.Lists() {
			do.kind = lists
		}
	case f.Current == (source.Segment{}) || c != nil && (c.Finished(f.Current) || c.Beyond(f)):
	default:
		do.kind, do.segment = delivers, f.Current // I4: only the current segment
	}
	return do
}

//go:build !race

package protocol

// A model of scans while the partitions of the topic grow: an account with two blobs, its feed, a listing in rounds with
// a page for each blob, a sweep, seeks, cancels, and crashes between any two commits. A lane is a partition. Time is the
// number of changes so far. There is one writer: scan_*_test.go has several leases.

const (
	laneBlobs   = 2
	laneCount   = 3
	laneChanges = 3
	laneRecords = 10
	laneNever   = 0xff
	laneTick    = 4 // an event has the time 4 times its change, a page 2 later, and markers are of the time of an event
)

// laneOf is where a key goes, by the partition count. With one growth the first blob moves and the second stays; with
// two, the first one comes back.
var laneOf = [laneBlobs][laneCount + 1]uint8{{0, 0, 1, 0}, {0, 0, 0, 2}}

// laneRecord is a record of a blob. Content is the time of the last write; 0 is a deletion.
type laneRecord struct {
	span, lane, updated, content uint8 // span: the interval between two markers, numbered from 0
	fresh                        bool  // behind the first row of the present scan in its lane
}

// Phases of a scan.
const (
	laneIdle = iota
	laneDelivers
	laneLists
)

type laneState struct {
	// The account and its feed.
	clock   uint8
	changes [laneChanges + 1]uint8 // by change
	fed     [laneBlobs]uint8       // events of the blob that the feed has
	real    uint8                  // partitions of the topic
	losses  uint8                  // how many events retention may still delete
	seeks   uint8
	scans   uint8
	cancels uint8

	// The topic.
	records [laneBlobs][laneRecords]laneRecord
	length  [laneBlobs]uint8
	span    uint8

	// The frontier and the cursors.
	read     [laneBlobs]uint8 // events that are delivered
	count    uint8            // partitions in use
	promised uint8            // time of the last marker
	current  bool             // a segment is named
	moving   bool             // a seek is committed, and not ended
	phase    uint8
	initial  bool            // the scan is the first one
	bar      uint8           // no marker below it: the end of the initial scan; laneNever: it is not over
	listed   [laneBlobs]bool // pages that are committed
	row      [laneCount]bool // the lane has a row of the scan
	judged   uint8           // lanes that the sweep has dealt with
	sweeps   bool            // everything was listed when the round began
	ends     uint8           // the time of the scan's last answer

	// Memory of the writer, which a crash and a fence empty.
	page     [laneBlobs]found
	lanes    uint8 // that the sweep reads; 0: it has not begun
	suspects [laneBlobs]bool
	have     bool // suspects of lane judged
	head     [laneBlobs]found

	// What the checks need.
	missing [laneBlobs]bool  // an event is lost, and no scan has repaired that
	floor   uint8            // retention has deleted the events up to this time
	right   uint8            // markers are right again from this time on
	lies    bool             // a marker was wrong when it was written
	bound   [laneCount]uint8 // the last marker of each lane; 0: none
	told    [laneCount]bool  // a seek has told the lane that records at or below its marker follow
	late    bool             // such records came in a lane that was not told
}

// event returns the n-th change of a blob, from 0 on.
func (s *laneState) event(b, n uint8) (at, content uint8) {
	for at = 1; at <= s.clock; at++ {
		if c := s.changes[at] - 1; c/2 == b {
			if n == 0 {
				return at, at * (1 - c%2)
			}
			n--
		}
	}
	panic("no such event")
}

// events returns how many changes a blob had up to a time.
func (s *laneState) events(b, upTo uint8) (n uint8) {
	for at := uint8(1); at <= upTo; at++ {
		n += b2u((s.changes[at]-1)/2 == b)
	}
	return n
}

// truth returns the content of a blob at a time.
func (s *laneState) truth(b, at uint8) (content uint8) {
	if n := s.events(b, at); n > 0 {
		_, content = s.event(b, n-1)
	}
	return content
}

// complete returns the time up to which all events are delivered.
func (s *laneState) complete() uint8 {
	for at := uint8(1); at <= s.clock; at++ {
		if b := (s.changes[at] - 1) / 2; s.events(b, at) > s.read[b] {
			return at - 1
		}
	}
	return s.clock
}

func (s *laneState) write(b uint8, r laneRecord) {
	r.span, r.fresh = s.span, s.row[r.lane]
	s.late = s.late || !s.told[r.lane] && r.updated <= laneTick*s.bound[r.lane]
	s.records[b][s.length[b]] = r
	s.length[b]++
}

// mark writes a marker to every lane. It ends a span, if that has records. The counts may change with it. Tells says
// that it announces what a seek repeats. That holds for a lane until a higher marker.
func (s *laneState) mark(at, count uint8, tells bool) {
	s.lies = s.lies || s.lie(at)
	higher := s.promised == laneNever || at > s.promised
	s.promised, s.count = at, count
	for lane := range count {
		s.bound[lane], s.told[lane] = at, tells || s.told[lane] && !higher
	}
	for b := range laneBlobs {
		for _, r := range s.records[b][:s.length[b]] {
			if r.span == s.span {
				s.span++
				return
			}
		}
	}
}

// suspect reports whether a sweep finds a key of a lane: its last record there is no deletion, and is before all rows.
func (s *laneState) suspect(b, lane uint8) (live bool) {
	for _, r := range s.records[b][:s.length[b]] {
		if r.lane == lane {
			if r.fresh {
				return false
			}
			live = r.content != 0
		}
	}
	return live
}

// forget empties the memory of the writer.
func (s *laneState) forget() {
	s.page, s.head, s.suspects = [laneBlobs]found{}, [laneBlobs]found{}, [laneBlobs]bool{}
	s.lanes, s.have = 0, false
}

// endScan forgets what belongs to a scan.
func (s *laneState) endScan() {
	s.phase, s.initial, s.ends, s.sweeps = laneIdle, false, 0, false
	s.listed, s.row, s.judged = [laneBlobs]bool{}, [laneCount]bool{}, 0
	for b := range laneBlobs {
		for i := range s.records[b] {
			s.records[b][i].fresh = false
		}
	}
	s.forget()
}

// normal drops the records that no check and no step can depend on any more, and numbers the spans without gaps. One
// can go if a later one of its lane is at or below the last marker, too, and not older.
func (s *laneState) normal() {
	var used, number [256]uint8
	for b := range laneBlobs {
		all, n := s.records[b], s.length[b]
		s.records[b], s.length[b] = [laneRecords]laneRecord{}, 0
		for i, x := range all[:n] {
			gone := false
			for _, y := range all[i+1 : n] {
				settled := s.promised != laneNever && y.updated <= laneTick*s.promised
				gone = gone || y.lane == x.lane && y.fresh == x.fresh &&
					(y.updated == x.updated || y.updated > x.updated && settled)
			}
			if !gone {
				s.records[b][s.length[b]] = x
				s.length[b]++
				used[x.span] = 1
			}
		}
	}
	next := uint8(0)
	for i := range s.span {
		number[i] = next
		next += used[i]
	}
	number[s.span] = next
	for b := range laneBlobs {
		for i := range s.records[b][:s.length[b]] {
			s.records[b][i].span = number[s.records[b][i].span]
		}
	}
	s.span = next
}

// contents are those that a reader can end on.
type contents uint16

func (c contents) only(content uint8) bool { return c == 1<<content }

// lasts returns what the last record of each lane says, of those that are taken.
func (s *laneState) lasts(b uint8, take func(laneRecord) bool) (c contents) {
	var at [laneCount]int
	for i, r := range s.records[b][:s.length[b]] {
		if take(r) {
			at[r.lane] = i + 1
		}
	}
	for _, i := range at {
		if i > 0 {
			c |= 1 << s.records[b][i-1].content
		}
	}
	if c == 0 {
		return 1
	}
	return c
}

// aligned is for a reader that reads marker by marker, and between two markers the lanes in any order.
func (s *laneState) aligned(b, upTo uint8) contents {
	last := -1
	for _, r := range s.records[b][:s.length[b]] {
		if r.updated <= upTo {
			last = max(last, int(r.span))
		}
	}
	return s.lasts(b, func(r laneRecord) bool { return r.updated <= upTo && int(r.span) == last })
}

// highest is for a reader that takes the record with the highest updated, whatever the order of the lanes.
func (s *laneState) highest(b uint8) contents {
	most := uint8(0)
	for _, r := range s.records[b][:s.length[b]] {
		most = max(most, r.updated)
	}
	return s.lasts(b, func(r laneRecord) bool { return r.updated == most })
}

// split reports whether a blob has records in two lanes of the open span (I5).
func (s *laneState) split(b uint8) bool {
	in := uint8(laneNever)
	for _, r := range s.records[b][:s.length[b]] {
		if r.span != s.span {
			continue
		}
		if in != laneNever && in != r.lane {
			return true
		}
		in = r.lane
	}
	return false
}

// lie reports whether a marker that is written now is wrong. After a seek none is, until the old place is reached again.
func (s *laneState) lie(at uint8) bool {
	for b := range uint8(laneBlobs) {
		if s.complete() >= at && !s.missing[b] && at >= s.right && !s.aligned(b, laneTick*at).only(s.truth(b, at)) {
			return true
		}
	}
	return false
}

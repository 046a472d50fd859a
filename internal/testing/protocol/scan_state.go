package protocol

// A model of scans: an account whose blobs change, its feed, a listing that shows each blob at another moment, and what
// consumers make of the topic. Commits are one step here, and a fence refuses a former owner: the exact model shows why
// they may be. Time is the number of changes so far.

const (
	scanBlobs   = 2 // and leases
	scanChanges = 5 // at most
	scanRecords = scanChanges + 4
)

// Phases of the frontier.
const (
	scanBefore   = iota // there is no frontier
	scanListing         // rows are written
	scanFeeding         // events are delivered
	scanHolding         // a round of a re-scan begins: leases stop delivering
	scanRelist          // a re-scan lists, and sweeps when all is listed
	scanBetween         // events are delivered between two rounds of a re-scan
	scanRepaired        // events are delivered again
)

// found is what a listing, or a HEAD, shows of a blob.
type found struct {
	held    bool
	at      uint8 // when
	content uint8 // the time of the last write; 0: there is no blob
}

// scanRecord is a record of a blob. Content 0 is a deletion.
type scanRecord struct{ updated, content uint8 }

type scanState struct {
	blob    [scanBlobs]uint8 // content
	changed [scanChanges + 1]uint8
	clock   uint8
	fed     [scanBlobs]uint8 // events of the blob that the feed has
	from    [scanBlobs]uint8 // C0: events before it are not delivered
	read    [scanBlobs]uint8 // events that are delivered, lost, or before C0
	low     uint8            // what may be promised at C0
	begun   uint8            // T0
	listed  [scanBlobs]bool  // committed cursors
	served  [scanBlobs]uint8 // in the same cursors: the time of the last answer
	acked   [scanBlobs]bool  // leases that deliver nothing until the round is over
	over    [scanBlobs]bool  // leases whose work in the round is over
	judged  [scanBlobs]bool  // blobs that the sweep has dealt with, in committed cursors
	hasRead bool             // the owner of the sweeping lease has read which keys live
	known   [scanBlobs]bool  // of them, those that it has not dealt with
	keeps   bool             // the same of the owner before it, which may come back
	kept    [scanBlobs]bool
	swept   [scanBlobs]uint8 // records of the blob up to the last deletion of the sweep
	cancel  bool             // the re-scan is to end
	ends    uint8            // Tend
	right   uint8            // from when on markers are right again after a loss
	phase   uint8
	page    [scanBlobs]found // in the memory of an owner
	head    [scanBlobs]found // the same: the account's answer about a suspect
	paused  [scanBlobs]found // in the memory of a former owner
	records [scanBlobs][scanRecords]scanRecord
	length  [scanBlobs]uint8
	marker  uint8
	late    bool // a record at or below the marker was written
	wrong   bool // a marker was wrong when it was written
	twice   bool // the sweep has written a deletion behind its own
	crashes uint8
	gaps    uint8
	rounds  uint8           // that the re-scan may end before all is listed
	missing [scanBlobs]bool // an event of the blob is lost, and nothing has repaired it
}

type scanRules struct {
	startFirst bool // C0 is taken before the listing
	rowsFirst  bool // events follow all rows
	waitsTend  bool // no marker below Tend
	storesTend bool // the time of the answer is in the transaction of its rows
	fence      bool // the commit of a former owner is refused
	lowRows    bool // rows of a first scan have the time that may be promised at C0
	rises      bool // whether updated must rise

	// By blob: the leases that list it, deliver its events, and sweep its partition.
	lister, deliverer, sweeper [scanBlobs]uint8
	changes                    uint8 // in all

	lags bool // C0 is any place of the feed, and a marker may be of an earlier time: as the program does

	rescan     bool // a situation with a re-scan
	acks       bool // it lists when every lease has stopped delivering
	holds      bool // leases deliver nothing while it lists
	servedRows bool // its rows have the time of their page
	sweeps     bool // it deletes what the topic has, no page shows, and a HEAD does not find
	gaps       uint8
	crashes    uint8

	rounds    uint8 // of a re-scan, beside those that it needs
	sameRound bool  // a round is over when no lease has a page or an answer in memory
	positions bool  // a lease passes what it has listed, with or without a blob, in the commit of the page only

	reads   bool // a situation in which one lease sweeps, and knows from the topic which keys live
	rereads bool // an owner of it forgets with the lease what it has read

	cancels bool // a situation with a re-scan that is cancelled
	drops   bool // it is over when every lease has dropped its page
}

const (
	scanWrongMarker = "I6: what a marker promises is not what the account was"
	scanDiverged    = "everything is delivered, and the topic is not the account"
	scanFalls       = "updated falls within a key"
	scanLate        = "I6: a record at or below a marker"
	scanTwice       = "a sweep has deleted a key twice"
)

func (r scanRules) start() scanState {
	return scanState{crashes: r.crashes, gaps: r.gaps, rounds: r.rounds}
}

// change says what happened at a time: the blob, and whether it was deleted.
func change(b uint8, deleted bool) uint8 {
	if deleted {
		return 1 + b*2 + 1
	}
	return 1 + b*2
}

// event returns the n-th change of a blob, from 0 on.
func (s *scanState) event(b, n uint8) (at, content uint8) {
	for at = 1; at <= s.clock; at++ {
		c := s.changed[at] - 1
		if c/2 != b {
			continue
		}
		if n == 0 {
			if c%2 == 1 {
				return at, 0
			}
			return at, at
		}
		n--
	}
	return 0, 0
}

// events returns how many changes a blob had up to a time.
func (s *scanState) events(b, upTo uint8) (n uint8) {
	for at := uint8(1); at <= upTo; at++ {
		if (s.changed[at]-1)/2 == b {
			n++
		}
	}
	return n
}

func (s *scanState) contentAt(b, at uint8) uint8 {
	n := s.events(b, at)
	if n == 0 {
		return 0
	}
	_, content := s.event(b, n-1)
	return content
}

func (s *scanState) write(b, updated, content uint8, ofPage bool) {
	s.records[b][s.length[b]] = scanRecord{updated, content}
	s.length[b]++
	// A marker is far below the service's clock. Here a page can be of its very moment.
	if s.marker > 0 && (updated < s.marker || updated == s.marker && !ofPage) {
		s.late = true
	}
}

// table returns what a consumer has of a blob, of the records up to a time.
func (s *scanState) table(b, upTo uint8) (content uint8) {
	for _, r := range s.records[b][:s.length[b]] {
		if r.updated <= upTo {
			content = r.content
		}
	}
	return content
}

// complete returns the time up to which every event is in the feed, and below n.
func (s *scanState) complete(n *[scanBlobs]uint8) uint8 {
	for at := uint8(1); at <= s.clock; at++ {
		if b := (s.changed[at] - 1) / 2; s.events(b, at) > n[b] {
			return at - 1
		}
	}
	return s.clock
}

func (r scanRules) broken(s *scanState) string {
	switch {
	case s.wrong:
		return scanWrongMarker
	case s.late:
		return scanLate
	case s.twice:
		return scanTwice
	}
	for b := range uint8(scanBlobs) {
		if r.delivered(s) && s.table(b, r.changes) != s.blob[b] {
			return scanDiverged
		}
		for i := 1; i < int(s.length[b]) && r.rises && !r.rescan; i++ {
			if s.records[b][i].updated < s.records[b][i-1].updated {
				return scanFalls
			}
		}
	}
	return ""
}

// delivered reports whether nothing is left to do but markers.
func (r scanRules) delivered(s *scanState) bool {
	last := uint8(scanFeeding)
	if r.rescan {
		last = scanRepaired
	}
	return s.phase == last && s.clock == r.changes &&
		s.read[0]+s.read[1] == r.changes && s.page == [scanBlobs]found{} && s.missing == [scanBlobs]bool{} &&
		(r.fence || s.paused == [scanBlobs]found{})
}

func b2u(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func (r scanRules) settled(s *scanState) bool { return r.delivered(s) && s.marker == r.changes }

func (r scanRules) stuck(*scanState) string { return deadEnd }

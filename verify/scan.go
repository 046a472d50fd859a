package verify

import (
	"maps"
	"slices"
)

// Scan checks the rows of scans, which have the header scan with the id of their scan. An initial scan comes before the
// feed: on each partition its rows precede all events and markers, all of them have the same updated, and no marker is
// below the time of its last page, because at no earlier moment the account was what its rows say. The rows of a later
// scan may be anywhere, and their updated is the time of their page.
//
// The timestamp of a row is the time of its page. So a row with another updated belongs to an initial scan. Unique
// checks that a scan has each key once. Scan keeps nothing that grows with the topic.
type Scan struct {
	failures
	scans  map[string]*ScanRows
	known  map[string]bool // nil: any
	most   int64           // rows that there can be, if known is set
	listed clock           // the time of the initial scan's last page, if the state says so
	lanes  lanes[scanLane]
}

// ScanRows is what came of a scan.
type ScanRows struct {
	ID      string `json:"id"`
	Initial bool   `json:"initial"`
	Rows    int64  `json:"rows"` // with the deletions that a sweep found

	updated clock
	ends    int64 // the time of the last page, in ms
	first   Record
}

// scanLane is a partition.
type scanLane struct {
	fed    bool   // an event or a marker came
	lowest clock  // of the markers
	at     Record // which has it
}

// NewScan returns a Scan.
func NewScan() *Scan {
	return &Scan{scans: map[string]*ScanRows{}}
}

// Initial sets what the state says of the initial scan: its id, and the time of its last page, "" before that.
func (v *Scan) Initial(id, listed string) {
	v.scans[id] = &ScanRows{ID: id, Initial: true}
	v.listed, _ = parseClock([]byte(listed))
}

// Known sets the scans that there can be, and how many rows they have. Rows of others, and more, are a failure.
func (v *Scan) Known(rows int64, ids ...string) {
	v.known, v.most = map[string]bool{}, rows
	for _, id := range ids {
		v.known[id] = true
	}
}

// Rows returns what came of each scan, by id.
func (v *Scan) Rows() (all []ScanRows) {
	for _, id := range slices.Sorted(maps.Keys(v.scans)) {
		if s := v.scans[id]; s.Rows > 0 {
			all = append(all, *s)
		}
	}
	return all
}

// Listed returns when the initial scan got its last page, by the state or else by its rows: "" without such a scan.
func (v *Scan) Listed() string {
	listed := v.end()
	if listed == (clock{}) {
		return ""
	}
	return listed.String()
}

func (v *Scan) end() clock {
	listed := v.listed
	for _, s := range v.scans {
		if end := (clock{wall: uint64(s.ends) * 1e6}); end.compare(listed) > 0 {
			listed = end
		}
	}
	return listed
}

// Note implements Validator.
func (v *Scan) Note(r Record) {
	l := v.lanes.of(&r)
	id, scanned := r.scan()
	switch {
	case r.Key == nil:
		l.fed = !r.seeks()
		v.marker(&r, l)
	case !scanned:
		l.fed = true
	default:
		v.checked++
		v.row(&r, l, string(id))
	}
}

func (v *Scan) marker(r *Record, l *scanLane) {
	at, ok := parseClock([]byte(r.MarkerTime()))
	if ok && (l.at.Topic == "" || at.compare(l.lowest) < 0) {
		l.lowest, l.at = at, r.place()
	}
}

func (v *Scan) row(r *Record, l *scanLane, id string) {
	s := v.scans[id]
	if s == nil {
		s = &ScanRows{ID: id}
		v.scans[id] = s
	}
	if s.Rows++; s.Rows == 1 {
		s.first = r.place()
	}
	updated, ok := parseClock(r.Updated())
	if !ok { // Resolved judges that
		return
	}
	s.Initial = s.Initial || r.early(updated)
	if !s.Initial {
		return
	}
	s.ends = max(s.ends, r.Millis)
	switch {
	case s.updated == (clock{}):
		s.updated = updated
	case s.updated != updated:
		v.add(r, "the row of scan %s has updated %s, and one before it %s: all rows of an initial scan have the same",
			id, updated, s.updated)
	}
	if l.fed {
		v.add(r, "the row of the initial scan %s comes after an event or a marker of the feed", id)
	}
}

// place is what a failure needs of a record.
func (r *Record) place() Record {
	return Record{Topic: r.Topic, In: r.In, Partition: r.Partition, Offset: r.Offset, Key: slices.Clone(r.Key)}
}

// Failures implements Validator. It includes the markers below an initial scan, and unknown scans.
func (v *Scan) Failures() []Failure {
	f := v.copy()
	listed := v.end()
	for _, s := range v.Rows() {
		if v.known != nil && !v.known[s.ID] {
			f.add(&s.first, "the first of %d rows of scan %s, which the state does not name", s.Rows, s.ID)
		}
	}
	if v.known != nil && v.checked > v.most {
		f.end("the topic has %d rows of scans, and by the state %d were written", v.checked, v.most)
	}
	for _, at := range slices.SortedFunc(maps.Keys(v.lanes.all), topicPartition.compare) {
		if l := v.lanes.all[at]; l.at.Topic != "" && l.lowest.compare(listed) < 0 {
			f.add(&l.at, "the marker %s is below %s, the time of the last page of the initial scan", l.lowest, listed)
		}
	}
	return f.Failures()
}

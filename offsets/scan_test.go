package offsets

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/source/inventory"
)

// A lease owes the round of a scan that it stops delivering, and then that it lists. What it did for another scan, or
// in another round, does not count.
func TestOwes(t *testing.T) {
	listing := func(id string, held, over int) *Cursor {
		return &Cursor{Scan: &Listing{ID: id, Held: held, Over: over}}
	}
	for name, c := range map[string]struct {
		phase  ScanPhase
		cursor *Cursor
		want   bool
	}{
		"it holds, and has no cursor yet":     {ScanHolds, nil, true},
		"it holds, and has done nothing":      {ScanHolds, &Cursor{}, true},
		"it holds, and has held the last one": {ScanHolds, listing("a", 1, 1), true},
		"it holds, and has held":              {ScanHolds, listing("a", 2, 1), false},
		"it holds, and has held for another":  {ScanHolds, listing("b", 2, 2), true},
		"it lists, and has held":              {ScanLists, listing("a", 2, 1), true},
		"it lists, and has listed":            {ScanLists, listing("a", 2, 2), false},
		"it lists, and has not held":          {ScanLists, listing("a", 1, 2), true},
		"it delivers":                         {ScanDelivers, nil, false},
	} {
		s := &State{
			Frontier: &Frontier{Scan: &Scan{ID: "a", Round: 2, Phase: c.phase}},
			Cursors:  []*Cursor{listing("a", 2, 2), c.cursor},
		}
		if s.Owes(0) || s.Owes(1) != c.want || s.RoundOver() == c.want {
			t.Errorf("%s: owes %t, the round is over %t", name, s.Owes(1), s.RoundOver())
		}
		s.Moving = true // the cursors of the epoch are still to come
		if s.Owes(1) {
			t.Errorf("%s: it owes something to a frontier that moves", name)
		}
	}
	done := &State{Frontier: &Frontier{Scan: &Scan{Round: 1, Phase: ScanLists, Done: true}}, Cursors: make([]*Cursor, 1)}
	if done.Owes(0) || (&State{Cursors: make([]*Cursor, 1)}).Owes(0) {
		t.Error("it owes something to no scan")
	}
}

// A scan is done when all leases are; it ends at the last answer that any of them got.
func TestListedAll(t *testing.T) {
	scan, at := &Scan{ID: "a"}, time.Unix(1000, 0)
	all := inventory.Progress{Exhausted: true, Served: at, Rows: 5, Pages: 2, Containers: 1}
	some := all
	some.Open, some.Served = []inventory.Range{{ID: 1}}, at.Add(-time.Second)
	with := func(l Listing) *Cursor {
		l.ID = "a"
		return &Cursor{Scan: &l}
	}
	last := with(Listing{Done: true, Rows: 4, Swept: 1, Progress: all})
	for name, c := range map[string]struct {
		other        *Cursor
		rows, done   bool
		sum, deleted int64
	}{
		"nothing is listed": {nil, false, false, 4, 1},
		"some is listed":    {with(Listing{Rows: 3, Progress: some}), false, false, 7, 1},
		"the rows are listed, and not yet swept": {
			with(Listing{Rows: 3, Swept: 2, Progress: all}), true, false, 7, 3,
		},
		"all is done":                  {with(Listing{Done: true, Rows: 3, Progress: all}), true, true, 7, 1},
		"it is done with another scan": {&Cursor{Scan: &Listing{ID: "b", Done: true, Progress: all}}, false, false, 4, 1},
	} {
		for _, cursors := range [][]*Cursor{{last, c.other}, {c.other, last}} {
			s := &State{Cursors: cursors}
			sum := s.ListedAll(scan)
			if s.RowsListed(scan) != c.rows || sum.Done != c.done || sum.Rows != c.sum || sum.Swept != c.deleted ||
				!sum.Progress.Served.Equal(at) {
				t.Errorf("%s: rows listed %t, sum %+v", name, s.RowsListed(scan), sum)
			}
		}
	}
}

// Whatever leases write in a round, whoever owns them, and however old what they know of each other is, all rounds
// together are no more than what may be deleted, and each lease has a part in some round.
func TestMayDelete(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		scan := &Scan{ID: "a", MaxDeletions: 1 + rng.Int64N(40)}
		s := &State{Cursors: make([]*Cursor, 1+rng.IntN(6))}
		turns := map[int]bool{}
		before := slices.Clone(s.Cursors)
		for scan.Round = 1; scan.Round <= len(s.Cursors); scan.Round++ {
			for i := range s.Cursors { // all hold
				seen := &State{Cursors: slices.Clone(s.Cursors)}
				for other := range seen.Cursors {
					if other != i && rng.IntN(2) == 0 {
						seen.Cursors[other] = before[other]
					}
				}
				l := *s.Cursors[i].Listing(scan)
				l.Held, l.MayDelete = scan.Round, seen.MayDelete(scan, int32(i))
				s.Cursors[i] = &Cursor{Scan: &l}
			}
			before = slices.Clone(s.Cursors)
			for range 2 * len(s.Cursors) { // an owner, or the next, sees its own cursor
				i := rng.IntN(len(s.Cursors))
				l := *s.Cursors[i].Scan
				if l.MayDelete > 0 {
					turns[i] = true
				}
				n := rng.Int64N(l.MayDelete + 1)
				l.MayDelete, l.Swept = l.MayDelete-n, l.Swept+n
				s.Cursors[i] = &Cursor{Scan: &l}
			}
			if left := scan.MaxDeletions - s.ListedAll(scan).Swept; left < 0 || left != s.DeletionsLeft(scan) {
				t.Fatalf("%d of %d are left, and it says %d", left, scan.MaxDeletions, s.DeletionsLeft(scan))
			}
			scan.Deleted = s.ListedAll(scan).Swept
		}
	}
}

// A request is taken up once, and not while a scan is active; a reset voids it. What is true of the scan before stays.
func TestRequested(t *testing.T) {
	at := time.Unix(1000, 0)
	bar := "1769857200000000000.0000000000"
	active := &Scan{ID: "a", Request: "a", Round: 3, Phase: ScanLists, Bar: bar}
	done := &Scan{ID: "a", Request: "a", Done: true, Bar: bar}
	first := &Scan{ID: "a", Initial: true, Done: true, Listed: bar, Begin: segment(t, "2026/01/31/1200")}
	repair := (&Scan{ID: "r"}).Follow(done) // begun by lost history, not by a request
	repaired := *repair
	repaired.Done = true
	cancelled := *active
	cancelled.Cancelled = true
	initial := &Scan{ID: "a", Initial: true}
	next := func(bar string) *Scan {
		return &Scan{ID: "n", Request: "n", Sweep: true, Container: "c", Prefix: "p", Requested: at, Round: 1,
			Phase: ScanHolds, Bar: bar}
	}
	behind, another := next(bar), next(bar)
	behind.Begin, behind.Former = first.Begin, []FormerScan{{ID: "a", Initial: true}}
	another.Former = []FormerScan{{ID: "a"}}
	scan := &Request{ID: "n", Time: at, Sweep: true, Container: "c", Prefix: "p", Epoch: 2}
	cancel := &Request{ID: "a", Cancel: true, Epoch: 2}
	for name, c := range map[string]struct {
		request *Request
		last    *Scan
		want    *Scan
	}{
		"none":                               {nil, nil, nil},
		"the first one":                      {scan, nil, next("")},
		"behind an initial scan":             {scan, first, behind},
		"behind another one":                 {scan, done, another},
		"it has to wait":                     {scan, active, nil},
		"it was taken up":                    {&Request{ID: "a", Epoch: 2}, done, nil},
		"it was taken up before a repair":    {&Request{ID: "a", Epoch: 2}, &repaired, nil},
		"of before a reset":                  {&Request{ID: "n", Epoch: 1}, nil, nil},
		"to cancel":                          {cancel, active, &cancelled},
		"to cancel, twice":                   {cancel, &cancelled, nil},
		"to cancel, and it is done":          {cancel, done, nil},
		"to cancel another one":              {&Request{ID: "b", Cancel: true, Epoch: 2}, active, nil},
		"to cancel another one that is done": {&Request{ID: "b", Cancel: true, Epoch: 2}, done, nil},
		"to cancel an initial scan":          {cancel, initial, nil},
		"to cancel where there was none":     {cancel, nil, nil},
	} {
		s := &State{Frontier: &Frontier{Scan: c.last}, born: 2, request: c.request}
		if got := s.Requested(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := (&State{request: scan}).Requested(); got != nil {
		t.Errorf("without a frontier: %+v", got)
	}
}

// A scan knows those before it, as many as the frontier has room for.
func TestFormerScans(t *testing.T) {
	var s *Scan
	for i := range maxFormer + 3 {
		s = (&Scan{ID: fmt.Sprint(i), ScanResult: ScanResult{Rows: int64(i)}, Done: true}).Follow(s)
	}
	if n := len(s.Former); n != maxFormer || s.Former[0].ID != "2" || s.Former[n-1].ID != "11" ||
		s.Former[n-1].Rows != 11 {
		t.Errorf("%+v", s.Former)
	}
}

// The holder of a cursor changes its listing before the state has it.
func TestListingIsACopy(t *testing.T) {
	scan := &Scan{ID: "a"}
	s := &State{Cursors: []*Cursor{{Scan: &Listing{
		ID: "a", Progress: inventory.Progress{Open: []inventory.Range{{ID: 1, Container: "c"}}},
	}}}}
	own := s.Cursor(0).Listing(scan)
	own.Held = 7
	if err := own.Progress.Apply(&inventory.Step{Range: 1, Split: &inventory.Range{ID: 2, From: "m"}}); err != nil {
		t.Fatal(err)
	}
	if l := s.Cursors[0].Scan; l.Held != 0 || len(l.Progress.Open) != 1 || l.Progress.Open[0].End != "" {
		t.Errorf("the state has %+v", l)
	}
}

// A former owner that lists late may have written rows of before the changes that its successor has delivered, and
// deletions of blobs that were written since: all since the rows' beginning is delivered once more.
func TestStaleRows(t *testing.T) {
	from := segment(t, "2026/01/31/1100")
	for name, c := range map[string]struct {
		scan *Listing
		want bool
	}{
		"no scan":        {nil, false},
		"nothing listed": {&Listing{From: from}, false},
		"rows":           {&Listing{From: from, Rows: 1}, true},
		"a deletion":     {&Listing{From: from, Swept: 1}, true},
	} {
		s := &State{terms: []int64{5}, stale: make([]int64, 1)}
		if !s.staleCursor(&Cursor{Term: 4, Scan: c.scan}, 0, 9) {
			t.Errorf("%s: it counts", name)
		}
		if after, marked := s.Regressed(); marked != c.want || marked && after != from {
			t.Errorf("%s: delivery is repeated %t, after %s", name, marked, after)
		}
	}
}

// A move voids what leases have acknowledged. The frontier that it repairs may be of an earlier round than they are,
// and a lease that has held in a later one may be delivering.
func TestMoveVoidsListings(t *testing.T) {
	log := &tornLog{t: t, next: make([]int64, 1), view: NewView(stateTopic, 1)}
	log.cursor(0, 0, Cursor{Scan: &Listing{ID: "a", Held: 5, Over: 4}})
	log.frontier(0, Frontier{Epoch: 1, Scan: &Scan{ID: "a", Round: 2, Phase: ScanHolds}})
	s, _, _ := log.view.Get()
	if !s.Owes(0) || s.Cursor(0).Scan != nil {
		t.Errorf("the lease owes nothing: %+v", s.Cursor(0).Scan)
	}
}

// What a lease has deleted is deleted, though a repair begins the scan again in the middle of a round: the limit counts
// it.
func TestRepairCountsDeletions(t *testing.T) {
	log := &tornLog{t: t, next: make([]int64, 2), view: NewView(stateTopic, 2)}
	scan := &Scan{ID: "a", Round: 2, Phase: ScanLists, Sweep: true, MaxDeletions: 10,
		ScanResult: ScanResult{Deleted: 2}}
	log.frontier(0, Frontier{Scan: scan})
	log.cursor(1, 0, Cursor{Scan: &Listing{ID: "a", Held: 2, Over: 1, Rows: 9, Swept: 5}})
	for range 2 { // repairs
		s, _, _ := log.view.Get()
		log.frontier(0, *s.Repair(segment(t, "2026/01/31/1100")))
	}
	s, _, _ := log.view.Get()
	if left := s.DeletionsLeft(scan); left != 5 {
		t.Errorf("%d deletions are left of 10, and 5 are written", left)
	}
	c := s.Cursor(1)
	c.Epoch = 2
	log.cursor(1, 0, *c) // the lease enters the epoch, and begins again
	if s, _, _ = log.view.Get(); s.DeletionsLeft(scan) != 5 || s.RowsListed(scan) {
		t.Errorf("%+v", s.Cursors[1].Scan)
	}
}

// The end of a delivery cancels a scan at once: no lease lists any more.
func TestCancelledScanIsOver(t *testing.T) {
	scan, at := &Scan{ID: "a", Round: 2, Phase: ScanLists}, time.Unix(1000, 0).UTC()
	over := scan.Cancel(at)
	if !scan.Active() || over.Active() || !over.Cancelled || !over.Ended.Equal(at) || over.ID != "a" {
		t.Errorf("%+v became %+v", scan, over)
	}
}

// A frontier that a former owner wrote late is all that compaction has left. The cursors say of the newer one which
// epoch and which promise it had; its markers may not be written.
func TestRepairOfAnOldFrontier(t *testing.T) {
	const early, late = "1769857200000000000.0000000000", "1769860800000000000.0000000000"
	for name, c := range map[string]struct {
		cursor *Cursor
		owed   bool
		epoch  int64
		says   string
	}{
		"its cursors are of its time":        {&Cursor{Epoch: 2, Segment: segment(t, "2026/01/31/1100")}, false, 3, early},
		"a cursor is of a later epoch":       {&Cursor{Epoch: 3, Resolved: late}, true, 4, late},
		"there are no markers":               {&Cursor{Epoch: 3}, false, 4, early},
		"a cursor has promised less than it": {&Cursor{Epoch: 2, Resolved: "5.0000000000"}, false, 3, early},
	} {
		completed := segment(t, "2026/01/31/1200")
		s := &State{Frontier: &Frontier{Epoch: 2, Completed: completed, Resolved: early}, Epoch: 2,
			Cursors: []*Cursor{c.cursor, nil}, written: []*Cursor{c.cursor, nil}}
		f := s.Repair(completed)
		if f.Owed != c.owed || f.Epoch != c.epoch || f.Resolved != c.says || f.Completed != completed || !f.Moving {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// A request that is taken out of the topic is none.
func TestNoRequest(t *testing.T) {
	v := NewView(stateTopic, 1)
	for offset, value := range []string{`{"version": 3, "id": "a"}`, ""} {
		r := &kgo.Record{Topic: stateTopic, Key: []byte(keyRequest), Offset: int64(offset)}
		if value != "" {
			r.Value = []byte(value)
		}
		if err := v.apply(r); err != nil {
			t.Fatal(err)
		}
		if s, _, _ := v.Get(); (s.request != nil) != (value != "") {
			t.Errorf("behind %q the request is %+v", value, s.request)
		}
	}
}

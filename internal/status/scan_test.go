package status

import (
	"strings"
	"testing"
	"time"

	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// An active scan says how many containers are done, and how long the others may take; a complete one what it wrote.
func TestScanProgress(t *testing.T) {
	began := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	scan := &offsets.Scan{ID: "s", Initial: true, Requested: began, Round: 1, Phase: offsets.ScanLists, Containers: 10}
	cursor := func(rows, containers int64, open ...inventory.Range) *offsets.Cursor {
		return &offsets.Cursor{Scan: &offsets.Listing{ID: "s", Rows: rows,
			Progress: inventory.Progress{Rows: rows, Containers: containers, Open: open}}}
	}
	state := &offsets.State{
		Frontier: &offsets.Frontier{Scan: scan}, Owners: make([]string, 2),
		Cursors: []*offsets.Cursor{
			cursor(9000, 4, inventory.Range{ID: 1, Container: "large", Rows: 2000},
				inventory.Range{ID: 2, Container: "large", Rows: 1000}),
			cursor(1000, 2),
		},
	}
	s := Of("test", state, Group{}, began.Add(10*time.Second))
	want := "scanning the account: container 6 of 10, 10,000 rows, 50 %, 1,000 rows/s, about 10s left"
	if s.Progress == nil || s.Progress.String() != want {
		t.Errorf("%v, want %s", s.Progress, want)
	}
	if text := s.Text(); !strings.Contains(text,
		"initial scan s: listing, 10,000 rows in 10s, 1,000 rows/s, 5 of 10 containers done, at container large") {
		t.Errorf("%s", text)
	}
	// One huge container is left: it is not nearly done because all others are.
	state.Cursors[0] = cursor(900_000, 8, inventory.Range{ID: 1, Container: "large", Rows: 899_000})
	if s = Of("test", state, Group{}, began.Add(901*time.Second)); *s.Progress.Share > 0.51 || *s.Progress.Left < 890 {
		t.Errorf("%v", s.Progress)
	}
	scan.Done, scan.Ended, scan.Rows = true, began.Add(20*time.Second), 20000
	if s = Of("test", state, Group{}, began.Add(time.Hour)); s.Progress != nil || s.Scan.State != "complete" ||
		!strings.Contains(s.Text(), "initial scan s: complete, 20,000 rows in 20s, 1,000 rows/s\n") {
		t.Errorf("%+v\n%s", s.Scan, s.Text())
	}
}

// A scan with a sweep lists all containers, then compares the topics with the account. Line, verdict and document name
// the phase.
func TestPhaseOfAScan(t *testing.T) {
	began := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	topics := map[string]int32{"a": 3}
	open := inventory.Progress{Containers: 1, Open: []inventory.Range{{ID: 1, Container: "c", Rows: 1}}}
	listed := inventory.Progress{Containers: 1, Exhausted: true}
	judged := (&offsets.Listing{}).Unjudged(topics, 0, 2)[0]
	for phase, c := range map[string]struct {
		leases        [2]*offsets.Listing
		cancelled     bool
		swept         int
		line, verdict string
	}{
		"listing": {
			leases:  [2]*offsets.Listing{{Rows: 1, Progress: open}, {Progress: inventory.Progress{Exhausted: true}}},
			line:    "scan with sweep s: listing, 1 row, 0 deletions in 1m0s, 0 of 1 container done, at container c\n",
			verdict: "up to date, scanning the account: container 1 of 1, 1 row, 50 %, 0 rows/s, about 1m0s left",
		},
		"sweeping": {
			leases: [2]*offsets.Listing{
				{Rows: 6000, Swept: 1, Progress: listed, Judged: &judged}, {Progress: listed, Done: true},
			},
			swept:   3 - len((&offsets.Listing{Judged: &judged}).Unjudged(topics, 0, 2)),
			line:    "scan with sweep s: sweeping, 6,000 rows, 1 deletion in 1m0s, ",
			verdict: "up to date, sweeping the topics: partition ",
		},
		"cancelling": {
			leases:    [2]*offsets.Listing{{Rows: 1, Progress: open}, {}},
			cancelled: true,
			line:      "scan with sweep s: cancelling, 1 row, 0 deletions in 1m0s\n",
			verdict:   "up to date",
		},
	} {
		state := &offsets.State{
			Frontier: &offsets.Frontier{
				Completed: source.SegmentAt(began), Topics: topics,
				Scan: &offsets.Scan{ID: "s", Sweep: true, Requested: began, Round: 1, Phase: offsets.ScanLists, Containers: 1,
					Cancelled: c.cancelled},
			},
			Owners: make([]string, 2), Cursors: []*offsets.Cursor{{Scan: c.leases[0]}, {Scan: c.leases[1]}},
		}
		for _, l := range c.leases {
			l.ID = "s"
		}
		s := Of("test", state, Group{}, began.Add(time.Minute))
		if s.Scan.Phase != phase || s.Scan.Swept != c.swept || phase == "sweeping" && s.Scan.Partitions != 3 {
			t.Errorf("%s: %+v", phase, s.Scan)
		}
		if text := s.Text(); !strings.Contains(text, c.line) || !strings.HasPrefix(s.Verdict.Text, c.verdict) {
			t.Errorf("%s: want %q and %q:\n%s", phase, c.line, c.verdict, text)
		}
	}
}

// The report has the scans before the last one, the newest first. One without an end was replaced.
func TestFormerScans(t *testing.T) {
	began := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	last := &offsets.Scan{ID: "last", Requested: began, Done: true,
		ScanResult: offsets.ScanResult{Ended: began.Add(time.Second)}}
	last.Former = []offsets.FormerScan{
		{ID: "first", Initial: true, Requested: began,
			ScanResult: offsets.ScanResult{Ended: began.Add(10 * time.Second), Rows: 5000}},
		{ID: "second", Requested: began, ScanResult: offsets.ScanResult{Rows: 3}},
		{ID: "third", Sweep: true, Requested: began, Cancelled: true,
			ScanResult: offsets.ScanResult{Ended: began.Add(2 * time.Second)}},
	}
	s := Of("test", &offsets.State{Frontier: &offsets.Frontier{Scan: last}}, Group{}, began.Add(time.Hour))
	want := "scan      scan last: complete, 0 rows in 1s\n" +
		"before    scan with sweep third: cancelled, 0 rows, 0 deletions in 2s\n" +
		"before    scan second: replaced, 3 rows\n" +
		"before    initial scan first: complete, 5,000 rows in 10s, 500 rows/s\n"
	if text := s.Text(); !strings.Contains(text, want) {
		t.Errorf("%s", text)
	}
}

// A scan that is over says whether it has done everything, and why not.
func TestScanOutcome(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	ended := func(r offsets.ScanResult) offsets.Scan {
		r.Ended = at
		return offsets.Scan{Done: true, ScanResult: r}
	}
	for name, c := range map[string]struct {
		scan       offsets.Scan
		over       bool
		text, fail string
	}{
		"active":     {offsets.Scan{Phase: offsets.ScanLists, Round: 1}, false, ": sweeping, ", ""},
		"complete":   {ended(offsets.ScanResult{}), true, ": complete, ", ""},
		"cancelled":  {offsets.Scan{Done: true, Cancelled: true, ScanResult: offsets.ScanResult{Ended: at}}, true, ": cancelled, ", "scan a: cancelled"},
		"left out":   {ended(offsets.ScanResult{LeftOut: "why"}), true, "; why", "scan a: sweep left out: why"},
		"incomplete": {ended(offsets.ScanResult{Skipped: 2}), true, ": incomplete, ", "the sweep skipped 2 keys"},
		"stopped": {ended(offsets.ScanResult{Stopped: true, Skipped: 2}), true, ": stopped, ",
			"scan a: stopped: more blobs are gone than the sweep may delete: bridge scan --sweep --plan"},
	} {
		c.scan.ID, c.scan.Sweep, c.scan.Requested = "a", true, at
		former := (&offsets.Scan{ID: "b", Requested: at, Done: true}).Follow(&c.scan)
		scans := []*Scan{scanOf(&offsets.State{Frontier: &offsets.Frontier{Scan: &c.scan}})}
		if c.over {
			scans = append(scans, &formerScans(former)[0])
		}
		for _, scan := range scans {
			over, err := scan.Over()
			if over != c.over || (err != nil) != (c.fail != "") || err != nil && !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%s: over %t, %v", name, over, err)
			}
			if text := scan.Text(at); !strings.Contains(text, c.text) {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

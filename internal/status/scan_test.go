package status

import (
	"strings"
	"testing"
	"time"

	"blobfeed/offsets"
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
			cursor(9000, 4, inventory.Range{ID: 1, Container: "large"}, inventory.Range{ID: 2, Container: "large"}),
			cursor(1000, 2),
		},
	}
	s := Of("test", state, Group{}, began.Add(10*time.Second))
	want := "scanning the account: container 6 of 10, 10,000 rows, 50 %, 1,000 rows/s, about 10s left"
	if s.Progress == nil || s.Progress.String() != want {
		t.Errorf("%v, want %s", s.Progress, want)
	}
	if text := s.Text(); !strings.Contains(text,
		"initial scan s: active, 10000 rows, 1000 rows/s, 5 of 10 containers done, at large") {
		t.Errorf("%s", text)
	}
	scan.Done, scan.Ended, scan.Rows = true, began.Add(20*time.Second), 20000
	if s = Of("test", state, Group{}, began.Add(time.Hour)); s.Progress != nil || s.Scan.State != "complete" ||
		!strings.Contains(s.Text(), "initial scan s: complete, 20000 rows, 1000 rows/s\n") {
		t.Errorf("%+v\n%s", s.Scan, s.Text())
	}
}

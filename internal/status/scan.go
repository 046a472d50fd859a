package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/offsets"
)

// Scan is the last scan of the account, or the one that is under way.
type Scan struct {
	ID        string     `json:"id"`
	Initial   bool       `json:"initial,omitempty"`
	Sweep     bool       `json:"sweep,omitempty"`
	Container string     `json:"container,omitempty"`
	Prefix    string     `json:"prefix,omitempty"`
	State     string     `json:"state"` // active, complete or cancelled
	Requested time.Time  `json:"requested"`
	Ended     *time.Time `json:"ended,omitempty"`
	Rows      int64      `json:"rows"`
	Deleted   int64      `json:"deleted"`
	// Of an active scan.
	Containers int64  `json:"containers_opened,omitempty"`
	Done       int64  `json:"containers_done,omitempty"`
	Total      int    `json:"containers,omitempty"` // 0: unknown
	Pages      int64  `json:"pages,omitempty"`
	At         string `json:"at,omitempty"` // a container that is being listed
	// Listed is, of an initial scan, the service's time of its last answer. No marker is below it.
	Listed *time.Time `json:"listed,omitempty"`
}

// scanOf reports the scan of a state, nil if there was none.
func scanOf(s *offsets.State) *Scan {
	if s.Frontier == nil || s.Frontier.Scan == nil {
		return nil
	}
	f := s.Frontier.Scan
	scan := &Scan{
		ID: f.ID, Initial: f.Initial, Sweep: f.Sweep, Container: f.Container, Prefix: f.Prefix, State: "active",
		Requested: f.Requested, Rows: f.Rows, Deleted: f.Deleted,
	}
	if ts, err := envelope.ParseTimestamp(f.Listed); err == nil {
		scan.Listed = Known(time.Unix(0, ts.Wall))
	}
	if f.Done {
		scan.State = "complete"
		if f.Cancelled {
			scan.State = "cancelled"
		}
		if !f.Ended.IsZero() {
			scan.Ended = &f.Ended
		}
		return scan
	}
	sum := s.ListedAll(f)
	scan.Rows, scan.Deleted = sum.Rows, sum.Swept
	scan.Containers, scan.Pages = sum.Progress.Containers, sum.Progress.Pages
	open := map[string]bool{}
	for _, c := range s.Cursors {
		for _, r := range c.Listing(f).Progress.Open {
			open[r.Container] = true
			scan.At = cmp.Or(scan.At, r.Container)
		}
	}
	scan.Done, scan.Total = sum.Progress.Containers-int64(len(open)), f.Containers
	return scan
}

// progress returns how far an active scan is. Nobody knows how many blobs there are, so the estimate takes all
// containers for equally large.
func (s *Scan) progress(now time.Time) *Progress {
	if s == nil || s.State != "active" {
		return nil
	}
	p := &Progress{
		Phase: "scanning the account", Step: "container", Done: int(s.Done), Total: s.Total,
		Item: "rows", Items: s.Rows,
	}
	if took := now.Sub(s.Requested); took >= settled && s.Rows > 0 {
		rate := float64(s.Rows) / took.Seconds()
		p.Rate = &rate
		if s.Done > 0 && s.Total > 0 {
			left := took.Seconds() * float64(int64(s.Total)-s.Done) / float64(s.Done)
			p.Left = &left
		}
	}
	if s.Total > 0 {
		share := float64(s.Done) / float64(s.Total)
		p.Share = &share
	}
	return p
}

// text is one line for people.
func (s *Scan) text(now time.Time) string {
	var b strings.Builder
	kind := "scan"
	switch {
	case s.Initial:
		kind = "initial scan"
	case s.Sweep:
		kind = "scan with sweep"
	}
	fmt.Fprintf(&b, "%s %s: %s, %d rows", kind, s.ID, s.State, s.Rows)
	if s.Sweep {
		fmt.Fprintf(&b, ", %d deletions", s.Deleted)
	}
	end := now
	if s.Ended != nil {
		end = *s.Ended
	}
	if took := end.Sub(s.Requested); took >= time.Second && s.Rows > 0 {
		fmt.Fprintf(&b, ", %.0f rows/s", float64(s.Rows)/took.Seconds())
	}
	if s.State == "active" {
		fmt.Fprintf(&b, ", %d of %d containers done, at %s", s.Done, s.Total, cmp.Or(s.At, "-"))
	}
	return b.String()
}

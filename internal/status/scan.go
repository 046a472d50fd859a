package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
)

// Scan is the last scan of the account, the one that is under way, or the one that no instance has begun yet.
type Scan struct {
	ID        string `json:"id"`
	Initial   bool   `json:"initial,omitempty"`
	Sweep     bool   `json:"sweep,omitempty"`
	Container string `json:"container,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	// State is requested, active, complete, incomplete, stopped, left out (the sweep) or cancelled; of a former one
	// also replaced.
	State     string     `json:"state"`
	Why       string     `json:"why,omitempty"` // it is incomplete, stopped or left out
	Requested time.Time  `json:"requested"`
	Ended     *time.Time `json:"ended,omitempty"`
	Rows      int64      `json:"rows"`
	Deleted   int64      `json:"deleted"`
	// Of an active scan.
	Phase      string `json:"phase,omitempty"` // listing, sweeping or cancelling
	Containers int64  `json:"containers_opened,omitempty"`
	Done       int64  `json:"containers_done,omitempty"`
	Total      int    `json:"containers,omitempty"` // 0: unknown
	Pages      int64  `json:"pages,omitempty"`
	At         string `json:"at,omitempty"` // a container that is being listed
	Swept      int    `json:"partitions_swept,omitempty"`
	Partitions int    `json:"partitions,omitempty"` // to sweep
	// Listed is, of an initial scan, the service's time of its last answer. No marker is below it.
	Listed *time.Time `json:"listed,omitempty"`

	openRows int64 // of containers that are being listed
}

// States of a scan, and phases of an active one. Cancelling ends when every lease has stopped.
const (
	requested  = "requested"
	active     = "active"
	complete   = "complete"
	incomplete = "incomplete"
	stopped    = "stopped"
	leftOut    = "left out"
	cancelled  = "cancelled"
	replaced   = "replaced"
	listing    = "listing"
	sweeping   = "sweeping"
	cancelling = "cancelling"
)

// scanOf reports the scan of a state, nil if there was none.
func scanOf(s *offsets.State) *Scan {
	if s.Frontier == nil {
		return nil
	}
	last := s.Frontier.Scan
	f := cmp.Or(s.Requested(), last)
	if f == nil {
		return nil
	}
	scan := &Scan{
		ID: f.ID, Initial: f.Initial, Sweep: f.Sweep, Container: f.Container, Prefix: f.Prefix, State: active,
		Requested: f.Requested, Rows: f.Rows, Deleted: f.Deleted,
	}
	if ts, err := envelope.ParseTimestamp(f.Listed); err == nil {
		scan.Listed = Known(time.Unix(0, ts.Wall))
	}
	if last == nil || f.ID != last.ID {
		scan.State = requested
		return scan
	}
	if f.Done {
		scan.end(f.ScanResult, f.Cancelled)
		return scan
	}
	switch {
	case f.Cancelled:
		scan.Phase = cancelling
	case f.Sweep && s.RowsListed(f):
		scan.Phase = sweeping
	default:
		scan.Phase = listing
	}
	sum := s.ListedAll(f)
	scan.Rows, scan.Deleted = sum.Rows, sum.Swept
	scan.Containers, scan.Pages = sum.Progress.Containers, sum.Progress.Pages
	open := map[string]bool{}
	for _, c := range s.Cursors {
		l := c.Listing(f)
		for _, r := range l.Progress.Open {
			open[r.Container] = true
			scan.openRows += r.Rows
			scan.At = cmp.Or(scan.At, r.Container)
		}
	}
	if scan.Phase == sweeping {
		scan.sweep(s)
	}
	scan.Done, scan.Total = sum.Progress.Containers-int64(len(open)), f.Containers
	return scan
}

// end sets how a scan ended.
func (s *Scan) end(r offsets.ScanResult, wasCancelled bool) {
	s.State, s.Ended = complete, Known(r.Ended)
	switch {
	case wasCancelled:
		s.State = cancelled
	case r.LeftOut != "":
		s.State, s.Why = leftOut, r.LeftOut
	case r.Stopped:
		s.State, s.Why = stopped, "more blobs are gone than the sweep may delete: bridge scan --sweep --plan counts "+
			"them, and bridge scan --sweep --max-deletions N permits them"
	case r.Skipped > 0:
		s.State, s.Why = incomplete, fmt.Sprintf("the sweep skipped %s that no blob can have, such as names that are "+
			"not valid UTF-8", plain.Count(r.Skipped, "key"))
	}
}

// Over reports whether the scan has ended, and how: nil if it has done all that it was to do.
func (s *Scan) Over() (over bool, err error) {
	switch s.State {
	case requested, active:
		return false, nil
	case complete:
		return true, nil
	}
	if s.Why != "" {
		return true, fmt.Errorf("scan %s: %s: %s", s.ID, s.outcome(), s.Why)
	}
	return true, fmt.Errorf("scan %s: %s", s.ID, s.outcome())
}

// outcome is the phase or the state, for people.
func (s *Scan) outcome() string {
	if s.State == leftOut {
		return "sweep left out"
	}
	return cmp.Or(s.Phase, s.State)
}

// formerScans reports the scans before the last one, the newest first. One that has no end was replaced by the scan
// that answers lost history.
func formerScans(last *offsets.Scan) (scans []Scan) {
	if last == nil {
		return nil
	}
	for _, f := range slices.Backward(last.Former) {
		scan := Scan{ID: f.ID, Initial: f.Initial, Sweep: f.Sweep, Container: f.Container, Prefix: f.Prefix,
			Requested: f.Requested, State: replaced, Rows: f.Rows, Deleted: f.Deleted}
		if !f.Ended.IsZero() {
			scan.end(f.ScanResult, f.Cancelled)
		}
		scans = append(scans, scan)
	}
	return scans
}

// sweep counts the partitions that are compared with the account.
func (s *Scan) sweep(state *offsets.State) {
	f := state.Frontier
	for _, n := range f.Topics {
		s.Partitions += int(n)
	}
	s.Swept = s.Partitions
	for lease, c := range state.Cursors {
		if l := c.Listing(f.Scan); !l.Done {
			s.Swept -= len(l.Unjudged(f.Topics, int32(lease), len(state.Cursors)))
		}
	}
}

// progress returns how far an active scan is, nil while it is cancelled. Nobody knows how many blobs there are. The
// estimate is that a container that is being listed has as many rows to come as it had so far, and that one that is not
// begun is as large as the others are so far. So one huge container may take twice as long, and is never nearly done.
func (s *Scan) progress(now time.Time) *Progress {
	if s == nil || s.State != active {
		return nil
	}
	p := &Progress{
		Phase: "scanning the account", Step: "container", Done: int(s.Done), Total: s.Total,
		Item: "rows", Items: s.Rows,
	}
	switch s.Phase {
	case cancelling:
		return nil
	case sweeping: // nobody recorded when it began, so there is no rate
		*p = Progress{
			Phase: "sweeping the topics", Step: "partition", Done: s.Swept, Total: s.Partitions, Item: "deletions",
			Items: s.Deleted,
		}
	default:
		if s.Rows == 0 {
			break
		}
		if took := now.Sub(s.Requested); took >= settled {
			rate := float64(s.Rows) / took.Seconds()
			p.Rate = &rate
		}
		if s.Total == 0 || s.Containers == 0 {
			break
		}
		each := float64(s.Rows) / float64(s.Containers)
		rows := float64(s.openRows) + each*float64(max(0, int64(s.Total)-s.Containers)) // to come
		share := float64(s.Rows) / (float64(s.Rows) + rows)
		p.Share = &share
		if p.Rate != nil {
			left := rows / *p.Rate
			p.Left = &left
		}
	}
	if p.Total > 0 && p.Share == nil {
		share := float64(p.Done) / float64(p.Total)
		p.Share = &share
	}
	return p
}

// Text is one line for people.
func (s *Scan) Text(now time.Time) string {
	var b strings.Builder
	kind := "scan"
	switch {
	case s.Initial:
		kind = "initial scan"
	case s.Sweep:
		kind = "scan with sweep"
	}
	if s.State == requested {
		return fmt.Sprintf("%s %s: requested, no instance has begun it", kind, s.ID)
	}
	fmt.Fprintf(&b, "%s %s: %s, %s", kind, s.ID, s.outcome(), plain.Count(s.Rows, "row"))
	if s.Sweep {
		fmt.Fprintf(&b, ", %s", plain.Count(s.Deleted, "deletion"))
	}
	end := now
	if s.Ended != nil {
		end = *s.Ended
	}
	if took := end.Sub(s.Requested); took >= time.Second && s.State != replaced {
		fmt.Fprintf(&b, " in %s", plain.Span(took))
		rate := rounded(float64(s.Rows) / took.Seconds())
		if rate > 0 && (s.Phase == listing || s.State != active && !s.Sweep) { // a sweep takes time without rows
			fmt.Fprintf(&b, ", %s rows/s", plain.Number(rate))
		}
	}
	switch {
	case s.Phase == sweeping:
		fmt.Fprintf(&b, ", %s of %s swept", plain.Number(s.Swept), plain.Count(s.Partitions, "partition"))
	case s.Phase != listing:
	case s.Total > 0:
		fmt.Fprintf(&b, ", %s of %s done", plain.Number(s.Done), plain.Count(s.Total, "container"))
	default:
		fmt.Fprintf(&b, ", %s done", plain.Count(s.Done, "container"))
	}
	if s.Why != "" {
		b.WriteString("; " + s.Why)
	}
	if s.Phase == listing && s.At != "" {
		b.WriteString(", at container " + s.At)
	}
	return b.String()
}

// ScanOf returns the scan of an ID, the last one or a former one; nil if it is not known.
func (s *Status) ScanOf(id string) *Scan {
	if s.Scan != nil && s.Scan.ID == id {
		return s.Scan
	}
	for i := range s.Former {
		if s.Former[i].ID == id {
			return &s.Former[i]
		}
	}
	return nil
}

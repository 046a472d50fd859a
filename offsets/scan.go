package offsets

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/source"
	"blobfeed/source/inventory"
)

// Scan is a listing of the account that becomes rows. It is a step of the frontier, like a segment.
//
// A listing shows each blob at another moment, and its rows must not contradict the feed. So nothing is delivered from
// the request for a page to the commit of its rows. A round makes that so for all leases:
//
//	holds     the coordinator asks; each lease stops delivering, and commits that it has
//	lists     every lease has: each lists its part of the containers, for a limited time, and commits that it has
//	delivers  every lease has: events are delivered again, until the next round
//
// The first scan of a bridge has one round without a limit, since nothing is delivered before it.
type Scan struct {
	ID        string    `json:"id"`
	Initial   bool      `json:"initial,omitempty"`   // before the first event; else it repeats what is there
	Only      bool      `json:"only,omitempty"`      // nothing is delivered after it
	Sweep     bool      `json:"sweep,omitempty"`     // it also deletes what the topic has and the account has not
	Container string    `json:"container,omitempty"` // the only one to list
	Prefix    string    `json:"prefix,omitempty"`    // of the names to list
	Requested time.Time `json:"requested"`
	// MaxDeletions is how many deletions a sweep may write; 0: any number.
	MaxDeletions int64 `json:"max_deletions,omitempty"`
	// Updated is that of all rows of an initial scan: the time that may be promised where the feed begins, "" before it
	// is known. Rows of a later scan have the time of their page.
	Updated string `json:"updated,omitempty"`
	// Begin is the segment from which the feed is delivered since an initial scan, if there was an open one.
	Begin source.Segment `json:"begin,omitzero"`
	// Bar is, of a later scan, when the initial one was done: see Barred.
	Bar string `json:"bar,omitempty"`
	// Request is the ID of the last request that was taken up, by this scan or by one before it.
	Request string `json:"request,omitempty"`

	// Containers is how many there are to list, 0 if that is not known. For operators.
	Containers int `json:"containers,omitempty"`

	Round int       `json:"round"`
	Phase ScanPhase `json:"phase"`
	// Listed is the service's time of the last answer, set when the scan is done. The topic shows the account of no
	// moment before it.
	Listed    string `json:"listed,omitempty"`
	Done      bool   `json:"done,omitempty"`
	Cancelled bool   `json:"cancelled,omitempty"` // no more is to be listed; Done when every lease has stopped
	ScanResult

	Former []FormerScan `json:"former,omitempty"` // the oldest first; for operators
}

// ScanResult is what a scan that is done has done.
type ScanResult struct {
	Ended time.Time `json:"ended,omitzero"`
	Rows  int64     `json:"rows,omitempty"`
	// Deleted is, of a scan that is not done, the deletions of all rounds that are over.
	Deleted int64 `json:"deleted,omitempty"`
	// Of a sweep: why it was left out, how many keys it could not compare with the account, and whether it ended before
	// a deletion that would have been more than it may write.
	LeftOut string `json:"left_out,omitempty"`
	Skipped int64  `json:"skipped,omitempty"`
	Stopped bool   `json:"stopped,omitempty"`
}

// FormerScan is what is known of a scan when another one has followed it. It has no end if lost history began another
// one before.
type FormerScan struct {
	ID        string    `json:"id"`
	Initial   bool      `json:"initial,omitempty"`
	Sweep     bool      `json:"sweep,omitempty"`
	Container string    `json:"container,omitempty"`
	Prefix    string    `json:"prefix,omitempty"`
	Requested time.Time `json:"requested"`
	Cancelled bool      `json:"cancelled,omitempty"`
	ScanResult
}

// maxFormer bounds what the frontier holds of former scans.
const maxFormer = 10

// ScanID names a scan by the time of its request.
func ScanID(at time.Time) string { return at.UTC().Format("20060102T150405.000Z") }

// ScanPhase is the part of a round.
type ScanPhase string

// The phases of a round.
const (
	ScanHolds    ScanPhase = "holds"
	ScanLists    ScanPhase = "lists"
	ScanDelivers ScanPhase = "delivers"
)

// matters reports whether a bridge of a version without scans would break a promise if it continued after f: it would
// deliver events between rows, or write markers for times before the end of the listing.
func (s *Scan) matters(f *Frontier) bool {
	bar, _ := s.Barred()
	return s.Active() || before(f.Resolved, bar)
}

// Barred returns the time below which no marker may be: when the initial scan was done. A scan after it does not change
// that. Always says that there may be none at all yet.
func (s *Scan) Barred() (below string, always bool) {
	switch {
	case s == nil || s.Only:
		return "", false
	case s.Initial:
		return s.Listed, !s.Done
	}
	return s.Bar, false
}

// Started reports whether the bridge has begun with a scan: this one, or one that it follows.
func (s *Scan) Started() bool {
	return s != nil && (s.Initial || s.Bar != "" ||
		slices.ContainsFunc(s.Former, func(former FormerScan) bool { return former.Initial }))
}

// Narrowed returns what the names to list begin with, where those that a filter selects begin with prefix. The rows are
// filtered in any case.
func (s *Scan) Narrowed(prefix string) string {
	if strings.HasPrefix(prefix, s.Prefix) {
		return prefix
	}
	return s.Prefix
}

// Sweeps reports whether a sweep compares the blob of a container and a name.
func (s *Scan) Sweeps(container, name string) bool {
	return (s.Container == "" || s.Container == container) && strings.HasPrefix(name, s.Prefix)
}

// Follow puts into s what stays true of the scan before it.
func (s *Scan) Follow(last *Scan) *Scan {
	if last != nil {
		s.Begin, s.Request = last.Begin, cmp.Or(s.Request, last.Request)
		s.Bar, _ = last.Barred()
		s.Former = append(slices.Clone(last.Former), FormerScan{
			ID: last.ID, Initial: last.Initial, Sweep: last.Sweep, Container: last.Container, Prefix: last.Prefix,
			Requested: last.Requested, Cancelled: last.Cancelled, ScanResult: last.ScanResult,
		})
		s.Former = s.Former[max(0, len(s.Former)-maxFormer):]
	}
	return s
}

// Cancel returns s as it is when it was cancelled, and no lease lists any more.
func (s *Scan) Cancel(at time.Time) *Scan {
	cancelled := *s
	cancelled.Done, cancelled.Cancelled, cancelled.Ended = true, true, at.UTC()
	return &cancelled
}

// before compares two times of documents. All of this century have the same length.
func before(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// Active reports whether there is a scan that is not done.
func (s *Scan) Active() bool { return s != nil && !s.Done }

// Holds reports whether no events may be delivered.
func (s *Scan) Holds() bool { return s.Active() && s.Phase != ScanDelivers }

// Lists reports whether rows may be written.
func (s *Scan) Lists() bool { return s.Active() && s.Phase == ScanLists }

// Listing is what a lease has done for a scan.
type Listing struct {
	ID    string `json:"id"`
	Held  int    `json:"held"`   // the last round in which the lease stopped delivering
	Over  int    `json:"listed"` // the last round in which it has listed
	Done  bool   `json:"done,omitempty"`
	Rows  int64  `json:"rows,omitempty"`    // that were written
	Swept int64  `json:"deleted,omitempty"` // deletions that were written
	// MayDelete is how many more the lease may write in the round for which it holds, if the scan has a limit.
	MayDelete int64 `json:"may_delete,omitempty"`
	// From is the last complete segment when the rows were written: see staleCursor.
	From     source.Segment     `json:"from,omitzero"`
	Progress inventory.Progress `json:"progress"`
	// Judged is the last partition whose keys the sweep has compared with the account. It takes them in their order.
	Judged *Lane `json:"judged,omitempty"`
	// Within is how far the sweep has compared the next partition. A hint: another owner of the lease continues there.
	Within *Within `json:"within,omitempty"`
	// Skipped is how many keys of these partitions are no paths of blobs. LeftOut is why nothing is swept.
	Skipped int64  `json:"skipped,omitempty"`
	LeftOut string `json:"left_out,omitempty"`
	Stopped bool   `json:"stopped,omitempty"` // before a deletion that would have been one too many
}

// Listing returns what the lease has done for a scan, nothing if it has done nothing.
func (c *Cursor) Listing(s *Scan) *Listing {
	if c == nil || c.Scan == nil || c.Scan.ID != s.ID {
		return &Listing{ID: s.ID}
	}
	return c.Scan
}

// owned returns a copy that its holder may change.
func (l *Listing) owned() *Listing {
	if l == nil {
		return nil
	}
	own := *l
	own.Progress = l.Progress.Clone()
	return &own
}

// Owes reports whether a lease has something to do for the frontier's scan: stop delivering, or list.
func (s *State) Owes(lease int32) bool {
	if s.Frontier == nil || !s.Frontier.Scan.Holds() || s.Moving {
		return false
	}
	scan := s.Frontier.Scan
	l := s.Cursors[lease].Listing(scan)
	return l.Held < scan.Round || scan.Lists() && l.Over < scan.Round
}

// RoundOver reports whether no lease has anything to do for the frontier's scan in this phase of its round.
func (s *State) RoundOver() bool {
	for lease := range s.Cursors {
		if s.Owes(int32(lease)) {
			return false
		}
	}
	return true
}

// RowsListed reports whether all leases have listed everything of a scan.
func (s *State) RowsListed(scan *Scan) bool {
	return !slices.ContainsFunc(s.Cursors, func(c *Cursor) bool {
		l := c.Listing(scan)
		return !l.Progress.Done()
	})
}

// ListedAll returns the sum of what all leases have done for a scan; Done says that all is listed.
func (s *State) ListedAll(scan *Scan) Listing {
	sum := Listing{ID: scan.ID, Done: true}
	for _, c := range s.Cursors {
		l := c.Listing(scan)
		sum.Done = sum.Done && l.Done
		sum.Rows += l.Rows
		sum.Swept += l.Swept
		sum.Skipped += l.Skipped
		sum.LeftOut = cmp.Or(sum.LeftOut, l.LeftOut)
		sum.Stopped = sum.Stopped || l.Stopped
		sum.Progress.Rows += l.Progress.Rows
		sum.Progress.Pages += l.Progress.Pages
		sum.Progress.Containers += l.Progress.Containers
		if l.Progress.Served.After(sum.Progress.Served) {
			sum.Progress.Served = l.Progress.Served
		}
	}
	return sum
}

// DeletionsLeft returns how many deletions all leases may still write for a scan that has a limit. A view reads each
// partition of the topic by itself: it may know that a round begins, and not yet what another lease has deleted in the
// one before. So what the coordinator has added up counts.
func (s *State) DeletionsLeft(scan *Scan) int64 {
	return max(scan.MaxDeletions-max(s.ListedAll(scan).Swept, scan.Deleted), 0)
}

// MayDelete returns how many deletions a lease may write in the round for which it holds: an equal part of the rest. If
// there are fewer than leases, they take turns, by the number of the round. No lease writes one before all hold, so all
// divide the same rest. It is for scans that have a limit.
func (s *State) MayDelete(scan *Scan, lease int32) int64 {
	left, leases := s.DeletionsLeft(scan), int64(len(s.Cursors))
	if left < leases && (int64(lease)+int64(scan.Round))%leases < left {
		return 1
	}
	return left / leases
}

// Request asks the coordinator for a scan, or to cancel one. Any client may write it: it needs no lease.
type Request struct {
	Version int `json:"version"`
	// Epoch is that of the state when this was written: a reset voids requests.
	Epoch     int64     `json:"epoch,omitempty"`
	ID        string    `json:"id"` // of the new scan, or of the one to cancel
	Time      time.Time `json:"timestamp"`
	Cancel    bool      `json:"cancel,omitempty"`
	Sweep     bool      `json:"sweep,omitempty"`
	Container string    `json:"container,omitempty"`
	Prefix    string    `json:"prefix,omitempty"`
	// MaxDeletions is that of the scan.
	MaxDeletions int64 `json:"max_deletions,omitempty"`
}

// Requested returns the scan that the frontier has to have next, nil if it has it: a new one, which is requested, or
// the active one, cancelled.
func (s *State) Requested() *Scan {
	r, f := s.request, s.Frontier
	if r == nil || f == nil || r.Epoch < s.born {
		return nil
	}
	switch last := f.Scan; {
	case r.Cancel && last.Active() && last.ID == r.ID && !last.Initial && !last.Cancelled:
		cancelled := *last
		cancelled.Cancelled = true
		return &cancelled
	case !r.Cancel && !last.Active() && (last == nil || last.Request != r.ID):
		next := &Scan{
			ID:        r.ID,
			Request:   r.ID,
			Sweep:     r.Sweep,
			Container: r.Container,
			Prefix:    r.Prefix,
			Requested: r.Time,
			Phase:     ScanHolds,
			Round:     1,

			MaxDeletions: r.MaxDeletions,
		}
		return next.Follow(last)
	}
	return nil
}

// Ask writes a request to the topic of a bridge. The coordinator carries it out when it sees it.
func Ask(ctx context.Context, cl *kgo.Client, topic string, r Request) error {
	r.Version = versionOfScans
	return write(ctx, cl, topic, keyRequest, r)
}

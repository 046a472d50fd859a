package bridge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/resolved"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// firstScan puts the initial scan into f, which begins where the feed ends now. The order is what makes the rows right:
// an event before that end was published before the listing began, so the listing shows what it did. Every other event
// comes after the rows. The listing may show later changes than the end, so no marker is written for a time before the
// listing has ended.
func (k *keeper) firstScan(f *offsets.Frontier) error {
	opts := k.h.opts
	open, err := k.endOfFeed(f)
	if err != nil {
		return err
	}
	updated := opts.Now().Add(-maxInterval - resolved.Slack) // if there is no feed, its first event is later than that
	switch {
	case open != (source.Segment{}):
		f.Completed, updated = source.Before(open), open.Time().Add(-opts.ResolvedSlack)
	case !f.Ends.IsZero():
		updated = f.Ends.Add(-opts.ResolvedSlack)
	}
	f.Scan = &offsets.Scan{
		ID: offsets.ScanID(opts.Now()), Initial: true, Only: opts.InitialScan == ScanOnly, Requested: opts.Now().UTC(),
		Round: 1, Phase: offsets.ScanLists, Begin: open, Updated: envelope.Timestamp{Wall: updated.UnixNano()}.String(),
	}
	k.countContainers(f.Scan)
	return nil
}

// countContainers puts into the frontier's scan how many containers it lists. It is for operators, so a failure is no
// matter: the listing itself reports it.
func (k *keeper) countContainers(scan *offsets.Scan) {
	if k.h.opts.Inventory == nil {
		return
	}
	if scan.Container != "" {
		scan.Containers = 1
		return
	}
	ctx, cancel := context.WithTimeout(k.h.work, countTimeout)
	defer cancel()
	count := 0
	for name, err := range inventory.Names(ctx, k.h.opts.Inventory) {
		if err != nil {
			return
		}
		if k.h.opts.Filter.Selects(name) {
			count++
		}
	}
	scan.Containers = count
}

// countTimeout bounds a request that nothing depends on.
const countTimeout = 10 * time.Second

// openSegments bounds how far before its newest segment the feed may have an open one. All samples have one open
// segment, the newest.
const openSegments = 48 * time.Hour

// endOfFeed returns the first open segment. If there is none, it makes the newest one the completed segment of f.
func (k *keeper) endOfFeed(f *offsets.Frontier) (open source.Segment, err error) {
	feed := k.h.opts.Feed
	err = k.h.retryIdle(k.h.work, func(ctx context.Context) error {
		f.Completed, f.Ends = source.Segment{}, time.Time{}
		var last []source.Segment // not by the watermark: the newest that is there may be years older
		for seg, err := range feed.Segments(ctx, source.Segment{}) {
			if err != nil {
				return fmt.Errorf("looking for the end of the feed: %w", err)
			}
			from := source.SegmentAt(seg.Time().Add(-openSegments))
			last = append(slices.DeleteFunc(last, func(s source.Segment) bool { return s.Compare(from) < 0 }), seg)
		}
		for _, seg := range last {
			m, err := feed.Manifest(ctx, seg)
			if err != nil {
				return fmt.Errorf("looking for the end of the feed: %w", err)
			}
			if !m.Finalized {
				open = seg
				return nil
			}
			f.Completed, f.Ends = seg, m.Begin.Add(m.Interval)
		}
		return nil
	})
	return open, err
}

// moveScan takes up a request for a scan, or moves the frontier's scan to the next phase of its round. Stays says that
// nothing else may happen to the frontier meanwhile.
func (k *keeper) moveScan(f offsets.Frontier, s *offsets.State) (moved, stays bool, err error) {
	if next := s.Requested(); next != nil {
		return true, true, k.takeUp(f, next)
	}
	if !f.Scan.Active() {
		return false, false, nil
	}
	scan := *f.Scan
	f.Scan = &scan
	sum, now := s.ListedAll(&scan), k.h.opts.Now()
	switch {
	case !s.RoundOver(): // also of one that is cancelled: a lease whose view is old may have a page in memory
		return false, true, nil
	case scan.Cancelled || scan.Phase == offsets.ScanLists && sum.Done:
		return true, true, k.endScan(f, s, sum)
	case scan.Phase == offsets.ScanHolds:
		scan.Phase, k.h.listsSince = offsets.ScanLists, now
	case scan.Phase == offsets.ScanLists:
		k.adopt(&f, s)
		scan.Phase, k.h.nextRound = offsets.ScanDelivers, now.Add(k.h.pause(now))
	case now.Before(k.h.nextRound):
		return false, false, nil
	default:
		scan.Phase, scan.Round = offsets.ScanHolds, scan.Round+1
	}
	return true, true, k.h.lease.Commit(k.h.held, nil, &f)
}

// takeUp begins a scan that was requested, or lets the leases end one that is to be cancelled.
func (k *keeper) takeUp(f offsets.Frontier, next *offsets.Scan) error {
	f.Scan = next
	if k.h.opts.Inventory == nil { // the verb knows the feed by its name only
		k.h.opts.Log.Error("a scan is requested, and this feed has no account to list", "scan", next.ID)
		f.Scan = next.Cancel(k.h.opts.Now())
	} else if next.Cancelled {
		k.h.opts.Log.Info("cancelling the scan, as requested", "scan", next.ID)
	} else {
		k.countContainers(next)
		k.h.opts.Log.Info("scanning the account, as requested", "scan", next.ID, "container", next.Container,
			"prefix", next.Prefix, "sweep", next.Sweep)
	}
	return k.h.lease.Commit(k.h.held, nil, &f)
}

// repair begins a scan with a sweep, if lost history is to be answered by one. One that is under way begins again: it
// may have listed what was lost behind it.
func (k *keeper) repair(f *offsets.Frontier) {
	opts := k.h.opts
	if !opts.RescanGaps {
		return
	}
	scan := offsets.Scan{
		ID: offsets.ScanID(opts.Now()), Sweep: true, Requested: opts.Now().UTC(), Phase: offsets.ScanHolds, Round: 1,
	}
	f.Scan = scan.Follow(f.Scan)
	k.countContainers(f.Scan)
	opts.Log.Warn("scanning the account, to repair what the lost history leaves wrong", "scan", f.Scan.ID)
}

// endScan commits that no lease lists any more, and, if the bridge only scans, the marker that ends everything.
func (k *keeper) endScan(f offsets.Frontier, s *offsets.State, sum offsets.Listing) error {
	opts := k.h.opts
	k.adopt(&f, s)
	listed := envelope.Timestamp{Wall: sum.Progress.Served.UnixNano()}
	scan := f.Scan
	scan.Done, scan.Ended, scan.Rows, scan.Deleted = true, opts.Now().UTC(), sum.Rows, sum.Swept
	if !sum.Progress.Served.IsZero() { // else the container to list was not there
		scan.Listed = listed.String()
	}
	opts.Log.Info("the scan is over", "scan", scan.ID, "cancelled", scan.Cancelled, "rows", sum.Rows, "deleted",
		sum.Swept, "containers", sum.Progress.Containers, "pages", sum.Progress.Pages, "took",
		scan.Ended.Sub(scan.Requested))
	if !scan.Only {
		return k.h.lease.Commit(k.h.held, nil, &f)
	}
	f.Current, f.Shards, f.Ended = source.Segment{}, nil, true
	if opts.marks() {
		f.Resolved = scan.Listed
		if opts.Transactional {
			if err := k.mark(&f, listed); err != nil {
				return err
			}
		}
	}
	return k.commitPromise(nil, &f, nothing)
}

// pause is how long events are delivered behind a round: as long as the round lasted, so that half of the time is left
// to each. It has a minimum, since a round costs the leases their open transactions.
func (h *hold) pause(now time.Time) time.Duration {
	return min(max(now.Sub(h.listsSince), minPause), h.opts.ScanRound)
}

const minPause = 500 * time.Millisecond

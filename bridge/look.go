package bridge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/testing/mutation"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// A look reads, and commits nothing. It makes one attempt: what fails is a lookError, which the loop of the tenure
// reports, and then everything begins with a new look at the state. To read a bundle is a part of a look (lookBetween):
// that encodes it, and so may create topics and register schemas.

// lookError is a read that has failed while no transaction was open.
type lookError struct{ error }

func (e *lookError) Unwrap() error { return e.error }

// looked returns a failed look, unless the failure says what to do next: that the tenure or the segment is over, or
// that no other look can help.
func looked(err error) error {
	var before *lookError
	var gap *history.GapError
	if err == nil || errors.Is(err, errReacquire) || errors.Is(err, errPast) || errors.As(err, &gap) ||
		errors.As(err, &before) {
		return err
	}
	return &lookError{err}
}

// beginning is what a first frontier depends on.
type beginning struct {
	topics     map[string]int32
	place      *history.Target // nil: no seek has chosen one
	end        *history.End    // nil: there is no initial scan
	sweep      bool            // the topics hold keys that the account may no longer have
	containers int
	now        time.Time
}

// following is what the feed holds after a segment, and what the markers of the next step need.
type following struct {
	next  source.Segment
	more  bool              // there is a next segment
	ends  bool              // END_TIME is reached
	lost  *history.GapError // nil: retention has removed nothing that was to come next
	gone  bool              // the manifest of the current segment, which its frontier remembers
	gap   bool              // a lease has lost events of the current segment
	last  bool              // the feed holds nothing behind what is completed now
	named *source.Manifest  // of next, if it is to be the current segment

	bundle     *bundle
	topics     map[string]int32 // partitions of the last marker; nil: there is none
	encoders   map[string]*envelope.Encoder
	containers int // to list, if lost history is answered by a scan
}

// lookAtBeginning reads what the first frontier depends on. The order is what makes the rows of an initial scan right:
// the feed's end is read first, the listing begins when the frontier is committed.
func (co *coordinator) lookAtBeginning(s *offsets.State) (in beginning, err error) {
	opts, inst := co.t.opts, co.t.instance
	in.now = opts.Now()
	had := map[string]int32{}
	for _, topic := range inst.catalog.Constant() {
		had[topic] = 0
	}
	if in.topics, err = inst.catalog.Admin.Recount(co.t.work, had); err != nil {
		return in, looked(err)
	}
	if s.Epoch == 0 { // else a reset: that records come again is what it is for
		if err := inst.catalog.RejectRepeats(co.t.work); err != nil {
			return in, looked(err)
		}
	}
	if s.Place != "" {
		place, err := history.ParseTarget(s.Place)
		in.place = &place
		return in, err
	}
	if opts.Feed.scansFirst() {
		if in.sweep, err = inst.catalog.LeavesKeys(co.t.work, in.topics, &opts.Feed.Filter); err != nil {
			return in, looked(err)
		}
		if in.end, err = inst.history.End(co.t.work); err != nil {
			return in, looked(err)
		}
		in.containers = co.lookAtContainers(&offsets.Scan{})
	}
	return in, nil
}

// Overdue is how long after its end a segment may be open before the coordinator looks whether later ones wait for it,
// and how often it looks. Azure finalizes a segment some minutes after its end.
const Overdue = 30 * time.Minute

// lookForDelay returns when the current segment of f ended, if it is open for long after that although there are later
// ones; else zero. The last segment of an idle account may be open for days, so it is not asked for each time.
func (co *coordinator) lookForDelay(f *offsets.Frontier, m source.Manifest) (since time.Time, err error) {
	now, ends := co.t.opts.Now(), m.Begin.Add(m.Interval)
	switch {
	case m.Finalized || now.Sub(ends) < Overdue:
		return time.Time{}, nil
	case time.Since(co.lookedForDelay) < Overdue:
		return f.OpenSince, nil
	}
	_, more, err := co.t.nextSegment(f.Current)
	if err != nil {
		return time.Time{}, err
	}
	if co.lookedForDelay = time.Now(); !more {
		return time.Time{}, nil
	}
	return ends, nil
}

// lookAfter reads what follows the current segment of f, which is the one of m and is complete.
func (co *coordinator) lookAfter(
	f *offsets.Frontier, m source.Manifest, gone bool, s *offsets.State,
) (in following, err error) {
	t, end := co.t, co.t.opts.end()
	if in.next, in.more, err = t.nextSegment(f.Current); err != nil {
		return in, err
	}
	listed := time.Now()
	if mutation.Early {
		listed = time.Time{}
	}
	in.gone, in.last = gone, !in.more
	in.gap = slices.ContainsFunc(s.Cursors, func(c *offsets.Cursor) bool {
		return c != nil && c.Gap && c.Finished(m.Segment)
	})
	in.ends = end.Reached(m.Begin.Add(m.Interval))
	beyond := in.more && end.Reached(in.next.Time())
	names := false
	switch {
	case !in.more || in.ends:
	case gone:
		names = in.gap // the gap ends at the next segment that is there; else lookBetween would find the loss again
	case beyond || !co.bundler.starts(f.Current):
		// I8: retention may have removed this segment, and others behind it, while it was delivered. The listed one is
		// the next only if this segment was still there after the listing. Else none is named, and lookBetween sees.
		if names, err = t.isThere(f.Current, listed); err != nil {
			return in, err
		}
	}
	in.ends = in.ends || names && beyond
	if names && !in.ends {
		if in.named, err = co.lookAtNext(in.next); err != nil {
			return in, err
		}
	}
	if in.gap {
		in.containers = co.lookAtRepair()
	}
	at := co.rules.promise(m, co.t.epoch.promised, in.ends)
	return in, co.lookAtMarkers(&in, f, !co.rules.barred(f, at), co.rules.own(f, m, in.ends) == at)
}

// lookBetween reads what follows the completed segment of f, between two segments.
func (co *coordinator) lookBetween(f *offsets.Frontier) (in following, err error) {
	if co.bundler.readsAhead(f) { // then the listing is behind us
		in.bundle = co.bundler.gather(f)
	}
	if in.bundle == nil {
		if in.next, in.more, err = co.t.nextSegment(f.Completed); err != nil || !in.more {
			return in, err
		}
		if in.ends = co.t.opts.end().Reached(in.next.Time()); !in.ends {
			in.bundle = co.bundler.gather(f)
		}
	}
	// I8: behind the listing, and behind the reading of a bundle. While the completed segment exists, none between the
	// two was removed before the reading ahead listed what comes next.
	if in.bundle != nil {
		in.next, in.more = in.bundle.segments[0].small.Manifest.Segment, true
		in.lost, in.last, err = co.bundler.around(f, in.bundle)
	} else {
		in.lost, err = co.t.lostSince(f)
	}
	switch {
	case err != nil:
		return in, err
	case in.lost != nil: // a loss is recorded first: a bundle that follows it is for the next step
		co.bundler.drop()
		in.bundle, in.containers = nil, co.lookAtRepair()
	case in.bundle != nil:
		last := in.bundle.segments[len(in.bundle.segments)-1]
		return in, co.lookAtMarkers(&in, &in.bundle.frontier, in.bundle.marks(), last.own == last.resolved)
	}
	if in.ends {
		marks := co.rules.end.Compare(co.t.epoch.promised) > 0 && !co.rules.barred(f, co.rules.end)
		return in, co.lookAtMarkers(&in, f, marks, marks)
	}
	in.named, err = co.lookAtNext(in.next)
	return in, err
}

// lookAtNext reads the manifest of the segment that is to be named; nil if retention has removed it meanwhile.
func (co *coordinator) lookAtNext(next source.Segment) (*source.Manifest, error) {
	m, err := co.t.manifest(co.t.work, next)
	var gap *history.GapError
	if errors.As(err, &gap) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// lookAtMarkers reads which partitions there are for a marker (I6: none misses it), and makes the encoders. I5: keys
// move to other partitions only across a marker, so f takes new counts in a transaction that writes one to every
// partition, and in no other. Reached says that all is delivered up to the marker. Else it is in a stretch that a seek
// repeats, and records below it follow: the header "seek" has announced them, but not in partitions that were added
// later (I6).
func (co *coordinator) lookAtMarkers(in *following, f *offsets.Frontier, marks, reached bool) (err error) {
	if !marks {
		return nil
	}
	in.topics = maps.Clone(f.Topics)
	if len(in.topics) > 0 && reached {
		if in.topics, err = co.t.instance.catalog.Admin.Recount(co.t.work, in.topics); err != nil {
			return looked(err)
		}
	}
	in.encoders, err = co.encodersOf(in.topics)
	return err
}

func (co *coordinator) encodersOf(topics map[string]int32) (map[string]*envelope.Encoder, error) {
	encoders := map[string]*envelope.Encoder{}
	for topic := range topics {
		var err error
		if encoders[topic], err = co.t.instance.catalog.Encoder(co.t.work, topic); err != nil {
			return nil, looked(err)
		}
	}
	return encoders, nil
}

// lostSince looks, between two segments, whether the last complete one is gone by now: then those between it and the
// oldest there is may be gone, too, unread.
func (t *tenure) lostSince(f *offsets.Frontier) (*history.GapError, error) {
	err := t.instance.history.LostAfter(t.work, f, t.epoch.filter.From)
	var gap *history.GapError
	if errors.As(err, &gap) {
		return gap, nil
	}
	return nil, looked(err)
}

// lookAtRepair counts the containers of the scan that answers lost history, if one does.
func (co *coordinator) lookAtRepair() int {
	if !co.rules.rescans {
		return 0
	}
	return co.lookAtContainers(&offsets.Scan{})
}

// lookAtContainers returns how many containers a scan lists.
func (co *coordinator) lookAtContainers(scan *offsets.Scan) int {
	if co.t.opts.Feed.Inventory == nil {
		return 0
	}
	if scan.Container != "" {
		return 1
	}
	return inventory.Count(co.t.work, co.t.opts.Feed.Inventory, co.t.opts.Feed.Filter.Selects)
}

// manifest reads the manifest of seg. The error is a GapError if retention has removed it.
func (t *tenure) manifest(ctx context.Context, seg source.Segment) (source.Manifest, error) {
	m, err := t.instance.history.Manifest(ctx, seg, time.Time{})
	if err != nil {
		err = t.instance.history.Lost(ctx, seg, err)
	}
	return m, lookedWithin(ctx, err)
}

// current reads the manifest of the current segment in s. If retention has removed it, current returns the loss, and
// the manifest as the frontier remembers it. It returns errPast if the state gives another task meanwhile.
func (t *tenure) current(do task, s *offsets.State) (m source.Manifest, gap *history.GapError, err error) {
	ctx, done := t.during(do)
	defer done()
	m, err = t.manifest(ctx, s.Frontier.Current)
	if errors.As(err, &gap) {
		return remembered(s, t.instance.leases), gap, nil
	}
	return m, nil, err
}

// nextSegment returns the segment after seg.
func (t *tenure) nextSegment(seg source.Segment) (next source.Segment, ok bool, err error) {
	next, ok, err = t.instance.history.Next(t.work, seg)
	return next, ok, looked(err)
}

// isThere reports whether the manifest of seg exists, by a read after a moment. If it does not exist, its chunks may be
// gone, too, and a listing before that moment proves nothing.
func (t *tenure) isThere(seg source.Segment, moment time.Time) (there bool, err error) {
	_, err = t.instance.history.Manifest(t.work, seg, moment)
	if errors.Is(err, source.ErrNotFound) {
		return false, nil
	}
	return err == nil, looked(err)
}

// lookedWithin is looked, for a look that may be over: then it returns why.
func lookedWithin(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return looked(err)
}

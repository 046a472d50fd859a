package bridge

import (
	"maps"
	"slices"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/resolved"
	"blobfeed/source"
)

// rules decide what becomes of the frontier. They are values from the settings, and their methods are pure: each takes
// a frontier and what was read, and returns the change. A few that help put their part into the frontier or the change
// that they are given: it is the caller's own.
type rules struct {
	feed    string
	frozen  map[string]string
	leases  int
	scan    InitialScan
	start   history.Start
	end     envelope.Timestamp // zero: none
	slack   time.Duration
	marks   bool // markers are written
	exact   bool // with transactions: a marker is in that of its frontier
	skips   bool // delivery continues behind lost history
	rescans bool // and lost history is answered by a scan
}

func newRules(o *Options, leases int) rules {
	return rules{
		feed: o.Feed.ID, scan: o.Feed.InitialScan, start: o.Feed.Start, end: o.Feed.End, leases: leases,
		frozen: o.Records.Frozen, slack: o.Records.ResolvedSlack, marks: o.marks(), exact: o.Kafka.Transactional,
		skips: o.Feed.SkipGaps, rescans: o.Feed.RescanGaps,
	}
}

// barred reports whether no marker may be written for a time: markers are off, or an initial scan has listed the
// account at a later one (I6).
func (r *rules) barred(f *offsets.Frontier, at envelope.Timestamp) bool {
	return !r.marks || resolved.Barred(at, f.Scan, r.slack)
}

// promise returns what is resolved when the segment of m is complete, and before was promised earlier. Ends says that
// nothing follows: nothing above the end was written, and nothing more comes. A seek may repeat the end.
func (r *rules) promise(m source.Manifest, before envelope.Timestamp, ends bool) envelope.Timestamp {
	switch {
	case !ends:
		return resolved.After(m, r.slack, before)
	case r.end.Compare(before) < 0:
		return before
	}
	return r.end
}

// own returns what the segment of m resolves by itself, whatever was promised before a seek. It is what topics may be
// told that are found in what the seek repeats. For them, it never falls.
func (r *rules) own(f *offsets.Frontier, m source.Manifest, ends bool) envelope.Timestamp {
	var before envelope.Timestamp
	if f.Repeat != nil {
		before, _ = history.ParseStored(f.Repeat.Resolved)
	}
	return r.promise(m, before, ends)
}

// passes puts into f that the segment of m is complete. Marker is the time of the marker behind it, zero if none may be
// written, and own what the segment resolves by itself.
func (r *rules) passes(f *offsets.Frontier, m source.Manifest, marker, own envelope.Timestamp) {
	if f.Seek != nil { // retention may have deleted the segments between its place and this one
		f.Since = source.Before(m.Segment)
	}
	f.Completed, f.Ends, f.Seek = m.Segment, m.Begin.Add(m.Interval), nil
	if marker == (envelope.Timestamp{}) {
		return
	}
	f.Resolved = marker.String()
	switch {
	case own.Compare(marker) >= 0:
		f.Repeat = nil
	case f.Repeat != nil:
		f.Repeat = &offsets.Repeat{Topics: f.Repeat.Topics, Resolved: own.String()}
	}
}

// adopt puts into f the topics that leases have found (I5, I6): their cursors forget them in the next segment. (It is
// not epochView.adopt, by which a tenure takes over a frontier that was read.)
func adopt(f *offsets.Frontier, s *offsets.State) {
	for _, c := range s.Cursors {
		if c != nil {
			f.Adopt(c.Pins)
		}
	}
}

// begins returns the frontier of a first start. With an initial scan, delivery begins where the feed ends now. An event
// before that end was published before the listing begins, so the listing shows what it did. Every other event comes
// behind the rows. The listing may show later changes than the end, so no marker is written for a time before the
// listing has ended.
func (r *rules) begins(s *offsets.State, in beginning) *change {
	f := offsets.Frontier{
		Epoch: s.Epoch, Born: s.Epoch, Leases: r.leases, Feed: r.feed, Settings: r.frozen, Topics: in.topics,
	}
	switch {
	case in.place != nil:
		in.place.First(&f)
		if r.scan == ScanYes || r.scan == ScanOnly { // the seek is in place of it
			scan := offsets.Scan{ID: offsets.ScanID(in.now), Initial: true, Requested: in.now.UTC(), Round: 1}
			f.Scan = scan.Cancel(in.now)
		}
	case in.end == nil:
		f.Start, f.Completed = r.start.Resolve(in.now)
	default:
		f.Completed, f.Ends = in.end.Completed, in.end.Ends
		updated := in.now.Add(-history.MaxInterval - resolved.Slack) // without a feed: its first event is later
		switch open := in.end.Open; {
		case open != (source.Segment{}):
			f.Completed, updated = source.Before(open), open.Time().Add(-r.slack)
		case !f.Ends.IsZero():
			updated = f.Ends.Add(-r.slack)
		}
		f.Scan = &offsets.Scan{
			ID: offsets.ScanID(in.now), Initial: true, Sweep: in.sweep, Only: r.scan == ScanOnly,
			Requested: in.now.UTC(), Round: 1,
			Phase: offsets.ScanLists, Begin: in.end.Open, Containers: in.containers,
			Updated: envelope.Timestamp{Wall: updated.UnixNano()}.String(),
		}
	}
	f.Since = f.Completed
	return &change{frontier: f}
}

// repeats reports whether the end of a move repeats the last marker: it announces a seek.
func (r *rules) repeats(f *offsets.Frontier, promised envelope.Timestamp) bool {
	return f.Seek != nil && !f.Seek.Told && r.marks && promised != (envelope.Timestamp{})
}

// moves returns the end of a move. Every other lease is fenced.
func (r *rules) moves(f offsets.Frontier, promised envelope.Timestamp, in following) *change {
	c := &change{encoders: in.encoders}
	if r.repeats(&f, promised) {
		again := offsets.Repeat{}
		if f.Repeat != nil {
			again = *f.Repeat
		}
		own, _ := history.ParseStored(again.Resolved)
		c.parts = part{marker: promised, topics: in.topics, seek: f.Seek}.split(own, again.Topics)
		before := f.Topics
		f.Topics, f.Repeat = maps.Clone(in.topics), &again
		for _, topic := range again.Topics {
			if again.Resolved == "" { // I5: it gets no marker
				f.Topics[topic] = before[topic]
			}
		}
	}
	if f.Seek != nil {
		told := *f.Seek
		told.Told = true
		f.Seek = &told
	}
	f.Moving = false
	c.frontier = f
	return c
}

// advances returns the change between two segments: the end of the feed, a bundle, or the name of the next segment. A
// segment that retention removed before it could be named has no manifest: the next look finds what is lost.
func (r *rules) advances(f offsets.Frontier, promised envelope.Timestamp, in following, now time.Time) *change {
	c := &change{}
	if in.lost != nil {
		r.loses(&f, in.lost.At, in.lost.Oldest, in.containers, now, c)
		c.report(func(o *Options) { o.reportLoss(0, in.lost) })
	}
	switch {
	case in.ends:
		r.endsFeed(c, f, in, now)
	case in.bundle != nil:
		r.bundles(c, in)
	default:
		c.frontier, c.named = f, in.named
	}
	return c
}

// bundles makes c the change that delivers a bundle.
func (r *rules) bundles(c *change, in following) {
	c.frontier, c.encoders, c.passes = in.bundle.frontier, in.encoders, true
	for i, g := range in.bundle.segments {
		m, last := g.small.Manifest, i == len(in.bundle.segments)-1
		if last && in.topics != nil {
			g.topics, c.frontier.Topics = in.topics, in.topics // I5: the counts may change behind the last marker
		}
		done := Completion{Segment: m.Segment, Resolved: g.resolved, Last: last && in.last}
		p := part{segment: m.Segment, blocks: g.small.Blocks, topics: g.topics}
		if r.exact || last { // else one set of markers is written, behind all records
			p.marker = g.resolved
		}
		if p.marked() {
			done.Markers = resolved.Count(g.topics)
		}
		c.parts = append(c.parts, p.split(g.own, g.found)...)
		c.report(func(o *Options) { o.Observer.Completed(done) })
	}
}

// grows returns the change by what the manifest of the current segment says now, nil if that is nothing new: an open
// segment may get shards, and be open for long.
func (r *rules) grows(f offsets.Frontier, m source.Manifest, since time.Time) *change {
	ends := m.Begin.Add(m.Interval)
	if slices.Equal(m.Shards, f.Shards) && ends.Equal(f.Ends) && since.Equal(f.OpenSince) {
		return nil
	}
	c := &change{}
	if !since.IsZero() && f.OpenSince.IsZero() {
		c.report(func(o *Options) {
			o.Log.Warn("a segment is still open although later ones exist; they wait until Azure finalizes it",
				"segment", m.Segment, "ended", ends)
		})
	}
	f.Shards, f.Ends, f.OpenSince = m.Shards, ends, since
	c.frontier = f
	return c
}

// completes returns the change behind the current segment, the one of m (I6: no marker without the frontier that holds
// it, none to a part of the partitions).
func (r *rules) completes(
	f offsets.Frontier, m source.Manifest, promised envelope.Timestamp, in following, now time.Time,
) *change {
	c := &change{encoders: in.encoders, passes: true, named: in.named}
	if in.gap {
		to := m.Segment
		if in.gone && in.more && !in.ends {
			to = in.next
		}
		r.loses(&f, m.Segment, to, in.containers, now, c)
	}
	f.Current, f.Shards, f.OpenSince = source.Segment{}, nil, time.Time{}
	at := r.promise(m, promised, in.ends)
	if in.topics == nil { // I6: no marker before the scan ended
		at = envelope.Timestamp{}
	} else {
		f.Topics = in.topics
	}
	own := r.own(&f, m, in.ends)
	r.passes(&f, m, at, own)
	done := Completion{Segment: m.Segment, Resolved: at, Last: in.last}
	if in.topics != nil {
		done.Markers = resolved.Count(in.topics)
	}
	if in.ends {
		r.finish(&f, now, c)
	}
	c.parts = part{segment: m.Segment, marker: at, topics: in.topics}.split(own, f.Found())
	c.report(func(o *Options) { o.Observer.Completed(done) })
	c.frontier = f
	return c
}

// endsFeed makes c the last frontier, with a marker for the end time to every partition.
func (r *rules) endsFeed(c *change, f offsets.Frontier, in following, now time.Time) {
	c.encoders, c.passes = in.encoders, true
	if in.topics != nil {
		f.Topics, f.Resolved, f.Repeat = in.topics, r.end.String(), nil
		c.parts = []part{{marker: r.end, topics: in.topics}}
	}
	r.finish(&f, now, c)
	c.frontier = f
}

// finish ends the delivery. It cancels a scan, whose rows would be newer than the end.
func (r *rules) finish(f *offsets.Frontier, now time.Time, c *change) {
	f.Ended = true
	if !f.Scan.Active() {
		return
	}
	f.Scan = f.Scan.Cancel(now)
	c.report(func(o *Options) {
		o.Log.Warn("the feed is delivered to its end time; the scan is cancelled", "scan", f.Scan.ID)
	})
}

// loses records lost history in f, for the next marker, and begins the scan that repairs what it leaves wrong. A scan
// that is under way begins again: it may have listed what was lost behind it.
func (r *rules) loses(
	f *offsets.Frontier, from, to source.Segment, containers int, now time.Time, c *change,
) {
	gap := offsets.Gap{From: from, To: to}
	if f.Gap != nil {
		gap.From = f.Gap.From
	} else {
		f.Gaps++
	}
	f.Gap = &gap // the one before may be of a state that others read
	if !r.rescans {
		return
	}
	scan := offsets.Scan{
		ID: offsets.ScanID(now), Sweep: true, Requested: now.UTC(), Phase: offsets.ScanHolds, Round: 1,
		Containers: containers,
	}
	f.Scan = scan.Follow(f.Scan)
	c.report(func(o *Options) {
		o.Log.Warn("scanning the account, to repair what the lost history leaves wrong", "scan", scan.ID)
	})
}

// rounds is when the phases of a scan's rounds change. It is not in the state: another owner of lease 0 begins with a
// short pause.
type rounds struct{ listsSince, next time.Time }

// minPause is the shortest pause: in each round the leases commit early and start their passes again.
const minPause = 500 * time.Millisecond

// pause is how long events are delivered behind a round: as long as the round lasted, so that half of the time is left
// to each. The round of an initial scan, or one that another owner began, says nothing.
func (r *rounds) pause(now time.Time) time.Duration {
	if r.listsSince.IsZero() {
		return minPause
	}
	return min(max(now.Sub(r.listsSince), minPause), maxRound)
}

// turns returns the change that moves the scan of f to the next phase, nil if there is none now, and the pace after it.
// Stays says that nothing else may happen to the frontier meanwhile.
func (r *rules) turns(
	f offsets.Frontier, s *offsets.State, pace rounds, now time.Time,
) (c *change, _ rounds, stays bool) {
	scan := *f.Scan
	f.Scan = &scan
	sum := s.ListedAll(&scan)
	switch {
	case !s.RoundOver(): // also of one that is cancelled: a lease whose view is old may have a page in memory
		return nil, pace, true
	case scan.Cancelled || scan.Phase == offsets.ScanLists && sum.Done:
		return r.endsScan(f, s, sum, now), pace, true
	case scan.Phase == offsets.ScanHolds:
		scan.Phase, pace.listsSince = offsets.ScanLists, now
	case scan.Phase == offsets.ScanLists:
		adopt(&f, s)
		scan.Deleted = max(scan.Deleted, sum.Swept) // each lease has committed that its round is over
		scan.Phase, pace.next = offsets.ScanDelivers, now.Add(pace.pause(now))
	case now.Before(pace.next):
		return nil, pace, false
	default:
		scan.Phase, scan.Round = offsets.ScanHolds, scan.Round+1
	}
	return &change{frontier: f}, pace, true
}

// endsScan returns that no lease lists any more, and, if the bridge only scans, the marker that ends everything.
func (r *rules) endsScan(f offsets.Frontier, s *offsets.State, sum offsets.Listing, now time.Time) *change {
	adopt(&f, s)
	scan := f.Scan
	scan.Done = true
	scan.ScanResult = offsets.ScanResult{
		Ended: now.UTC(), Rows: sum.Rows, Deleted: sum.Swept, LeftOut: sum.LeftOut, Skipped: sum.Skipped,
		Stopped: sum.Stopped,
	}
	listed := envelope.Timestamp{Wall: sum.Progress.Served.UnixNano()}
	if !sum.Progress.Served.IsZero() { // else the container to list was not there
		scan.Listed = listed.String()
	}
	c := &change{}
	c.report(func(o *Options) {
		o.Log.Info("the scan is over", "scan", scan.ID, "cancelled", scan.Cancelled, "rows", sum.Rows, "deleted",
			sum.Swept, "containers", sum.Progress.Containers, "pages", sum.Progress.Pages, "skipped",
			sum.Skipped, "sweep_left_out", sum.LeftOut, "stopped", sum.Stopped, "seconds",
			scan.Ended.Sub(scan.Requested).Seconds())
	})
	if scan.Only {
		f.Current, f.Shards, f.Ended = source.Segment{}, nil, true
		c.passes = true
		if r.marks && scan.Listed != "" {
			f.Resolved = scan.Listed
			c.parts = []part{{marker: listed, topics: f.Topics}}
		}
	}
	c.frontier = f
	return c
}

// takesUp returns the frontier with a scan that was requested, or with one that the leases are to end. Account says
// whether there is one to list: the verb knows the feed by its name only.
func (r *rules) takesUp(f offsets.Frontier, scan *offsets.Scan, account bool, now time.Time) *change {
	c := &change{frontier: f}
	c.frontier.Scan = scan
	switch {
	case !account:
		c.frontier.Scan = scan.Cancel(now)
		c.report(func(o *Options) {
			o.Log.Error("a scan is requested, and this feed has no account to list", "scan", scan.ID)
		})
	case scan.Cancelled:
		c.report(func(o *Options) { o.Log.Info("cancelling the scan, as requested", "scan", scan.ID) })
	default:
		c.report(func(o *Options) {
			o.Log.Info("scanning the account, as requested", "scan", scan.ID, "container", scan.Container,
				"prefix", scan.Prefix, "sweep", scan.Sweep)
		})
	}
	return c
}

// remembered returns the manifest of the current segment as the frontier remembers it, after retention has removed it.
// It names a shard for each lease that has to say that it is done: those of the segment, and those that began it.
func remembered(s *offsets.State, leases int) source.Manifest {
	f := s.Frontier
	m := source.Manifest{Segment: f.Current, Begin: f.Current.Time(), Finalized: true, Shards: slices.Clone(f.Shards)}
	if f.Ends.After(m.Begin) {
		m.Interval = f.Ends.Sub(m.Begin)
	}
	for p, c := range s.Cursors {
		began := c != nil && c.Segment == f.Current || f.Shards == nil // by an older version: any lease may have some
		if began && len(shardsOf(p, leases, m)) == 0 {
			m.Shards = append(m.Shards, p)
		}
	}
	return m
}

// shardsOf returns the shards of a segment that belong to a lease.
func shardsOf(lease, leases int, m source.Manifest) []int {
	return slices.DeleteFunc(slices.Clone(m.Shards), func(shard int) bool { return shard%leases != lease })
}

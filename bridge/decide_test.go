package bridge

import (
	"maps"
	"testing"
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/source"
)

// A decision needs no broker and no storage: these tables say what becomes of a frontier, and of which reading.

var (
	hourOne = source.Manifest{Segment: source.SegmentAt(hourOf(1)), Begin: hourOf(1), Interval: time.Hour, Finalized: true}
	hourTwo = source.Manifest{Segment: source.SegmentAt(hourOf(2)), Begin: hourOf(2), Interval: time.Hour}
	before4 = map[string]int32{topic: 4}
	after7  = map[string]int32{topic: 7}
	decided = hourOf(9)
)

func at(hour int) envelope.Timestamp { return envelope.Timestamp{Wall: hourOf(hour).UnixNano()} }

// ruled returns rules with markers and transactions, and no slack.
func ruled(change func(*rules)) *rules {
	r := &rules{leases: 2, marks: true, exact: true, skips: true}
	if change != nil {
		change(r)
	}
	return r
}

func TestCompletes(t *testing.T) {
	listing := &offsets.Scan{ID: "first", Initial: true}
	for name, c := range map[string]struct {
		rules    func(*rules)
		frontier func(*offsets.Frontier)
		in       following
		promised envelope.Timestamp
		check    func(t *testing.T, c *change)
	}{
		"the next segment is named behind the marker": {
			in: following{more: true, next: hourTwo.Segment, named: &hourTwo, topics: before4},
			check: func(t *testing.T, c *change) {
				if c.named != &hourTwo || c.frontier.Current != (source.Segment{}) || c.frontier.Shards != nil {
					t.Errorf("current %s, then %v", c.frontier.Current, c.named)
				}
			},
		},
		"the frontier holds what the marker says": {
			in: following{topics: before4},
			check: func(t *testing.T, c *change) {
				if f := c.frontier; f.Completed != hourOne.Segment || f.Resolved != at(2).String() ||
					!f.Ends.Equal(hourOf(2)) || c.parts[0].marker != at(2) || !c.passes {
					t.Errorf("%+v, marker %v", f, c.parts[0].marker)
				}
			},
		},
		"new partitions come with the marker": {
			in: following{topics: after7},
			check: func(t *testing.T, c *change) {
				if !maps.Equal(c.frontier.Topics, after7) || !maps.Equal(c.parts[0].topics, after7) {
					t.Errorf("%v, marker to %v", c.frontier.Topics, c.parts[0].topics)
				}
			},
		},
		"and not without one": {
			in: following{},
			check: func(t *testing.T, c *change) {
				if !maps.Equal(c.frontier.Topics, before4) || c.parts[0].marked() || c.frontier.Resolved != "" {
					t.Errorf("%v, %q", c.frontier.Topics, c.frontier.Resolved)
				}
			},
		},
		"a promise does not fall": {
			in: following{topics: before4}, promised: at(5),
			check: func(t *testing.T, c *change) {
				if c.parts[0].marker != at(5) {
					t.Errorf("the marker is %v", c.parts[0].marker)
				}
			},
		},
		"a gap ends at the next segment that is there": {
			in: following{gap: true, gone: true, more: true, next: hourTwo.Segment, named: &hourTwo, topics: before4},
			check: func(t *testing.T, c *change) {
				if g := c.frontier.Gap; g == nil || g.From != hourOne.Segment || g.To != hourTwo.Segment || c.frontier.Gaps != 1 {
					t.Errorf("gap %+v, %d", g, c.frontier.Gaps)
				}
			},
		},
		"a gap within the segment ends there": {
			in: following{gap: true, more: true, next: hourTwo.Segment, topics: before4},
			check: func(t *testing.T, c *change) {
				if g := c.frontier.Gap; g == nil || g.To != hourOne.Segment {
					t.Errorf("gap %+v", g)
				}
			},
		},
		"a gap that no marker has told of becomes longer": {
			frontier: func(f *offsets.Frontier) {
				f.Gaps, f.Gap = 1, &offsets.Gap{From: source.SegmentAt(hourOf(0)), To: hourOne.Segment}
			},
			in: following{gap: true, gone: true, more: true, next: hourTwo.Segment},
			check: func(t *testing.T, c *change) {
				g := c.frontier.Gap
				if g.From != source.SegmentAt(hourOf(0)) || g.To != hourTwo.Segment || c.frontier.Gaps != 1 {
					t.Errorf("gap %+v, %d", g, c.frontier.Gaps)
				}
			},
		},
		"lost history begins a scan": {
			rules: func(r *rules) { r.rescans = true },
			in:    following{gap: true, containers: 3, topics: before4},
			check: func(t *testing.T, c *change) {
				if s := c.frontier.Scan; s == nil || !s.Sweep || s.Phase != offsets.ScanHolds || s.Containers != 3 {
					t.Errorf("%+v", s)
				}
			},
		},
		"lost history begins no scan where none is wanted": {
			in: following{gap: true, topics: before4},
			check: func(t *testing.T, c *change) {
				if c.frontier.Scan != nil {
					t.Errorf("%+v", c.frontier.Scan)
				}
			},
		},
		"the end's marker is the end": {
			rules: func(r *rules) { r.end = at(3) },
			in:    following{ends: true, topics: before4},
			check: func(t *testing.T, c *change) {
				if c.parts[0].marker != at(3) || !c.frontier.Ended {
					t.Errorf("%v, ended %t", c.parts[0].marker, c.frontier.Ended)
				}
			},
		},
		"the end cancels a scan": {
			rules:    func(r *rules) { r.end = at(3) },
			frontier: func(f *offsets.Frontier) { f.Scan = &offsets.Scan{ID: "later", Phase: offsets.ScanLists} },
			in:       following{ends: true, topics: before4},
			check: func(t *testing.T, c *change) {
				if !c.frontier.Scan.Cancelled || !c.frontier.Scan.Done {
					t.Errorf("%+v", c.frontier.Scan)
				}
			},
		},
		"a seek is over": {
			frontier: func(f *offsets.Frontier) { f.Seek = &offsets.Seek{Told: true} },
			in:       following{topics: before4},
			check: func(t *testing.T, c *change) {
				if c.frontier.Seek != nil {
					t.Errorf("%+v", c.frontier.Seek)
				}
			},
		},
		"the scan before it stays": {
			frontier: func(f *offsets.Frontier) { f.Scan = listing },
			in:       following{},
			check: func(t *testing.T, c *change) {
				if c.frontier.Scan != listing {
					t.Errorf("%+v", c.frontier.Scan)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := offsets.Frontier{Current: hourOne.Segment, Shards: []int{0, 1}, Topics: before4}
			if c.frontier != nil {
				c.frontier(&f)
			}
			c.check(t, ruled(c.rules).completes(f, hourOne, c.promised, c.in, decided))
		})
	}
}

// No marker may be written where markers are off, or while an initial scan has listed a later account.
func TestBarredMarkers(t *testing.T) {
	r, f := ruled(nil), &offsets.Frontier{}
	if r.barred(f, at(1)) {
		t.Error("barred without a reason")
	}
	f.Scan = &offsets.Scan{Initial: true}
	if !r.barred(f, at(99)) {
		t.Error("a marker while the account is listed")
	}
	f.Scan = &offsets.Scan{Initial: true, Done: true, Listed: at(5).String()}
	if !r.barred(f, at(4)) || r.barred(f, at(6)) {
		t.Error("the end of the listing is not the bar")
	}
	if off := ruled(func(r *rules) { r.marks = false }); !off.barred(&offsets.Frontier{}, at(1)) {
		t.Error("markers are off")
	}
}

// The end of a move repeats the last marker with the seek, and takes new partitions only then.
func TestMoves(t *testing.T) {
	seek := &offsets.Seek{To: "earliest"}
	for name, c := range map[string]struct {
		seek     *offsets.Seek
		promised envelope.Timestamp
		marks    bool
		want     int32
	}{
		"a seek behind a marker":  {seek, at(5), true, 7},
		"a seek before the first": {seek, envelope.Timestamp{}, false, 4},
		"a repair":                {nil, at(5), false, 4},
		"a seek that is told":     {&offsets.Seek{Told: true}, at(5), false, 4},
	} {
		r := ruled(nil)
		f := offsets.Frontier{Moving: true, Seek: c.seek, Topics: before4}
		if r.repeats(&f, c.promised) != c.marks {
			t.Errorf("%s: it repeats the marker: %t", name, !c.marks)
		}
		got := r.moves(f, c.promised, following{topics: after7})
		if got.frontier.Moving || got.frontier.Topics[topic] != c.want || (len(got.parts) == 1) != c.marks || got.passes {
			t.Errorf("%s: %+v", name, got)
		}
		if c.marks && (got.parts[0].seek != seek || got.parts[0].marker != c.promised) {
			t.Errorf("%s: the marker is %+v", name, got.parts[0])
		}
		if c.seek != nil && !got.frontier.Seek.Told || seek.Told {
			t.Errorf("%s: told %t, and in the former state %t", name, got.frontier.Seek.Told, seek.Told)
		}
	}
}

// Topics that are found in what a seek repeats have markers of their own, until these have reached the last one. They
// never fall, also over another seek, which takes new partitions only for topics that have a marker.
func TestMarkersOfFoundTopics(t *testing.T) {
	const found = "found"
	r, both := ruled(nil), map[string]int32{topic: 4, found: 4}
	own := r.own(&offsets.Frontier{}, hourOne, false)
	for name, c := range map[string]struct {
		promised, had envelope.Timestamp
		theirs        envelope.Timestamp
		partitions    int32 // in use behind another seek
		told          envelope.Timestamp
	}{
		"the first marker":         {promised: at(9), theirs: own, partitions: 4},
		"another one":              {promised: at(9), had: at(1), theirs: own, partitions: 7, told: at(1)},
		"one that would fall":      {promised: at(9), had: at(8), theirs: at(8), partitions: 7, told: at(8)},
		"the last one is reached":  {promised: own},
		"the last one is exceeded": {promised: at(1)},
	} {
		f := offsets.Frontier{Current: hourOne.Segment, Topics: both, Repeat: &offsets.Repeat{Topics: []string{found}}}
		if c.had != (envelope.Timestamp{}) {
			f.Repeat.Resolved = c.had.String()
		}
		got := r.completes(f, hourOne, c.promised, following{topics: both}, decided)
		last, all := got.parts[len(got.parts)-1], got.frontier.Repeat == nil
		switch {
		case c.theirs == (envelope.Timestamp{}):
			if !all || len(got.parts) != 1 || !maps.Equal(last.topics, both) {
				t.Errorf("%s: %+v, %+v", name, got.parts, got.frontier.Repeat)
			}
			continue
		case all || got.frontier.Repeat.Resolved != c.theirs.String() || last.marker != c.theirs ||
			!maps.Equal(last.topics, map[string]int32{found: 4}) || !maps.Equal(got.parts[0].topics, before4) ||
			got.parts[0].marker != c.promised:
			t.Errorf("%s: %+v, %+v", name, got.parts, got.frontier.Repeat)
		}
		f.Seek = &offsets.Seek{To: "earliest"}
		got = r.moves(f, c.promised, following{topics: map[string]int32{topic: 7, found: 7}})
		last = got.parts[1]
		if last.marker != c.told || last.seek != f.Seek || got.frontier.Topics[found] != c.partitions ||
			got.frontier.Topics[topic] != 7 || f.Topics[topic] != 4 || len(got.frontier.Found()) != 1 {
			t.Errorf("%s, another seek: %+v, %+v", name, got.parts, got.frontier)
		}
	}
}

func TestAdvances(t *testing.T) {
	f := offsets.Frontier{Completed: hourOne.Segment, Topics: before4}
	r := ruled(nil)
	c := r.advances(f, at(2), following{named: &hourTwo}, decided)
	if c.named != &hourTwo || c.passes || len(c.parts) > 0 {
		t.Errorf("named: %+v", c)
	}
	lost := &history.GapError{At: hourTwo.Segment, Oldest: source.SegmentAt(hourOf(7))}
	c = r.advances(f, at(2), following{named: &hourTwo, lost: lost}, decided)
	if g := c.frontier.Gap; g == nil || *g != (offsets.Gap{From: lost.At, To: lost.Oldest}) || c.named != &hourTwo ||
		len(c.reports) != 1 {
		t.Errorf("lost: %+v, %d reports", g, len(c.reports))
	}
	r.end = at(3)
	c = r.advances(f, at(2), following{ends: true, topics: before4}, decided)
	if !c.frontier.Ended || !c.passes || c.parts[0].marker != at(3) || c.frontier.Resolved != at(3).String() {
		t.Errorf("ends: %+v", c)
	}
	if c = r.advances(f, at(4), following{ends: true}, decided); !c.frontier.Ended || len(c.parts) > 0 {
		t.Errorf("ends above: %+v", c)
	}
}

// A bundle has a marker behind each segment, without transactions one behind all, and new partitions behind the last.
func TestBundlesAreMarked(t *testing.T) {
	in := following{last: true, topics: after7, bundle: &bundle{
		frontier: offsets.Frontier{Completed: hourTwo.Segment, Topics: before4},
		segments: []gathered{{small: small(hourOne), resolved: at(2), topics: before4},
			{small: small(hourTwo), resolved: at(3), topics: before4}},
	}}
	for _, exact := range []bool{true, false} {
		c := ruled(func(r *rules) { r.exact = exact }).advances(offsets.Frontier{}, at(1), in, decided)
		if len(c.parts) != 2 || c.parts[0].marked() != exact || c.parts[1].marker != at(3) || !c.passes {
			t.Errorf("exact %t: %+v", exact, c.parts)
		}
		if !maps.Equal(c.parts[0].topics, before4) || !maps.Equal(c.parts[1].topics, after7) ||
			!maps.Equal(c.frontier.Topics, after7) || len(c.reports) != 2 {
			t.Errorf("exact %t: %+v, %d reports", exact, c.parts, len(c.reports))
		}
	}
}

// A scan goes from phase to phase when no lease owes anything.
func TestTurns(t *testing.T) {
	now, _, err := offsets.NewView("state", 2).Get()
	must(t, err)
	state := func(scan *offsets.Scan, held, over int, done bool) (offsets.Frontier, *offsets.State) {
		s := *now
		f := offsets.Frontier{Scan: scan, Topics: before4}
		s.Frontier = &f
		s.Cursors = nil
		for range 2 {
			s.Cursors = append(s.Cursors, &offsets.Cursor{Scan: &offsets.Listing{ID: scan.ID, Held: held, Over: over, Done: done, Swept: 3}})
		}
		return f, &s
	}
	scan := func(phase offsets.ScanPhase) *offsets.Scan { return &offsets.Scan{ID: "a", Round: 1, Phase: phase} }
	for name, c := range map[string]struct {
		scan       *offsets.Scan
		held, over int
		done       bool
		next       time.Time
		phase      offsets.ScanPhase
		round      int
		moves      bool
		stays      bool
	}{
		"a lease delivers still": {scan(offsets.ScanHolds), 0, 0, false, time.Time{}, "", 0, false, true},
		"all hold":               {scan(offsets.ScanHolds), 1, 0, false, time.Time{}, offsets.ScanLists, 1, true, true},
		"a lease lists still":    {scan(offsets.ScanLists), 1, 0, false, time.Time{}, "", 0, false, true},
		"the round is over":      {scan(offsets.ScanLists), 1, 1, false, time.Time{}, offsets.ScanDelivers, 1, true, true},
		"events are delivered":   {scan(offsets.ScanDelivers), 1, 1, false, decided.Add(time.Second), "", 0, false, false},
		"it is time for a round": {scan(offsets.ScanDelivers), 1, 1, false, decided, offsets.ScanHolds, 2, true, true},
		"all is listed":          {scan(offsets.ScanLists), 1, 1, true, time.Time{}, offsets.ScanLists, 1, true, true},
		"cancelled, a lease holds": {&offsets.Scan{ID: "a", Round: 1, Phase: offsets.ScanHolds, Cancelled: true}, 1, 0, false,
			time.Time{}, offsets.ScanHolds, 1, true, true},
	} {
		f, s := state(c.scan, c.held, c.over, c.done)
		got, _, stays := ruled(nil).turns(f, s, rounds{next: c.next}, decided)
		if (got != nil) != c.moves || stays != c.stays {
			t.Errorf("%s: %+v, stays %t", name, got, stays)
			continue
		}
		if got == nil {
			continue
		}
		is := got.frontier.Scan
		if deleted := is.Deleted; deleted != 6 && (is.Phase == offsets.ScanDelivers || is.Done) {
			t.Errorf("%s: %d deletions", name, deleted)
		}
		if is.Phase != c.phase || is.Round != c.round || is.Done != (c.done || c.scan.Cancelled) || c.scan.Done {
			t.Errorf("%s: %+v", name, is)
		}
	}
}

func small(m source.Manifest) *pipeline.Small { return &pipeline.Small{Manifest: m} }

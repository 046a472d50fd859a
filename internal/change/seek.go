package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Seek moves the place at which the bridge continues. The feed is nil if the settings name none.
func Seek(to history.Target, feed *setup.Source) Kind {
	return Kind{
		fill: func(ctx context.Context, s *offsets.State, p *Plan) error {
			at := to.String()
			if f := s.Frontier; f != nil && feed != nil && f.Feed != "" && f.Feed != feed.ID {
				return plain.WithRemedy(plain.SettingsErrorf(
					"BRIDGE_SOURCE_URL names feed %s, but %s has progress on feed %s", feed.ID, p.Name, f.Feed),
					"set it back, or set another BRIDGE_NAME")
			}
			if s.Frontier == nil || !s.Frontier.Scan.Active() {
				at = p.place(ctx, to, feed)
			}
			return planSeek(s, to, at, p)
		},
		apply: func(ctx context.Context, s *offsets.Seized) error {
			return s.Seek(ctx, to.Move)
		},
	}
}

var errScanning = errors.New("the initial scan is not complete, and the feed continues where it began: " +
	"wait for its end (bridge status), or restart from scratch with bridge reset")

// place describes where in the feed a seek really continues. A place that the feed does not have yet is refused: a
// typing error in the year would stop delivery for years.
func (p *Plan) place(ctx context.Context, to history.Target, feed *setup.Source) string {
	at := when(to.String())
	p.instead = "choose a place that the feed has"
	if to.Time().After(time.Now()) {
		p.refused = at + " is in the future: until then, nothing would be delivered"
		return at
	}
	if end, err := history.ParseEnd(p.config.EndTime); err == nil && to.Time().UnixNano() > end.Wall {
		p.refused = at + " is after BRIDGE_END_TIME=" + p.config.EndTime + ": nothing would be delivered"
		return at
	}
	if feed == nil {
		p.note("The feed is not known here, since BRIDGE_SOURCE_URL is not set: whether it has %s is not checked.", at)
		return at
	}
	after, from := to.Begin()
	for first, err := range feed.Feed.Segments(ctx, after) {
		switch {
		case err != nil:
			p.note("Reading the feed failed, so whether it has %s is not checked: %v", at, err)
		case at == "earliest":
			at = first.String() + ", the earliest segment"
		case first.Time().After(to.Time()):
			at = fmt.Sprintf("%s, the first segment from %s on", first, at)
		case from != (envelope.Timestamp{}):
			at += ", in segment " + first.String()
		}
		return at
	}
	p.refused = fmt.Sprintf("the feed has no segment from %s on: nothing would be delivered before it has one", at)
	return at
}

// planSeek plans the move to a target, which people read as at.
func planSeek(s *offsets.State, to history.Target, at string, p *Plan) error {
	if s.Frontier == nil {
		p.add("continues at", "", at)
		p.note("There is no progress: the first start begins at %s, in place of BRIDGE_START or a scan. Events before "+
			"it are not delivered, and markers start again from the beginning.", at)
		return nil
	}
	before, after := s.Frontier, *s.Frontier
	if before.Scan.Active() {
		if before.Scan.Initial {
			return errScanning
		}
		p.note("Scan %s is under way and is cancelled.", before.Scan.ID)
	}
	to.Move(&after)
	p.add("continues at", place(before), at)
	p.add("events left out before", when(before.Start), when(after.Start))
	p.add("resolved", when(before.Resolved), when(before.Resolved))
	if last := before.Seek; last != nil && !last.Told {
		p.note("This replaces the last seek, to %s: the bridge has not continued since.", when(last.To))
	}
	if before.Ended {
		p.add("ended at BRIDGE_END_TIME", "true", "false")
	}
	for lease, cur := range s.Cursors {
		if cur != nil && cur.Segment != (source.Segment{}) {
			where := cur.Segment.String()
			if cur.Done {
				where += " done"
			}
			p.add(fmt.Sprintf("lease %d", lease), where, "")
		}
	}
	begin, _ := to.Begin()
	again := func(d offsets.Stretch) bool { return d.To.Compare(begin) > 0 }
	if until := deliveredUntil(s); p.refused == "" && !until.IsZero() && !to.Time().After(until) &&
		(before.Current != source.Segment{} || slices.ContainsFunc(before.Delivered(), again)) {
		p.note("Delivered events are repeated: those from %s up to %s.", when(to.String()),
			until.Format(time.RFC3339Nano))
		if slices.ContainsFunc(before.Skipped(), again) {
			p.note("Among them are events that a former seek has skipped: these come for the first time.")
		}
		if before.Settings[offsets.FrozenMarkers] == envelope.MarkersOff.String() {
			p.note("With BRIDGE_RESOLVED_TO=off no marker announces them: bridge verify takes them for faults.")
		}
	}
	// Also if nothing was delivered: a filter may have left out the events that markers stand for.
	promised, err := envelope.ParseTimestamp(before.Resolved)
	if p.refused == "" && err == nil && !to.Time().After(time.Unix(0, promised.Wall)) {
		p.note("Markers have promised that no event at or below %s follows. The seek breaks that promise in the "+
			"topics of this bridge. The bridge writes that marker once more before the repeated events, with the "+
			"header \"seek\". Markers do not go back, and events at or below that time count as late.",
			when(before.Resolved))
	}
	if skips(s, to) {
		p.note("Events before %s that are not delivered yet are skipped.", when(to.String()))
	}
	return nil
}

// when returns a timestamp as people write times, and any other text as it is. A time may stand for several timestamps:
// then the timestamp itself follows.
func when(text string) string {
	ts, err := envelope.ParseTimestamp(text)
	if err != nil {
		return text
	}
	at := time.Unix(0, ts.Wall).UTC().Format(time.RFC3339Nano)
	if ts.Logical != 0 {
		at += " (" + text + ")"
	}
	return at
}

// place describes the position of a frontier.
func place(f *offsets.Frontier) string {
	switch {
	case f.Current != (source.Segment{}):
		return f.Current.String()
	case f.Seek != nil: // what is complete before it need not be a segment
		return when(f.Seek.To)
	case status.Unbegun(f):
		return when(f.Start)
	case f.Completed != (source.Segment{}):
		return "after " + f.Completed.String()
	}
	return ""
}

// deliveredUntil returns a time after which no event was delivered, or zero if none was.
func deliveredUntil(s *offsets.State) (until time.Time) {
	for _, c := range s.Cursors {
		if c == nil {
			continue
		}
		if c.Event.After(until) {
			until = c.Event
		}
		// By a version that did not record it.
		if c.Event.IsZero() && c.Counts.Emitted > 0 && c.Segment != (source.Segment{}) {
			if end := c.Segment.Time().Add(75 * time.Minute); end.After(until) {
				until = end
			}
		}
	}
	return until
}

// skips reports whether the seek may leave out events that are not delivered. All events before the current segment are
// delivered, and an event can be up to 15 minutes outside its segment.
func skips(s *offsets.State, to history.Target) bool {
	at := s.Frontier.At()
	return at == (source.Segment{}) && !to.Time().IsZero() || at != (source.Segment{}) && to.Time().After(at.Time())
}

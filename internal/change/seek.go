package change

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Seek moves the place at which the bridge continues.
func Seek(to bridge.Target) Kind {
	return Kind{
		fill: func(s *offsets.State, p *Plan) error { return planSeek(s, to, p) },
		apply: func(ctx context.Context, s *offsets.Seized) error {
			if s.State.Frontier == nil {
				return errNeverStarted
			}
			return s.Seek(ctx, to.Move)
		},
	}
}

var errNeverStarted = errors.New("this bridge has no progress, so there is nothing to move: BRIDGE_START says where its first start begins")

func planSeek(s *offsets.State, to bridge.Target, p *Plan) error {
	if s.Frontier == nil {
		return errNeverStarted
	}
	before, after := s.Frontier, *s.Frontier
	to.Move(&after)
	p.add("goes on at", place(before), to.String())
	p.add("events left out before", before.Start, after.Start)
	p.add("complete up to", before.Completed.String(), after.Completed.String())
	p.add("resolved", before.Resolved, before.Resolved)
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
	if until := deliveredUntil(s); !until.IsZero() && !to.Time().After(until) {
		p.note("Events that were delivered come again: those from %s up to %s.", to, until.Format(time.RFC3339Nano))
	}
	// Also where nothing was delivered: a filter may have left out what the markers stand for.
	if promised, err := envelope.ParseTimestamp(before.Resolved); err == nil && !to.Time().After(time.Unix(0, promised.Wall)) {
		p.note("Markers have promised that nothing at or below %s follows: this breaks that promise in the topics of this bridge. That marker is "+
			"written again in front, with the header \"seek\"; markers do not go back, and what comes at or below it is counted as late.", before.Resolved)
	}
	if skips(s, to) {
		p.note("Events before %s that were not delivered yet are skipped.", to)
	}
	return nil
}

// place says where f stands.
func place(f *offsets.Frontier) string {
	switch {
	case f.Current != (source.Segment{}):
		return f.Current.String()
	case f.Completed != (source.Segment{}):
		return "after " + f.Completed.String()
	}
	return ""
}

// deliveredUntil returns a time after which nothing was delivered; zero if nothing was at all.
func deliveredUntil(s *offsets.State) (until time.Time) {
	for _, c := range s.Cursors {
		if c == nil {
			continue
		}
		if c.Event.After(until) {
			until = c.Event
		}
		if c.Event.IsZero() && c.Segment != (source.Segment{}) { // written before cursors told
			if end := c.Segment.Time().Add(75 * time.Minute); end.After(until) {
				until = end
			}
		}
	}
	return until
}

// skips reports whether events may be left out that were not delivered. Nothing is left before the current segment, and
// events are in their segment, or 15 minutes off.
func skips(s *offsets.State, to bridge.Target) bool {
	at := s.Frontier.At()
	return at == (source.Segment{}) && !to.Time().IsZero() || at != (source.Segment{}) && to.Time().After(at.Time())
}

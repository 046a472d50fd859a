package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

const seekHelp = `
Moves the place where the bridge goes on: to the first event of a segment (2026/01/31/1200) or of all there is (earliest), or
to a time (2026-01-31T12:00:00Z, or the text of an "updated"), before which events are left out. Stop the instances first.
Forward, what lies between is skipped. Backward, events come again, after a marker with the header "seek".
`

func seekVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("seek", "--to SEGMENT|TIME|UPDATED|earliest [--yes] [--force] [--output text|json]", stderr, func(w io.Writer) { fmt.Fprint(w, seekHelp) })
	to := fs.String("to", "", "where to go on")
	f := newChangeFlags(fs)
	if err := parse(fs, args); err != nil {
		return err
	}
	if *to == "" {
		return &usageError{errors.New("seek needs --to: a segment such as 2026/01/31/1200, a time, the text of an \"updated\", or earliest")}
	}
	target, err := bridge.ParseTarget(*to)
	if err != nil {
		return &usageError{fmt.Errorf("--to: %w", err)}
	}
	return f.run(ctx, stdout,
		func(s *offsets.State, c *plan) error { return planSeek(s, target, c) },
		func(ctx context.Context, s *offsets.Seized) error {
			if s.State.Frontier == nil {
				return errNeverStarted
			}
			return s.Seek(ctx, target.Move)
		})
}

var errNeverStarted = errors.New("this bridge has no progress, so there is nothing to move: BRIDGE_START says where its first start begins")

func planSeek(s *offsets.State, to bridge.Target, c *plan) error {
	if s.Frontier == nil {
		return errNeverStarted
	}
	before, after := s.Frontier, *s.Frontier
	to.Move(&after)
	c.add("goes on at", place(before), to.String())
	c.add("events left out before", before.Start, after.Start)
	c.add("complete up to", before.Completed.String(), after.Completed.String())
	c.add("resolved", before.Resolved, before.Resolved)
	if before.Ended {
		c.add("ended at BRIDGE_END_TIME", "true", "false")
	}
	for p, cur := range s.Cursors {
		if cur != nil && cur.Segment != (source.Segment{}) {
			where := cur.Segment.String()
			if cur.Done {
				where += " done"
			}
			c.add(fmt.Sprintf("lease %d", p), where, "")
		}
	}
	if until := deliveredUntil(s); !until.IsZero() && !to.Time().After(until) {
		c.note("Events that were delivered come again: those from %s up to %s.", to, until.Format(time.RFC3339Nano))
	}
	// Also where nothing was delivered: a filter may have left out what the markers stand for.
	if promised, err := envelope.ParseTimestamp(before.Resolved); err == nil && !to.Time().After(time.Unix(0, promised.Wall)) {
		c.note("Markers have promised that nothing at or below %s follows: this breaks that promise in the topics of this bridge. That marker is "+
			"written again in front, with the header \"seek\"; markers do not go back, and what comes at or below it is counted as late.", before.Resolved)
	}
	if skips(s, to) {
		c.note("Events before %s that were not delivered yet are skipped.", to)
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

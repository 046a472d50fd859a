package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"blobfeed/offsets"
)

const resetHelp = `
Removes all progress: the next start is a first start, at BRIDGE_START, with the settings of then. Records stay where they are,
so what is delivered again comes a second time in their topics. Stop the instances first.
`

func resetVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("reset", "[--yes] [--force] [--output text|json]", stderr, func(w io.Writer) { fmt.Fprint(w, resetHelp) })
	f := newChangeFlags(fs)
	if err := parse(fs, args); err != nil {
		return err
	}
	return f.run(ctx, stdout,
		func(s *offsets.State, c *plan) error { planReset(s, c); return nil },
		func(ctx context.Context, s *offsets.Seized) error { return s.Reset(ctx) })
}

func planReset(s *offsets.State, c *plan) {
	if f := s.Frontier; f != nil {
		c.add("feed", f.Feed, "")
		c.add("goes on at", place(f), "BRIDGE_START of the next start")
		c.add("resolved", f.Resolved, "")
		for _, name := range slices.Sorted(maps.Keys(f.Settings)) {
			c.add("frozen "+name, f.Settings[name], "as the next start says")
		}
		if topics := slices.Sorted(maps.Keys(f.Topics)); len(topics) > 0 {
			c.note("The records in %s stay. If the next start writes to the same topics, their promises end: events come again, markers begin anew, "+
				"and with other settings keys may move. Use new topics, or delete these, where consumers rely on that.", strings.Join(topics, ", "))
		}
	} else {
		c.note("There is no progress: the next start is a first start already.")
	}
	for p, cur := range s.Cursors {
		if cur != nil {
			c.add(fmt.Sprintf("lease %d", p), fmt.Sprintf("%s, %d events", orDash(cur.Segment.String()), cur.Counts.Read), "")
		}
	}
}

package change

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blobfeed/internal/plain"
	"blobfeed/offsets"
)

// Reset removes the state.
func Reset() Kind {
	return Kind{
		fill:  func(_ context.Context, s *offsets.State, p *Plan) error { planReset(s, p); return nil },
		apply: func(ctx context.Context, s *offsets.Seized) error { return s.Reset(ctx) },
	}
}

func planReset(s *offsets.State, p *Plan) {
	if f := s.Frontier; f != nil {
		p.add("feed", f.Feed, "")
		p.add("continues at", place(f), "BRIDGE_START of the next start")
		p.add("resolved", when(f.Resolved), "")
		for _, name := range slices.Sorted(maps.Keys(f.Settings)) {
			p.add("frozen "+name, f.Settings[name], "setting of the next start")
		}
		if topics := slices.Sorted(maps.Keys(f.Topics)); len(topics) > 0 {
			p.note("The records in %s stay. If the next start writes to the same topics, their promises end: events "+
				"are repeated, markers start again from the beginning, and with other settings keys may move to other "+
				"partitions. If consumers rely on the promises, use new topics or delete these.",
				strings.Join(topics, ", "))
		}
	} else {
		p.note("There is no progress to remove. The next start begins at BRIDGE_START, also if topics hold records.")
	}
	for lease, cur := range s.Cursors {
		if cur != nil {
			now := cmp.Or(cur.Segment.String(), "-") + ", " + plain.Count(cur.Counts.Read, "event")
			p.add(fmt.Sprintf("lease %d", lease), now, "")
		}
	}
}

package judge

import (
	"cmp"
	"context"
	"strings"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/source"
)

// sought says which events seeks may have skipped: those may be in a topic or not.
type sought struct {
	all   []move             // nil: not all are known
	start envelope.Timestamp // events before it were left out by the first start; zero: none
	last  history.Target     // of the last seek
}

// move is a seek.
type move struct {
	from source.Segment // where delivery stood; zero: nowhere
	to   history.Target
}

// skips reports whether an event may have been skipped. A seek back skips nothing: what was delivered before is still
// required. If not all seeks are known, an event before the target of the last one may have been skipped.
func (s *sought) skips(seg source.Segment, at envelope.Timestamp) bool {
	if s.all == nil {
		return s.last.After(seg, at)
	}
	if at.Compare(s.start) < 0 {
		return true
	}
	for _, m := range s.all {
		if seg.Compare(m.from) >= 0 && m.to.After(seg, at) {
			return true
		}
	}
	return false
}

// seeks returns the seeks that the state and the markers name.
func (p *feedScan) seeks(ctx context.Context, subjects []*subject) (s sought, err error) {
	if p.state == nil || p.state.Frontier.Epoch == 0 {
		return s, nil
	}
	f := p.state.Frontier
	var named []string // by the topic whose markers name most of them: another one may be newer than some
	for _, t := range subjects {
		if err := t.scan(ctx, all); err != nil {
			return s, err
		}
		if len(t.seeks) > len(named) {
			named = t.seeks
		}
	}
	if f.Seek != nil && !f.Seek.Told {
		named = append(named[:len(named):len(named)], cmp.Or(f.Seek.From.String(), "-")+" "+f.Seek.To)
	}
	text := f.Start // unless a marker names it
	var moves []move
	for _, seek := range named {
		from, to, _ := strings.Cut(seek, " ")
		m := move{}
		if m.from, err = source.ParseSegment(strings.TrimPrefix(from, "-")); err != nil {
			return s, err
		}
		if m.to, err = history.ParseTarget(to); err != nil {
			return s, err
		}
		moves, text = append(moves, m), to
	}
	if f.Seek != nil {
		text = f.Seek.To
	}
	if s.last, err = history.ParseTarget(cmp.Or(text, "earliest")); err != nil {
		return s, err
	}
	start := f.Settings[offsets.FrozenStart]
	if start != "" && start != "earliest" {
		if s.start, err = history.ParseTime(start); err != nil {
			return s, nil // latest: nobody knows any more when that was
		}
	}
	if int64(len(moves)) >= f.Epoch { // a repair, a reset, or a seek behind a seek has no marker of its own
		s.all = moves
	}
	return s, nil
}

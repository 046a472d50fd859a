package status

import (
	"fmt"
	"strings"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Progress is how far a piece of work with an end is. It fits every such work: the phase names it, its steps and its
// items have names.
type Progress struct {
	Phase string   `json:"phase"` // what is done, as people say it: "catching up"
	Step  string   `json:"step"`  // what is counted: "segment"
	Done  int      `json:"done"`  // steps
	Total int      `json:"total"` // steps; 0: unknown
	Share *float64 `json:"share"` // of the whole work, from 0 to 1, with the part of the current step
	Item  string   `json:"item"`  // what is delivered: "events"
	Items int64    `json:"items"` // delivered so far, 0: not counted
	Rate  *float64 `json:"items_per_second"`
	Left  *float64 `json:"seconds_left"` // estimate
}

// String returns the progress in a line, such as "catching up: segment 4 of 7, 57 %, 210,000 events/s, about 40s left".
func (p *Progress) String() string {
	var parts []string
	switch {
	case p.Total > 0:
		parts = append(parts, fmt.Sprintf("%s %s of %s", p.Step, plain.Number(min(p.Done+1, p.Total)),
			plain.Number(p.Total)))
	case p.Done > 0:
		parts = append(parts, p.Step+" "+plain.Number(p.Done))
	}
	if p.Items > 0 {
		parts = append(parts, plain.Count(p.Items, strings.TrimSuffix(p.Item, "s")))
	}
	if p.Share != nil {
		parts = append(parts, fmt.Sprintf("%d %%", int(*p.Share*100))) // 100 % is the end, not nearly the end
	}
	if p.Rate != nil {
		parts = append(parts, plain.Number(rounded(*p.Rate))+" "+p.Item+"/s")
	}
	if p.Left != nil {
		parts = append(parts, "about "+plain.Span(max(time.Second, inSeconds(*p.Left)))+" left")
	}
	if len(parts) == 0 {
		return p.Phase
	}
	return p.Phase + ": " + strings.Join(parts, ", ")
}

// rounded keeps two digits, since more are only noise.
func rounded(f float64) int64 {
	n, scale := int64(f), int64(1)
	for n/scale >= 100 {
		scale *= 10
	}
	return (n + scale/2) / scale * scale
}

// empty is how long the newest segment is taken for one that is still to be listed, though there is no commit in it.
const empty = 10 * time.Second

// settled is how long a speed is measured before it is shown.
const settled = 2 * time.Second

// catchUp returns the progress towards the newest segment, nil at the end of the feed. All segments count alike: what
// is in those ahead is not known before they are listed.
func (s *Status) catchUp(state *offsets.State) *Progress {
	f := state.Frontier
	c := f.CatchUp
	if c == nil || f.Ended {
		return nil
	}
	last, ahead, listed := f.Time, int64(0), int64(0)
	for _, cursor := range state.Cursors {
		if cursor == nil {
			continue
		}
		if cursor.Time.After(last) {
			last = cursor.Time
		}
		if f.Current != (source.Segment{}) && cursor.Segment == f.Current {
			ahead, listed = ahead+cursor.Ahead, listed+cursor.Listed
		}
	}
	part := 0.0 // of the current segment
	if listed > 0 {
		part = 1 - float64(ahead)/float64(listed)
	}
	// Of the newest segment all is read, or there is nothing in it: a lease without an event in it commits nothing.
	if c.Left == 1 && ahead == 0 && (listed > 0 || s.Now.Sub(last) >= empty) {
		return nil
	}
	total := c.Done + c.Left
	share := (float64(c.Done) + part) / float64(total)
	p := &Progress{Phase: "catching up", Step: "segment", Item: "events", Done: c.Done, Total: total, Share: &share}
	moved, took := float64(c.Done-c.From)+part, last.Sub(c.Since)
	if moved > 0 && took >= settled {
		rate := float64(s.Totals.Read-c.Read) / took.Seconds()
		left := (float64(c.Left) - part) / moved * took.Seconds()
		p.Rate, p.Left = &rate, &left
	}
	return p
}

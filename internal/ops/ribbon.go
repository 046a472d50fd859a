package ops

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/source"
)

// Feed lists the segments after a given one, the oldest first.
type Feed interface {
	Segments(ctx context.Context, after source.Segment) iter.Seq2[source.Segment, error]
}

// Segments is what the feed holds. It is part of the interface. Times are Unix seconds.
type Segments struct {
	Listed time.Time `json:"listed"`          // null before the first listing
	Begins []int64   `json:"begins"`          // the oldest first; those before Oldest are gone
	Oldest int64     `json:"oldest"`          // that the account still holds
	Lost   []Lost    `json:"lost"`            // since the start of the instance
	Error  string    `json:"error,omitempty"` // why the end may be missing
}

// Lost is history that retention deleted undelivered.
type Lost struct {
	From int64 `json:"from"`
	To   int64 `json:"to"` // what follows, which is there
}

const (
	// listAge is how long a listing counts: somebody who looks at the page must not cost many requests.
	listAge = 30 * time.Second
	// newerAge is how long it counts when the bridge has seen a newer segment.
	newerAge = 2 * time.Second
	// oldAge is how long the old end counts, which retention moves: to list it takes a request for each day.
	oldAge = 30 * time.Minute
	// listTime bounds a listing. What it has found counts, and the next one continues there.
	listTime = 10 * time.Second
	// mostSegments bounds the memory: it is what eleven years of hours make.
	mostSegments = 100_000
	// mostGone is how many deleted segments are shown, and mostLost how many losses.
	mostGone, mostLost = 48, 100
)

// ribbon lists the feed for those who look, and only then.
type ribbon struct {
	mu    sync.Mutex
	feed  Feed
	known Segments
	gone  []int64   // begins of former listings that retention has deleted since
	began time.Time // the listing from the oldest on
	last  source.Segment
}

// Lists sets the feed whose segments are shown.
func (m *Monitor) Lists(feed Feed) {
	m.ribbon.mu.Lock()
	defer m.ribbon.mu.Unlock()
	m.ribbon.feed = feed
}

// Segments returns what the feed holds, as of a moment ago.
func (m *Monitor) Segments(ctx context.Context) Segments {
	p, newest := m.Snapshot().Position, int64(0)
	for _, name := range []string{p.Newest, p.Current} {
		if seg, err := source.ParseSegment(name); err == nil && seg != (source.Segment{}) {
			newest = max(newest, seg.Time().Unix())
		}
	}
	m.mu.Lock()
	lost := slices.Clone(m.lost)
	m.mu.Unlock()
	r := &m.ribbon
	r.mu.Lock() // one who asks lists, and the others wait for the same
	defer r.mu.Unlock()
	now := m.now()
	age := listAge
	if r.known.Error == "" && newest > r.last.Time().Unix() { // there are more, and the service answers
		age = newerAge
	}
	if r.feed == nil || !r.known.Listed.IsZero() && now.Sub(r.known.Listed) < age {
		return r.shown(lost, newest)
	}
	if now.Sub(r.began) >= oldAge {
		r.gone = append(r.gone, r.known.Begins...)
		r.began, r.last, r.known.Begins = now, source.Segment{}, nil
	}
	r.known.Listed, r.known.Error = now.UTC(), ""
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	for seg, err := range r.feed.Segments(ctx, r.last) {
		if err != nil {
			r.known.Error = plain.Clip(err.Error())
			break
		}
		if len(r.known.Begins) == mostSegments {
			r.known.Error = "the feed has more segments than are shown"
			break
		}
		r.known.Begins, r.last = append(r.known.Begins, seg.Time().Unix()), seg
	}
	return r.shown(lost, newest)
}

// shown returns the segments with those that are gone: the last ones that were there, and the begin of each loss; and
// with the newest that the bridge has seen, which may be younger than the listing.
func (r *ribbon) shown(lost []Lost, newest int64) Segments {
	s := r.known
	if len(s.Begins) > 0 {
		s.Oldest = s.Begins[0]
		r.gone = slices.DeleteFunc(r.gone, func(begin int64) bool { return begin >= s.Oldest })
		r.gone = r.gone[max(0, len(r.gone)-mostGone):]
	}
	s.Begins, s.Lost = append(append([]int64{}, r.gone...), s.Begins...), append([]Lost{}, lost...)
	if n := len(s.Begins); r.feed != nil && (n == 0 || newest > s.Begins[n-1]) && newest > 0 {
		s.Begins = append(s.Begins, newest)
	}
	for _, l := range lost {
		if i, _ := slices.BinarySearch(s.Begins, l.From); i == len(s.Begins) || s.Begins[i] >= l.To {
			s.Begins = slices.Insert(s.Begins, i, l.From)
		}
	}
	return s
}

// loses takes note of history that is lost. The monitor is locked.
func (m *Monitor) loses(gap *history.GapError) {
	from, to := gap.At.Time().Unix(), gap.Oldest.Time().Unix()
	if gap.After { // At was delivered
		from += int64(history.MaxInterval / time.Second)
	}
	lost := Lost{from, max(to, from+1)} // of a segment that is there, chunks are lost
	if slices.Contains(m.lost, lost) {  // by another lease
		return
	}
	if m.lost = append(m.lost, lost); len(m.lost) > mostLost {
		m.lost = m.lost[1:]
	}
}

package ops

import (
	"context"
	"iter"
	"sync"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/source"
)

// Feed lists the segments after a given one, the oldest first.
type Feed interface {
	Segments(ctx context.Context, after source.Segment) iter.Seq2[source.Segment, error]
}

// Segments is what the feed holds. It is part of the interface.
type Segments struct {
	Listed time.Time `json:"listed"`          // null before the first listing
	Begins []int64   `json:"begins"`          // Unix seconds, the oldest first
	Error  string    `json:"error,omitempty"` // why the end may be missing
}

const (
	// listAge is how long a listing counts: somebody who looks at the page must not cost many requests.
	listAge = 30 * time.Second
	// oldAge is how long the old end counts, which retention moves: to list it takes a request for each day.
	oldAge = 30 * time.Minute
	// listTime bounds a listing. What it has found counts, and the next one continues there.
	listTime = 10 * time.Second
	// mostSegments bounds the memory: it is what eleven years of hours make.
	mostSegments = 100_000
)

// ribbon lists the feed for those who look, and only then.
type ribbon struct {
	mu    sync.Mutex
	feed  Feed
	known Segments
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
	r := &m.ribbon
	r.mu.Lock() // one who asks lists, and the others wait for the same
	defer r.mu.Unlock()
	now := m.now()
	if r.feed == nil || !r.known.Listed.IsZero() && now.Sub(r.known.Listed) < listAge {
		return r.copied()
	}
	if now.Sub(r.began) >= oldAge {
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
	return r.copied()
}

func (r *ribbon) copied() Segments {
	s := r.known
	s.Begins = append([]int64{}, s.Begins...)
	return s
}

package ops

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"testing"
	"time"

	"blobfeed/source"
)

// listing is a feed that counts how often it is listed, and fails behind its segments.
type listing struct {
	segments []source.Segment
	after    []source.Segment
	err      error
}

func (l *listing) Segments(_ context.Context, after source.Segment) iter.Seq2[source.Segment, error] {
	l.after = append(l.after, after)
	return func(yield func(source.Segment, error) bool) {
		for _, seg := range l.segments {
			if seg.Compare(after) > 0 && !yield(seg, nil) {
				return
			}
		}
		if l.err != nil {
			yield(source.Segment{}, l.err)
		}
	}
}

// The page has every segment of the feed, and those who look cost few requests: a listing counts for a while, and the
// next one begins where it ended, until retention may have moved the oldest.
func TestSegmentsOfTheFeed(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	m := NewMonitor("b", "feed", Info{}, time.Minute, func() time.Time { return now })
	h := Handler(m, http.NotFoundHandler())
	ask := func(want int, problem string) {
		t.Helper()
		_, body, _ := get(t, h, "/segments")
		var s Segments
		if err := json.Unmarshal([]byte(body), &s); err != nil || len(s.Begins) != want || s.Error != problem {
			t.Errorf("%v: %s, want %d, %q", err, body, want, problem)
		}
	}
	ask(0, "") // no feed is known
	oldest := now.AddDate(0, 0, -1)
	at := func(hours int) source.Segment { return source.SegmentAt(oldest.Add(time.Duration(hours) * time.Hour)) }
	feed := &listing{segments: []source.Segment{at(0), at(1)}, err: errors.New("no route to host")}
	m.Lists(feed)
	ask(2, "no route to host")
	feed.segments, feed.err = append(feed.segments, at(2)), nil
	ask(2, "no route to host")
	now = now.Add(listAge)
	ask(3, "")
	feed.segments = feed.segments[1:]
	now = now.Add(oldAge)
	ask(2, "")
	if len(feed.after) != 3 || feed.after[1] != at(1) || feed.after[2] != (source.Segment{}) {
		t.Errorf("listed after %v", feed.after)
	}
}

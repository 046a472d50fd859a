package ops

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/history"
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
	ask := func(want int, problem string) (s Segments) {
		t.Helper()
		_, body, _ := get(t, h, "/segments")
		if err := json.Unmarshal([]byte(body), &s); err != nil || len(s.Begins) != want || s.Error != problem {
			t.Errorf("%v: %s, want %d, %q", err, body, want, problem)
		}
		return s
	}
	ask(0, "") // no feed is known
	m.Lists(&listing{err: errors.New("it is empty")})
	if _, body, _ := get(t, h, "/segments"); !strings.Contains(body, `"begins":[]`) { // and not null
		t.Errorf("of an empty feed: %s", body)
	}
	now = now.Add(listAge)
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
	if s := ask(3, ""); s.Oldest != at(1).Time().Unix() {
		t.Errorf("the oldest is %v, want %s", s.Oldest, at(1))
	}
	if len(feed.after) != 3 || feed.after[1] != at(1) || feed.after[2] != (source.Segment{}) {
		t.Errorf("listed after %v", feed.after)
	}
}

// The newest segment is what the bridge has seen, if that is younger than the listing: nobody shows another one.
func TestNewestSegmentOfTheFeed(t *testing.T) {
	m, engine, clock := watching(t)
	engine.state = state(nil)
	feed := &listing{segments: []source.Segment{source.SegmentAt(segment.Time().Add(-time.Hour)), segment}}
	m.Lists(feed)
	newest := func() time.Time {
		begins := m.Segments(t.Context()).Begins
		return time.Unix(begins[len(begins)-1], 0).UTC()
	}
	if got := newest(); !got.Equal(segment.Time()) {
		t.Errorf("listed: %s", got)
	}
	next := segment.Time().Add(time.Hour)
	engine.state.Frontier.Current = source.SegmentAt(next.Add(-time.Minute)) // of this moment; a listing may be older
	if got := newest(); !got.Equal(next.Add(-time.Minute)) {
		t.Errorf("current: %s", got)
	}
	engine.state.Frontier.Current = segment
	m.History(bridge.History{Newest: next})
	if got := newest(); !got.Equal(next) || m.Snapshot().Position.Newest != source.SegmentAt(next).String() {
		t.Errorf("seen: %s", got)
	}
	// There may be more between: it is listed again before a listing is old.
	feed.segments = append(feed.segments, source.SegmentAt(next), source.SegmentAt(next.Add(time.Hour)))
	m.History(bridge.History{Newest: next.Add(time.Hour)})
	*clock = clock.Add(newerAge)
	if got := newest(); !got.Equal(next.Add(time.Hour)) || len(m.Segments(t.Context()).Begins) != 4 {
		t.Errorf("listed again: %s", got)
	}
	// A service that fails is not asked again and again.
	feed.err = errors.New("no route to host")
	m.History(bridge.History{Newest: next.Add(2 * time.Hour)})
	for range 5 {
		*clock = clock.Add(newerAge)
		newest()
	}
	if n := len(feed.after); n != 3 {
		t.Errorf("listed %d times", n)
	}
}

// What retention has deleted is shown for a while, and what it deleted undelivered for as long as the instance runs, also
// if nobody has seen the segments before. Two leases report the same loss.
func TestSegmentsThatAreGone(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	m := NewMonitor("b", "feed", Info{}, time.Minute, func() time.Time { return now })
	midnight := now.Truncate(24 * time.Hour)
	at := func(hours int) source.Segment {
		return source.SegmentAt(midnight.Add(time.Duration(hours) * time.Hour))
	}
	feed := &listing{}
	for hour := range 100 {
		feed.segments = append(feed.segments, at(hour))
	}
	m.Lists(feed)
	if s := m.Segments(t.Context()); len(s.Begins) != 100 || len(s.Lost) != 0 {
		t.Fatalf("%+v", s)
	}
	now, feed.segments = now.Add(oldAge), feed.segments[90:]
	for lease := range int32(2) {
		m.Failed(lease, &history.GapError{At: at(80), Oldest: at(90), Recorded: true})
	}
	m.Failed(-1, &history.GapError{At: at(-9), After: true, Oldest: at(-7), Recorded: true})
	m.Failed(0, &history.GapError{At: at(90), Oldest: at(91)}) // the bridge stops: nothing is passed
	s := m.Segments(t.Context())
	want := []Lost{{at(80).Time().Unix(), at(90).Time().Unix()}, {at(-8).Time().Unix(), at(-7).Time().Unix()}}
	if !slices.Equal(s.Lost, want) {
		t.Errorf("lost: %v, want %v", s.Lost, want)
	}
	if want := 1 + mostGone + 10; len(s.Begins) != want || s.Begins[0] != at(-8).Time().Unix() ||
		s.Begins[1] != at(90-mostGone).Time().Unix() || s.Oldest != at(90).Time().Unix() {
		t.Errorf("%d segments from %d on, the oldest is %d; want %d", len(s.Begins), s.Begins[0], s.Oldest, want)
	}
}

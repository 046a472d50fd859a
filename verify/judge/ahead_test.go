package judge

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
	"blobfeed/source/dir"
)

// slow is a store far away.
type slow struct {
	source.Store
	latency time.Duration
}

func (s slow) List(ctx context.Context, prefix, delimiter string) iter.Seq2[source.Entry, error] {
	time.Sleep(s.latency) // of the bubble
	return s.Store.List(ctx, prefix, delimiter)
}

func (s slow) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	time.Sleep(s.latency)
	return s.Store.ReadAt(ctx, name, p, offset)
}

// Small segments cost a fraction of a round trip each, come in order and whole, and large ones are not held (I9).
func TestReadAhead(t *testing.T) {
	const segments, shards, events, latency = 60, 3, 40, 15 * time.Millisecond
	root := t.TempDir()
	spec := feedsim.Spec{Segments: segments, Shards: shards, EventsPerSegment: events, BlockEvents: 5}
	if err := feedsim.Write(t.Context(), feedsim.Dir(root), spec, nil); err != nil {
		t.Fatal(err)
	}
	store, err := dir.New(root)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		began, got, last := time.Now(), 0, source.Segment{}
		for s, err := range readAhead(t.Context(), source.New(slow{store, latency}, source.Options{}), source.Segment{}) {
			if err != nil {
				t.Fatal(err)
			}
			if !last.Time().Before(s.manifest.Segment.Time()) {
				t.Errorf("%s comes after %s", s.manifest.Segment, last)
			}
			last = s.manifest.Segment
			for _, r := range s.shards {
				var b source.Batch
				for r.Next(t.Context(), &b) == nil {
					got += len(b.Events)
				}
			}
		}
		if got != segments*events {
			t.Errorf("%d events, want %d", got, segments*events)
		}
		if took := time.Since(began); took > segments*latency {
			t.Errorf("%d segments took %s, at %s a request", segments, took, latency)
		}
		time.Sleep(time.Second) // of the bubble: its clock stops with the test
	})
}

// A reader that stops leaves no request behind, and one that is told to stop says so.
func TestReadAheadEnds(t *testing.T) {
	store, err := dir.New("../../testdata/real-2020")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		feed := source.New(slow{store, time.Millisecond}, source.Options{})
		for range readAhead(t.Context(), feed, source.Segment{}) {
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		var err error
		for _, err = range readAhead(ctx, feed, source.Segment{}) {
			n++
			cancel()
		}
		if !errors.Is(err, context.Canceled) || n != 2 {
			t.Errorf("%d segments, and %v", n, err)
		}
		time.Sleep(time.Second) // of the bubble: its clock stops with the test
	})
}

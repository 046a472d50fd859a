package main

import (
	"context"
	"fmt"
	"time"

	"blobfeed/internal/feedsim"
)

// feed is what a reader finds.
type feed struct {
	begin    time.Time
	segments int
	each     int            // events of a segment
	ids      map[string]int // of all events, with the number of the segment
	bytes    int64

	connection string // to the account
}

// writeFeed writes a feed and serves it until the endpoint is closed.
func writeFeed(ctx context.Context, sink *endpoint, segments, each int) (feed, error) {
	// Brokers reject records from the future.
	f := feed{begin: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), segments: segments, each: each, ids: map[string]int{}}
	sim, err := feedsim.New(sink, feedsim.Spec{Seed: 1, Start: f.begin, Segments: segments, Shards: 3,
		EventsPerSegment: each, Blobs: 50_000})
	if err != nil {
		return f, err
	}
	err = sim.WriteAll(ctx, func(e feedsim.Expected) {
		f.ids[e.ID] = len(f.ids) / each
	})
	if err != nil {
		return f, fmt.Errorf("writing the feed: %w", err)
	}
	f.bytes = sim.Summary().Bytes
	f.connection, err = sink.serve()
	return f, err
}

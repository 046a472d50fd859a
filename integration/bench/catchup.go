package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"blobfeed/integration/stack"
	"blobfeed/internal/feedsim"
)

// catchUp delivers a feed of many segments with 20 events each, in bundles, and then a part of it segment by segment.
func catchUp(ctx context.Context, segments, shards, brokers int) error {
	s, err := stack.Start(ctx, stack.Options{Brokers: max(1, brokers), Throughput: true}, nil)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what     string
		segments int
		bundle   int64
	}{{"in bundles", segments, bundleBytes}, {"one by one", max(1, segments/20), 0}} {
		if err := smallSegments(ctx, s.KafkaBrokers, c.what, c.segments, shards, c.bundle); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return s.Close()
}

func smallSegments(ctx context.Context, brokers []string, what string, segments, shards int, bundle int64) error {
	const each = 20
	root, err := os.MkdirTemp("", "bridge-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	spec := feedsim.Spec{Seed: 1, Shards: shards, Segments: segments, EventsPerSegment: each, Blobs: 10_000,
		Versions: []int{5},
		Start:    time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)} // brokers refuse what lies in the future
	if err := feedsim.Write(ctx, feedsim.Dir(root), spec, nil); err != nil {
		return err
	}
	events, txns, err := whole(ctx, brokers, root, fmt.Sprintf("bench-%d", time.Now().UnixNano()), bundle)
	if err != nil {
		return err
	}
	fmt.Printf("%-11s %6d segments   %6.0f segments/s   %8.0f events/s in %d transactions\n", what, segments,
		events/each, events, txns)
	return nil
}

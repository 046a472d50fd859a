package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"blobfeed/source"
	"blobfeed/source/dir"
)

// checkpoint is how far a reader is. Keep it wherever the results go, in one write with them.
type checkpoint struct {
	done   source.Segment               // the last one that was read to its end
	shards map[int]source.ShardPosition // in the segment behind it
}

// read reads the feed from the checkpoint on, up to a number of blocks, and moves the checkpoint.
func (c *checkpoint) read(ctx context.Context, feed *source.Feed, blocks int) (events int, err error) {
	for segment, err := range feed.Segments(ctx, c.done) {
		if err != nil {
			return events, err
		}
		manifest, err := feed.Manifest(ctx, segment) // the status first …
		if err != nil {
			return events, err
		}
		for _, shard := range manifest.Shards {
			r := feed.Shard(manifest, shard, c.shards[shard])
			if err := r.Poll(ctx, manifest.Finalized); err != nil { // … then the listing …
				return events, err
			}
			for { // … then to its end
				var batch source.Batch
				err := r.Next(ctx, &batch)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return events, err
				}
				events += len(batch.Events)
				c.shards[shard] = batch.Next
				if blocks--; blocks == 0 {
					return events, nil
				}
			}
		}
		if !manifest.Finalized {
			return events, nil // more comes: poll it later
		}
		c.done = segment
		clear(c.shards)
	}
	return events, nil
}

// A reader stops anywhere, and a later one resumes at its checkpoint: no event is lost or comes twice.
func Example_resume() {
	ctx := context.Background()
	store, err := dir.New("../testdata/real-2020") // or azure.New
	if err != nil {
		log.Fatal(err)
	}
	feed := source.New(store, source.Options{})
	c := checkpoint{shards: map[int]source.ShardPosition{}}
	first, err := c.read(ctx, feed, 5)
	if err != nil {
		log.Fatal(err)
	}
	rest, err := c.read(ctx, feed, -1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first > 0 && rest > 0, first+rest, "events up to", c.done)
	// Output: true 717 events up to 2020/05/29/2100
}

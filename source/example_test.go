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

// A reader that keeps a checkpoint per shard and goes on there.
func Example() {
	ctx := context.Background()
	store, err := dir.New("../testdata/real-2020") // or azure.New
	if err != nil {
		log.Fatal(err)
	}
	feed := source.New(store, source.Options{})
	checkpoint := map[int]source.ShardPosition{} // keep it with the segment, wherever the results go
	events, segments := 0, 0
	for segment, err := range feed.Segments(ctx, source.Segment{}) {
		if err != nil {
			log.Fatal(err)
		}
		manifest, err := feed.Manifest(ctx, segment) // the status first …
		if err != nil {
			log.Fatal(err)
		}
		for _, shard := range manifest.Shards {
			r := feed.Shard(manifest, shard, checkpoint[shard])
			if err := r.Poll(ctx, manifest.Finalized); err != nil { // … then the listing …
				log.Fatal(err)
			}
			var batch source.Batch
			for err = r.Next(ctx, &batch); err == nil; err = r.Next(ctx, &batch) { // … then to its end
				events += len(batch.Events)
				checkpoint[shard] = batch.Next
			}
			if !errors.Is(err, io.EOF) {
				log.Fatal(err)
			}
		}
		clear(checkpoint)
		segments++
	}
	fmt.Println(events, "events in", segments, "segments")
	// Output: 717 events in 10 segments
}

// Command feed writes a change feed into a directory, with the layout that Azure's has and as many events as you like:
// to see what the bridge does with your Kafka before your account has a feed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"blobfeed/internal/testing/feedsim"
)

func main() {
	spec := feedsim.Spec{Blobs: 50_000}
	flag.IntVar(&spec.Segments, "segments", 6, "hours of the feed")
	flag.IntVar(&spec.EventsPerSegment, "events", 50_000, "events of an hour")
	flag.IntVar(&spec.Shards, "shards", 1, "shards of an hour")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./integration/feed [-segments N] [-events N] [-shards N] DIRECTORY")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := feedsim.Write(context.Background(), feedsim.Dir(flag.Arg(0)), spec, nil); err != nil {
		fmt.Fprintf(os.Stderr, "feed: writing %s: %v\n", flag.Arg(0), err)
		os.Exit(1)
	}
}

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"blobfeed/integration/stack"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
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

// serveFeed writes a feed to memory and serves it until the server is closed: Azurite would be slower than the fast
// readers.
func serveFeed(ctx context.Context, segments, each int) (feed, *http.Server, error) {
	// Brokers reject records from the future.
	f := feed{begin: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), segments: segments, each: each, ids: map[string]int{}}
	files := account.NewFiles()
	sim, err := feedsim.New(files, feedsim.Spec{Seed: 1, Start: f.begin, Segments: segments, Shards: 3,
		EventsPerSegment: each, Blobs: 50_000})
	if err != nil {
		return f, nil, err
	}
	err = sim.WriteAll(ctx, func(e feedsim.Expected) {
		f.ids[e.ID] = len(f.ids) / each
	})
	if err != nil {
		return f, nil, fmt.Errorf("writing the feed: %w", err)
	}
	f.bytes = sim.Summary().Bytes
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return f, nil, err
	}
	f.connection = fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;"+
		"BlobEndpoint=http://%s/%[1]s;", stack.AzuriteAccount, stack.AzuriteKey, listener.Addr())
	server := &http.Server{Handler: &account.Server{Account: account.New(nil), Feed: files}}
	go server.Serve(listener) //nolint:errcheck // it ends with Close
	return f, server, nil
}

//go:build integration

package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
)

// tail follows a feed in blob storage, and ends by a signal.
func TestTail(t *testing.T) {
	t.Parallel()
	sink, settings := azurite(t)
	feed, err := feedsim.New(sink, feedsim.Spec{Shards: 2, BlockEvents: 5, Blobs: 20})
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	grow := func() {
		if err := feed.Append(t.Context(), 20, func(e feedsim.Expected) {
			if e.State {
				want++
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := feed.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	grow()
	p := start(t, []string{"tail", "--from", "earliest"}, append(settings, "POLL_INTERVAL=100ms")...)
	printed := func() int { return strings.Count("\n"+p.log.String(), "\n[\"") }
	await := func() { eventually(t, time.Minute, "the records", func() bool { return printed() >= want }) }
	for range 3 {
		await()
		if err := feed.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		grow()
	}
	await()
	p.signal(syscall.SIGINT)
	if code := p.wait(t, time.Minute); code != 0 || printed() != want {
		t.Errorf("exit code %d, %d records, want %d:\n%s", code, printed(), want, p.log)
	}
}

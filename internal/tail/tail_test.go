package tail

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/testing/feedsim"
)

// printed collects the positions of records.
type printed struct {
	mu        sync.Mutex
	positions []string
	changed   chan struct{}
	retries   chan struct{}
}

func newPrinted() *printed {
	return &printed{changed: make(chan struct{}, 1), retries: make(chan struct{}, 1)}
}

// Write gets the log.
func (p *printed) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "retrying") {
		select {
		case p.retries <- struct{}{}:
		default:
		}
	}
	return len(line), nil
}

func (p *printed) print(r *kgo.Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range r.Headers {
		if h.Key == "position" {
			p.positions = append(p.positions, string(h.Value))
		}
	}
	return nil
}

func (p *printed) flush() error {
	select {
	case p.changed <- struct{}{}:
	default:
	}
	return nil
}

// await returns when n records are printed.
func (p *printed) await(t *testing.T, n int) []string {
	t.Helper()
	for {
		p.mu.Lock()
		have := slices.Clone(p.positions)
		p.mu.Unlock()
		if len(have) >= n {
			return have
		}
		select {
		case <-p.changed:
		case <-time.After(30 * time.Second):
			t.Fatalf("%d records printed, want %d", len(have), n)
		}
	}
}

// start tails the feed in dir until the test ends.
func start(t *testing.T, dir, from string, change func(*config.Config)) *printed {
	t.Helper()
	c := config.Defaults()
	c.SourceURL, c.PollInterval = "file://"+dir, 10*time.Millisecond
	if change != nil {
		change(c)
	}
	target, err := history.ParseTarget(from)
	if err != nil {
		t.Fatal(err)
	}
	p := newPrinted()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, c, Options{From: target, Print: p.print, Flush: p.flush,
			Log: slog.New(slog.NewTextHandler(p, nil))})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the tail ended with %v", err)
		}
	})
	return p
}

// A tail follows a feed that grows: torn appends, chunks and shards that come late, segments that turn. It prints each
// event once, those of a shard in order, and no event of a segment before all of the one before.
func TestFollows(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{Shards: 4, LateShards: 1, BlockEvents: 5, Blobs: 30,
		EventsPerSegment: 200, TornAppends: true})
	if err == nil {
		err = feed.Open(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	expect := func(e feedsim.Expected) {
		if e.State && strings.HasPrefix(e.Key, "photos/") {
			want = append(want, e.Position())
		}
	}
	p := start(t, dir, "earliest", func(c *config.Config) { c.Containers = config.List{"photos"} })
	for range 3 {
		for range 10 {
			if err := feed.Append(ctx, 20, expect); err != nil {
				t.Fatal(err)
			}
		}
		feed.Roll()
		if err := errors.Join(feed.Reveal(ctx), feed.Append(ctx, 20, expect)); err != nil {
			t.Fatal(err)
		}
		p.await(t, len(want)) // of the segment while it is open
		if err := feed.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	got := p.await(t, len(want))
	shardOf := func(position string) string { return position[:len("2026/01/01/0000/00")] }
	segmentOf := func(position string) string { return position[:len("2026/01/01/0000")] }
	if !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(segmentOf(a), segmentOf(b)) }) {
		t.Error("segments are mixed")
	}
	byShard := func(a, b string) int { return strings.Compare(shardOf(a), shardOf(b)) }
	slices.SortStableFunc(got, byShard)
	slices.SortStableFunc(want, byShard)
	if !slices.Equal(got, want) {
		t.Errorf("%d records printed, want %d:\n%s\n%s", len(got), len(want), got, want)
	}
}

// A time starts among the events of a segment: the earlier ones are left out.
func TestFromTime(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{EventsPerSegment: 100})
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	err = errors.Join(feed.Open(ctx), feed.Append(ctx, 100, func(e feedsim.Expected) {
		if e.State && e.EventTime >= "2026-01-01T00:30" {
			want++
		}
	}), feed.Next(ctx))
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, "2026-01-01T00:30:00Z", nil)
	if err := feed.Append(ctx, 1, func(e feedsim.Expected) { want++ }); err != nil {
		t.Fatal(err)
	}
	if got := p.await(t, want); len(got) != want {
		t.Errorf("%d records printed, want %d", len(got), want)
	}
}

// A read that fails later is retried; the place is kept.
func TestRetries(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{})
	want := 0
	count := func(e feedsim.Expected) {
		if e.State {
			want++
		}
	}
	if err := errors.Join(err, feed.Open(ctx), feed.Append(ctx, 50, count)); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, "earliest", nil)
	p.await(t, want)
	meta := filepath.Join(dir, "idx/segments/2026/01/01/0000/meta.json")
	text, err := os.ReadFile(meta)
	if err == nil {
		err = os.WriteFile(meta, text[:10], 0o600)
	}
	if err := errors.Join(err, feed.Append(ctx, 50, count)); err != nil {
		t.Fatal(err)
	}
	<-p.retries
	if err := os.WriteFile(meta, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.await(t, want); len(got) != want {
		t.Errorf("%d records printed, want %d", len(got), want)
	}
}

// What cannot be read at the start ends the tail: it is mostly a mistake in the settings. With Once, so does what
// cannot be read later.
func TestFails(t *testing.T) {
	damaged := t.TempDir()
	if err := os.CopyFS(damaged, os.DirFS("../../testdata/real-2020")); err != nil {
		t.Fatal(err)
	}
	chunk := filepath.Join(damaged, "log/00/2020/05/27/1600/00000.avro")
	whole, err := os.ReadFile(chunk)
	if err == nil {
		err = os.WriteFile(chunk, whole[:len(whole)-7], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	incomplete := t.TempDir()
	err = errors.Join(os.Mkdir(filepath.Join(incomplete, "meta"), 0o700),
		os.WriteFile(filepath.Join(incomplete, "meta/segments.json"), []byte("{"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{
		"/nosuch": "nosuch", damaged: "2020/05/27/1600/00000.avro", incomplete: "segments.json",
	} {
		c := config.Defaults()
		c.SourceURL = "file://" + dir
		p := newPrinted()
		from, _ := history.ParseTarget("earliest")
		err := Run(t.Context(), c, Options{From: from, Once: dir == damaged, Print: p.print, Flush: p.flush,
			Log: slog.New(slog.NewTextHandler(p, nil))})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

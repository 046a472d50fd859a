package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/integration/stack"
	"blobfeed/internal/pause"
	"blobfeed/internal/testing/feedsim"
)

// live measures how long events take from the append to a reader of committed records, while a feed grows each minute,
// as Azure's does. All programs and variants read the same feed. They start some seconds apart, because where looks
// each 15 s meet the appends depends on the start. The first append shows a program where they are.
func live(ctx context.Context, programs, variants []string, appends, brokers int) error {
	root, programs, err := prepare(programs)
	defer os.RemoveAll(root)
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "feed")
	spec := feedsim.Spec{Shards: 1, EventsPerSegment: 1000, Blobs: 10, Start: time.Now().UTC().Truncate(time.Hour)}
	feed, err := feedsim.New(feedsim.Dir(dir), spec)
	if err != nil {
		return err
	}
	if err := errors.Join(feed.Open(ctx), feed.Append(ctx, 10, nil)); err != nil {
		return err
	}
	s, err := stack.Start(ctx, stack.Options{Brokers: max(1, brokers)}, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	var watchers []*watcher
	for _, variant := range variants {
		for _, program := range programs {
			w := &watcher{name: fmt.Sprintf("live-%d", len(watchers)), appended: map[string]time.Time{},
				title: fmt.Sprintf("%-10s %-40s", filepath.Base(program), variant)}
			stop, err := w.start(ctx, program, variant, s.KafkaBrokers, dir)
			if err != nil {
				return err
			}
			defer stop()
			watchers = append(watchers, w)
			if err := pause.For(ctx, apart); err != nil {
				return err
			}
		}
	}
	for i := range appends + 1 {
		if err := appendOnce(ctx, feed, watchers, i > 0); err != nil {
			return err
		}
	}
	if err := pause.For(ctx, time.Minute/2); err != nil { // all have looked twice
		return err
	}
	for _, w := range watchers {
		fmt.Println(w.title, w)
	}
	return nil
}

// apart is the time between two starts. It does not divide 15 s.
const apart = 4 * time.Second

// appendOnce waits for the next append, makes it, and tells the watchers if it counts.
func appendOnce(ctx context.Context, feed *feedsim.Feed, watchers []*watcher, counts bool) error {
	if err := pause.For(ctx, time.Minute); err != nil {
		return err
	}
	for _, w := range watchers { // none may see the record before it knows of the append
		w.mu.Lock()
		defer w.mu.Unlock()
	}
	var positions []string
	err := feed.Append(ctx, 5, func(e feedsim.Expected) { positions = append(positions, e.Position()) })
	for _, w := range watchers {
		for _, p := range positions {
			if counts {
				w.appended[p] = time.Now()
			}
		}
	}
	return err
}

// watcher reads the topic of one program.
type watcher struct {
	name, title string

	mu       sync.Mutex
	appended map[string]time.Time // by position; those that did not arrive
	took     []float64            // seconds
}

// start starts the program and its reader. Stop ends both.
func (w *watcher) start(ctx context.Context, program, variant string, brokers []string, feed string) (stop func(),
	err error) {
	cmd, out := command(ctx, program, w.name, variant, "file://"+feed, brokers, "BRIDGE_EVENTS=all",
		"BRIDGE_TOPIC_PARTITIONS=1")
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(w.name),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.UnknownTopicRetries(-1))
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		cl.Close()
		return nil, err
	}
	go w.read(ctx, cl)
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n%.2000s", w.title, err, out)
		}
		cl.Close()
	}, nil
}

// read notes how long each record took, until the client is closed.
func (w *watcher) read(ctx context.Context, cl *kgo.Client) {
	for {
		fetches := cl.PollFetches(ctx)
		if fetches.IsClientClosed() || ctx.Err() != nil {
			return
		}
		now := time.Now()
		w.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			for _, h := range r.Headers {
				at, known := w.appended[string(h.Value)]
				if h.Key == "position" && known {
					delete(w.appended, string(h.Value))
					w.took = append(w.took, now.Sub(at).Seconds())
				}
			}
		})
		w.mu.Unlock()
	}
}

func (w *watcher) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.took) == 0 {
		return "no event has arrived"
	}
	slices.Sort(w.took)
	at := func(share float64) float64 { return w.took[min(len(w.took)-1, int(share*float64(len(w.took))))] }
	return fmt.Sprintf("median %.1f s, 99 %% below %.1f s, of %d events; %d are missing", at(0.5), at(0.99),
		len(w.took), len(w.appended))
}

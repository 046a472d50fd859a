package bridge

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
	"blobfeed/source/dir"
)

// counting is a Store that counts what is asked of it.
type counting struct {
	source.Store
	mu                  sync.Mutex
	listings, manifests int           // listings of shards; readings of a manifest, one at each poll
	asked               chan struct{} // capacity 1: one of them was counted
}

func (c *counting) List(ctx context.Context, prefix, delimiter string) iter.Seq2[source.Entry, error] {
	if strings.HasPrefix(prefix, "log/") {
		c.add(&c.listings)
	}
	return c.Store.List(ctx, prefix, delimiter)
}

func (c *counting) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	if strings.HasPrefix(name, "idx/") {
		c.add(&c.manifests)
	}
	return c.Store.ReadAt(ctx, name, p, offset)
}

func (c *counting) add(n *int) {
	c.mu.Lock()
	*n++
	c.mu.Unlock()
	select {
	case c.asked <- struct{}{}:
	default: // a signal is there already, and who gets it counts all
	}
}

// during waits for a number of polls. It returns how many came meanwhile, which may be more, and how many listings.
func (c *counting) during(polls int) (manifests, listings int) {
	count := func() (int, int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.manifests, c.listings
	}
	manifestsBefore, listingsBefore := count()
	for manifests < polls {
		<-c.asked
		manifests, listings = count()
		manifests, listings = manifests-manifestsBefore, listings-listingsBefore
	}
	return manifests, listings
}

// The last segment of an idle account stays open for days. When its time is over its shards are not listed at
// each poll; its end is seen at once all the same. Before that, each poll lists each shard once.
func TestQuiet(t *testing.T) {
	t.Parallel()
	ctx, feed := t.Context(), t.TempDir()
	const shards = 3
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	live, err := feedsim.New(feedsim.Dir(feed),
		feedsim.Spec{Start: begin, Shards: shards, EventsPerSegment: 100, Blobs: 100})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(live.Open(ctx), live.Append(ctx, 30, nil)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		now   time.Time
		quiet bool
	}{
		"its hour":      {now: begin.Add(time.Hour)},
		"an hour later": {now: begin.Add(2 * time.Hour), quiet: true},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := dir.New(feed)
			if err != nil {
				t.Fatal(err)
			}
			counts := &counting{Store: store, asked: make(chan struct{}, 1)}
			o, r := options(t, broker(t), feed)
			o.Feed.Source = source.New(counts, source.Options{})
			o.Once, o.Pace.PollInterval, o.Pace.QuietInterval = false, 5*time.Millisecond, time.Hour
			o.Kafka.Leases = 1
			o.Now = func() time.Time { return c.now }
			stop, cancel := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- New(o).Run(stop, ctx) }()
			<-r.changed
			counts.during(2) // one more pass, which finds nothing
			polls, listings := counts.during(20)
			cancel()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if c.quiet && listings > 2*shards {
				t.Errorf("%d listings of %d shards in %d polls, though nothing is written", listings, shards, polls)
			}
			// A poll may be under way at either end, and while the shards are listed the next one begins.
			if most := (polls + 5) * shards; !c.quiet && (listings < polls*shards/3 || listings > most) {
				t.Errorf("%d listings of %d shards in %d polls, want one of each at each poll", listings, shards, polls)
			}
		})
	}
	t.Run("its end", func(t *testing.T) {
		c := broker(t)
		o, r := options(t, c, feed)
		o.Once, o.Pace.QuietInterval = false, time.Hour
		o.Now = func() time.Time { return begin.Add(2 * time.Hour) }
		stop, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- New(o).Run(stop, ctx) }()
		<-r.changed
		if err := errors.Join(live.Append(ctx, 10, nil), live.Finalize(ctx)); err != nil {
			t.Fatal(err)
		}
		<-r.done
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if data, markers := consume(t, c, promises()...); data != 40 || markers != partitions {
			t.Errorf("%d records, %d markers", data, markers)
		}
	})
}

// drains hears when a lease says that it has everything.
type drains struct {
	*recorder
	said chan struct{} // capacity 1000
}

func (d *drains) Active(_ int32, a Activity) {
	if a == Drained {
		select {
		case d.said <- struct{}{}:
		default: // nobody waits any more
		}
	}
}

// A lease that could not look for more, and can again, says so at once, however long nothing comes and the
// shards go unlisted.
func TestTroubleWhileDrainedIsOver(t *testing.T) {
	m, live := simulated(t, feedsim.Spec{})
	must(t, live.Append(t.Context(), 10, nil))
	var refusing atomic.Bool
	m.onRead = func(name string) error {
		if refusing.Load() && strings.HasSuffix(name, "/0000/meta.json") {
			return errors.New("refused")
		}
		return nil
	}
	o, r := over(t, broker(t), m)
	d := &drains{r, make(chan struct{}, 1000)}
	o.Observer, o.Once = Observers{d}, false
	o.Pace.PollInterval, o.Pace.QuietInterval = 5*time.Millisecond, time.Hour
	o.Now = func() time.Time { return time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC) }
	stop := run(t, o)
	defer stop()
	<-d.said // all is delivered
	<-d.said // nothing came since: from now on only the manifest is looked at
	refusing.Store(true)
	<-r.failing
	for len(d.said) > 0 { // before the trouble
		<-d.said
	}
	refusing.Store(false)
	select {
	case <-d.said:
	case <-time.After(10 * time.Second):
		t.Error("it does not say that it has everything")
	}
}

package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/envelope"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// world is an account with its feed. Time is an hour of the feed, and passes with every change.
type world struct {
	t       *testing.T
	account *account.Account
	store   *account.Store
	memory  *memory
	feed    *feedsim.Feed

	recorder *recorder // of the last options

	mu    sync.Mutex
	rng   *rand.Rand
	clock atomic.Int64 // ns
	hour  int
	names []string // containers
}

func newWorld(t *testing.T, containers, blobs int) *world {
	t.Helper()
	w := &world{t: t, rng: rand.New(rand.NewPCG(1, uint64(blobs)))}
	w.clock.Store(time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC).UnixNano())
	w.account = account.New(func() time.Time { return time.Unix(0, w.clock.Load()) })
	w.store = &account.Store{Account: w.account}
	w.memory, w.feed = simulated(t, feedsim.Spec{Shards: 3})
	for c := range containers {
		w.names = append(w.names, fmt.Sprintf("c%d", c))
		for b := range blobs {
			w.put(c, b)
		}
	}
	w.account.Record()
	return w
}

// afterScan starts a bridge with an initial scan, and waits until it has delivered the feed behind the rows.
func afterScan(t *testing.T, containers, blobs int, set func(*Options)) (*world, *kfake.Cluster, Options) {
	t.Helper()
	w := newWorld(t, containers, blobs)
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan = ScanYes
	set(&o)
	live(t, o)
	awaitDrained(t, o, w)
	return w, c, o
}

func (w *world) put(container, blob int) {
	w.clock.Add(int64(time.Millisecond))
	w.account.Put(w.names[container], inventory.Blob{Name: fmt.Sprintf("dir/ü%d", blob), BlobType: "BlockBlob",
		Length: w.rng.Int64N(1000)})
}

// change makes changes at random, most of them of few blobs.
func (w *world) change(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range n {
		c, b := w.rng.IntN(len(w.names)), w.rng.IntN(40)
		w.clock.Add(int64(time.Millisecond))
		if w.rng.IntN(3) == 0 {
			w.account.Delete(w.names[c], fmt.Sprintf("dir/ü%d", b))
		} else {
			w.put(c, b)
		}
	}
}

// publish writes the events of changes into the feed, if late only some of them.
func (w *world) publish(late bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var later func(account.Change) bool
	if late {
		later = func(account.Change) bool { return w.rng.IntN(2) == 0 }
	}
	if _, err := w.account.Publish(context.Background(), w.feed, later, nil); err != nil {
		w.t.Error(err)
	}
}

// next ends the segment of this hour.
func (w *world) next() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.feed.Next(context.Background()); err != nil {
		w.t.Error(err)
	}
	w.hour++
	w.clock.Store(time.Date(2026, 1, 1, w.hour, 1, 0, 0, time.UTC).UnixNano())
}

// segment returns the path of the open segment.
func (w *world) segment() string { return w.feed.Segment().Format("2006/01/02/1504") }

// options are those of a bridge for this world.
func (w *world) options(c *kfake.Cluster) Options {
	o, r := over(w.t, c, w.memory)
	w.recorder = r
	o.Feed.Inventory, o.Feed.AccountURL = w.store, "https://a/"
	o.Pace.ScanRequests, o.Pace.ScanRound = 3, 200*time.Millisecond
	o.Records.Events = envelope.EventsState
	o.Records.Encoder = encoder(envelope.Options{Events: envelope.EventsState, Updated: true})
	return o
}

// table is what consumers have: the last record of each key.
type table struct{ rows map[string]string } // etags by path

func (t *table) Note(r verify.Record) {
	if r.Key == nil {
		return
	}
	var path []string
	var value struct{ After *struct{ Etag string } }
	if json.Unmarshal(r.Key, &path) != nil || json.Unmarshal(r.Value, &value) != nil {
		return
	}
	delete(t.rows, path[0])
	if value.After != nil {
		t.rows[path[0]] = value.After.Etag
	}
}

func (t *table) Failures() []verify.Failure { return nil }

// compare fails for keys in which the topic and the account differ.
func (w *world) compare(c *kfake.Cluster, also ...verify.Validator) {
	w.t.Helper()
	got := &table{rows: map[string]string{}}
	consume(w.t, c, append(also, got)...)
	want := w.account.Blobs()
	for path, blob := range want {
		if got.rows[path] != blob.ETag {
			w.t.Errorf("%s: the topic has etag %q, the account %q", path, got.rows[path], blob.ETag)
		}
	}
	for path := range got.rows {
		if _, ok := want[path]; !ok {
			w.t.Errorf("%s: the account does not have it", path)
		}
	}
}

func scanOf(s *offsets.State) *offsets.Scan {
	if s.Frontier == nil {
		return nil
	}
	return s.Frontier.Scan
}

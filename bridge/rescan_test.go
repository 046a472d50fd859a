package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/feedsim"
	"blobfeed/internal/feedsim/account"
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
	o.Inventory, o.AccountURL, o.ScanRequests, o.ScanRound = w.store, "https://a/", 3, 200*time.Millisecond
	o.Events = envelope.EventsState
	o.Encoder = encoder(envelope.Options{Events: envelope.EventsState, Updated: true})
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

// The account changes before every request of the scan, and the feed says so late; afterwards the topic is the account.
// No marker is below the end of the scan, and none is missing above.
func TestTableIsTheAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5, 700)
	w.change(200)
	w.publish(true)
	w.next()
	w.store.Size = func(limit int) int { return min(limit, 50) }
	w.store.Before = func(context.Context, string, inventory.Query) error {
		w.change(7)
		w.publish(true)
		return nil
	}
	c := broker(t)
	o := w.options(c)
	o.InitialScan = ScanYes
	live(t, o)
	scanned := awaitState(t, o, "the scan is done", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Done
	})
	for range 3 {
		w.change(50)
		w.publish(false)
		w.next()
	}
	awaitState(t, o, "all is delivered", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Completed.String() >= "2026/01/01/0300"
	})
	var marks []string
	w.compare(c, noted(func(r verify.Record) {
		if r.Key == nil {
			marks = append(marks, string(r.Value))
		}
	}))
	if len(marks) == 0 {
		t.Error("no marker")
	}
	listed := scanned.Frontier.Scan.Listed
	for _, m := range marks {
		var marker struct{ Resolved string }
		if json.Unmarshal([]byte(m), &marker); marker.Resolved < listed {
			t.Errorf("a marker at %s, and the scan ended at %s", marker.Resolved, listed)
		}
	}
}

// Retention removes a segment with writes and deletions that nobody has read. With RescanGaps the bridge repairs the
// topic by itself, also while the last segment is open for good.
func TestRescanRepairsGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, 300)
	c := broker(t)
	o := w.options(c)
	o.InitialScan, o.SkipGaps, o.RescanGaps, o.BundleBytes = ScanYes, true, true, 0
	w.store.Size = func(limit int) int { return min(limit, 40) }
	stop := run(t, o)
	w.change(100)
	w.publish(false)
	w.next()
	awaitState(t, o, "the first segment is complete", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Current.String() == "2026/01/01/0100"
	})
	w.change(100)
	w.publish(false)
	awaitDrained(t, o, w)
	stop()

	lost := w.segment()
	w.change(300)
	w.publish(false)
	w.next()
	w.change(20)
	w.publish(false)
	w.memory.remove("idx/segments/2026/01/01/0000")
	w.memory.remove("idx/segments/" + lost)
	for shard := range 3 {
		w.memory.remove(fmt.Sprintf("log/%02d/%s", shard, lost))
	}
	w.store.Before = func(_ context.Context, op string, _ inventory.Query) error {
		if op == "list" {
			w.change(2)
			w.publish(true)
		}
		return nil
	}
	live(t, o)
	s := awaitState(t, o, "the scan is done", func(s *offsets.State) bool {
		return scanOf(s) != nil && !scanOf(s).Initial && scanOf(s).Done
	})
	if s.Frontier.Scan.Deleted == 0 || s.Frontier.Gaps != 1 {
		t.Errorf("%+v after %d gaps", s.Frontier.Scan, s.Frontier.Gaps)
	}
	w.publish(false)
	awaitDrained(t, o, w)
	w.compare(c)
}

// awaitDrained returns when the open segment is delivered as far as it goes.
func awaitDrained(t *testing.T, o Options, w *world) {
	t.Helper()
	awaitState(t, o, "the open segment is drained", func(s *offsets.State) bool {
		if s.Frontier == nil || s.Frontier.Current.String() != w.segment() {
			return false
		}
		w.memory.mu.Lock()
		defer w.memory.mu.Unlock()
		for name, b := range w.memory.blobs {
			var shard, chunk int
			rest, ok := strings.CutPrefix(name, "log/")
			if !ok || !strings.Contains(name, w.segment()) {
				continue
			}
			if _, err := fmt.Sscanf(rest, "%02d/"+w.segment()+"/%05d.avro", &shard, &chunk); err != nil {
				t.Error(name, err)
			}
			at := s.Cursor(int32(shard%int(o.OffsetsPartitions))).At(s.Frontier.Current, shard)
			if at.Chunk != chunk || at.Offset != int64(len(b)) {
				return false
			}
		}
		return true
	})
}

// A scan that is requested runs beside the delivery, in rounds, and can be cancelled.
func TestRequestedScan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 400)
	c := broker(t)
	o := w.options(c)
	w.change(100)
	w.publish(false)
	live(t, o)
	awaitDrained(t, o, w)
	cl, err := kgo.NewClient(o.Client...)
	must(t, err)
	defer cl.Close()
	ask := func(r offsets.Request) {
		r.ID, r.Time = offsets.ScanID(time.Now()), time.Now()
		must(t, offsets.Ask(t.Context(), cl, o.offsetsTopic(), r))
	}
	ask(offsets.Request{Container: "c1"})
	awaitState(t, o, "the scan of a container is done", func(s *offsets.State) bool {
		f := scanOf(s)
		return f != nil && f.Done && !f.Cancelled && f.Rows == int64(w.account.Len("c1"))
	})
	ask(offsets.Request{Sweep: true})
	awaitState(t, o, "the scan of all is done", func(s *offsets.State) bool {
		f := scanOf(s)
		return f != nil && f.Done && f.Sweep && f.Rows == int64(len(w.account.Blobs()))
	})
	w.compare(c)

	block := make(chan struct{})
	w.store.Before = func(ctx context.Context, _ string, _ inventory.Query) error {
		select {
		case <-block:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	ask(offsets.Request{})
	s := awaitState(t, o, "a scan that gets no answer", func(s *offsets.State) bool {
		return scanOf(s).Active()
	})
	must(t, offsets.Ask(t.Context(), cl, o.offsetsTopic(), offsets.Request{ID: s.Frontier.Scan.ID, Time: time.Now(),
		Cancel: true}))
	awaitState(t, o, "it is cancelled", func(s *offsets.State) bool { return scanOf(s) != nil && scanOf(s).Cancelled })
	w.change(10)
	w.publish(false)
	awaitDrained(t, o, w)
	w.compare(c)
}

func scanOf(s *offsets.State) *offsets.Scan {
	if s.Frontier == nil {
		return nil
	}
	return s.Frontier.Scan
}

package bridge

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// filled returns an account with blobs in containers.
func filled(containers, blobs int) *account.Account {
	a := account.New(nil)
	for c := range containers {
		container := fmt.Sprintf("photos%02d", c)
		a.Create(container)
		for b := range blobs {
			a.Put(container, inventory.Blob{Name: fmt.Sprintf("2026/%05d ü.jpg", b), BlobType: "BlockBlob"})
		}
	}
	return a
}

// scanned notes rows and events.
type scanned struct {
	rows, events int
	keys         map[string]int // rows by key
	updated      map[string]int // rows by their time
	early        bool           // an event precedes a row on its partition
	markers      map[string]int
	seen         map[int32]bool // events by partition
}

func (s *scanned) Note(r verify.Record) {
	switch {
	case r.Key == nil:
		s.markers[string(r.Value)]++
	case r.Header("scan") != nil:
		s.rows++
		s.keys[string(r.Key)]++
		s.updated[string(r.Header("updated"))]++
		s.early = s.early || s.seen[r.Partition]
	default:
		s.events++
		s.seen[r.Partition] = true
	}
}

func (s *scanned) Failures() []verify.Failure { return nil }

func newScanned() *scanned {
	return &scanned{keys: map[string]int{}, updated: map[string]int{}, markers: map[string]int{},
		seen: map[int32]bool{}}
}

// The first start writes a row for each blob, once, and then the feed from its open segment on. There is no marker: the
// feed ends before the scan does.
func TestInitialScan(t *testing.T) {
	t.Parallel()
	c := broker(t)
	dir := writeFeed(t, feedsim.Spec{EventsPerSegment: 60, Segments: 3, Shards: 3, LeaveOpen: true})
	o, _ := options(t, c, dir)
	o.Feed.InitialScan, o.Feed.AccountURL, o.Pace.ScanRequests, o.Pace.ScanRound = ScanYes, "https://a/", 4, time.Second
	o.Feed.Inventory = &account.Store{Account: filled(7, 1200)}
	o.Observer = append(o.Observer, onCommit(func(c Commit) {
		if c.Rows > 0 && c.Segment.String() != "2026/01/01/0159" {
			t.Errorf("rows of segment %q", c.Segment)
		}
	}))
	must(t, runOnce(t, o))
	seen := newScanned()
	consume(t, c, seen)
	if seen.rows != 7*1200 || len(seen.keys) != seen.rows || len(seen.updated) != 1 || seen.early {
		t.Errorf("%d rows of %d keys, %v, early %t", seen.rows, len(seen.keys), seen.updated, seen.early)
	}
	if seen.events != 60 || len(seen.markers) != 0 {
		t.Errorf("%d events, markers %v", seen.events, seen.markers)
	}
	awaitState(t, o, "the scan is done", func(s *offsets.State) bool {
		f := s.Frontier
		return f != nil && f.Scan != nil && f.Scan.Done && f.Scan.Rows == 7*1200 && f.Scan.Listed != ""
	})
}

// A crash at any request or commit of the scan: every blob still has one row, and the rest is as without a crash.
func TestScanAfterCrashes(t *testing.T) {
	t.Parallel()
	for name, transactional := range map[string]bool{"exactly once": true, "at least once": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4, 300)
			c := broker(t)
			w.store.Size = func(limit int) int { return min(limit, 60) }
			ctx := t.Context()
			for crash := range 12 {
				o := w.options(c)
				o.Kafka.Transactional, o.Feed.InitialScan = transactional, ScanYes
				o.Pace.CommitInterval, o.Pace.TxnRecords = time.Millisecond, 20
				hard, kill := context.WithCancel(ctx)
				if crash%2 == 0 {
					o.Observer = Observers{&crashing{recorder: w.recorder, left: 1 + crash/2, kill: kill}}
				} else {
					var asked atomic.Int32
					w.store.Before = func(ctx context.Context, _ string, _ inventory.Query) error {
						if asked.Add(1) == int32(1+crash/2) {
							kill()
						}
						return ctx.Err()
					}
				}
				if err := New(o).Run(hard, hard); err != nil {
					t.Errorf("crash %d: %v", crash, err)
				}
				kill()
				w.store.Before = nil
			}
			o := w.options(c)
			o.Kafka.Transactional, o.Feed.InitialScan = transactional, ScanYes
			w.change(50)
			w.publish(false)
			w.next()
			must(t, runOnce(t, o))
			seen := newScanned()
			w.compare(c, seen)
			doubled := seen.rows - len(seen.keys)
			if len(seen.updated) != 1 || transactional && (doubled > 0 || seen.early) {
				t.Errorf("%d rows of %d keys, %v, early %t", seen.rows, len(seen.keys), seen.updated, seen.early)
			}
		})
	}
}

// The pages of all requests fit into the memory beside the blocks (I9).
func TestScanPagesAreBounded(t *testing.T) {
	t.Parallel()
	for memory, want := range map[int]int32{0: inventory.MaxPage, 32 << 20: 1500} {
		c := broker(t)
		o, _ := options(t, c, writeFeed(t, feedsim.Spec{EventsPerSegment: 6, Segments: 2, LeaveOpen: true}))
		o.Feed.InitialScan, o.Feed.AccountURL, o.Pace.ScanRequests, o.Pace.BufferBytes = ScanYes, "https://a/", 32, memory
		var most atomic.Int32
		store := &account.Store{Account: filled(1, 3000)}
		store.Before = func(_ context.Context, _ string, q inventory.Query) error {
			most.Store(max(most.Load(), int32(q.Max)))
			return nil
		}
		o.Feed.Inventory = store
		must(t, runOnce(t, o))
		if got := most.Load(); got > want {
			t.Errorf("with %d bytes of memory a page has %d blobs", memory, got)
		}
	}
}

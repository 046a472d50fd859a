package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge/pipeline"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// transaction is what one committed transaction holds.
type transaction struct{ records, markers, cursors, frontiers int }

// committedTransactions reads the topics, and returns the committed transactions: brokers give each one an epoch of its
// producer.
func committedTransactions(t *testing.T, c *kfake.Cluster, o Options) map[string]*transaction {
	t.Helper()
	names := []string{topic, o.offsetsTopic()}
	cl, err := kgo.NewClient(append(o.Kafka.Client, kgo.ConsumeTopics(names...), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	must(t, err)
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(t.Context(), names...)
	must(t, err)
	left := map[string]bool{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[fmt.Sprint(o.Topic, o.Partition)] = true
		}
	})
	all := map[string]*transaction{}
	for len(left) > 0 {
		cl.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			if end, _ := ends.Lookup(r.Topic, r.Partition); r.Offset+1 >= end.Offset {
				delete(left, fmt.Sprint(r.Topic, r.Partition))
			}
			if r.Attrs.IsControl() {
				return
			}
			id := fmt.Sprint(r.ProducerID, "/", r.ProducerEpoch)
			txn := all[id]
			if txn == nil {
				txn = &transaction{}
				all[id] = txn
			}
			switch {
			case r.Topic == topic && r.Key == nil:
				txn.markers++
			case r.Topic == topic:
				txn.records++
			case string(r.Key) == "cursor":
				txn.cursors++
			case string(r.Key) == "frontier":
				txn.frontiers++
			}
		})
	}
	return all
}

// Whatever fails meanwhile, a transaction is whole: no records without the cursor that covers them (I1), no markers
// without the frontier that holds them (I6).
func TestTransactionsAreWhole(t *testing.T) {
	t.Parallel()
	const segments = 40
	for _, bytes := range []int64{0, 1 << 20} {
		t.Run(fmt.Sprintf("bundles of %d bytes", bytes), func(t *testing.T) {
			t.Parallel()
			m, _, complete := smallSegments(t, segments)
			var reads atomic.Int64
			m.onRead = func(name string) error {
				if strings.HasPrefix(name, "idx/segments/") && reads.Add(1)%4 == 0 {
					return errors.New("the server is busy")
				}
				return nil
			}
			c := broker(t)
			o, _ := over(t, c, m)
			o.Pace.BundleBytes = bytes
			stop := run(t, o)
			awaitState(t, o, "all is delivered", func(s *offsets.State) bool {
				read := int64(0)
				for _, c := range s.Cursors {
					if c != nil {
						read += c.Counts.Read
					}
				}
				return read == 20*(segments+1)
			})
			stop()
			if data, markers := consume(t, c, append(promises(), complete)...); data != 20*(segments+1) ||
				markers != segments*partitions {
				t.Errorf("%d records, %d markers", data, markers)
			}
			torn, all := 0, committedTransactions(t, c, o)
			for _, txn := range all {
				if txn.markers > 0 && txn.frontiers != 1 || txn.records > 0 && txn.cursors != 1 {
					torn++
					t.Errorf("a transaction of %+v", *txn)
				}
			}
			t.Logf("%d of %d transactions are torn", torn, len(all))
		})
	}
}

// A listing fails behind an initial scan, when the first bundle is ready, and the instance ends. The next one delivers
// each event once (I1).
func TestBundleBehindAScanOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 20)
	w.change(10)
	w.publish(false) // its segment is open when the scan begins
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan = ScanYes
	var failing, read atomic.Bool
	var once sync.Once
	w.store.Before = func(_ context.Context, op string, _ inventory.Query) error {
		if op == "list" { // the feed grows while the account is listed: what follows is small and finalized
			once.Do(func() {
				for range 3 {
					w.change(10)
					w.publish(false)
					w.next()
				}
				failing.Store(true)
			})
		}
		return nil
	}
	w.memory.onRead = func(name string) error {
		if failing.Load() && strings.HasPrefix(name, "log/") {
			read.Store(true)
		}
		return nil
	}
	w.memory.onList = func(prefix string) error {
		// What is listed behind the reading is whether retention has reached the begin of the feed meanwhile.
		if failing.Load() && read.Load() && strings.HasPrefix(prefix, "idx/") {
			return errors.New("the server is busy")
		}
		return nil
	}
	if err := runOnce(t, o); err == nil {
		t.Fatal("the run ended well, although listings fail")
	}
	failing.Store(false)
	unique := verify.NewUnique()
	must(t, runOnce(t, o))
	consume(t, c, unique)
	w.compare(c)
}

// Keys change their partition only across a marker (I5): neither the name of a segment behind the rows of a scan, nor a
// seek before the first marker, brings new counts.
func TestNewPartitionsOnlyWithMarkers(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(*testing.T, *world, *kfake.Cluster, Options, *atomic.Bool){
		"the next segment is named behind the rows of a scan": func(
			t *testing.T, w *world, c *kfake.Cluster, o Options, busy *atomic.Bool,
		) {
			busy.Store(true)
			w.next()
			name := "idx/segments/" + w.segment() + "/meta.json"
			w.memory.mu.Lock()
			manifest := w.memory.blobs[name]
			w.memory.mu.Unlock()
			w.memory.remove(name)
			busy.Store(false)
			awaitState(t, o, "there is no segment to deliver", func(s *offsets.State) bool {
				return s.Frontier != nil && s.Frontier.Current == (source.Segment{})
			})
			ask(t, o, offsets.Request{ID: "rows", Time: time.Now()})
			awaitState(t, o, "the rows are written", isDone("rows"))
			_, err := admin(t, c).CreatePartitions(t.Context(), 3, topic)
			must(t, err)
			w.change(60)
			w.publish(false)
			must(t, w.memory.Put(t.Context(), name, manifest))
		},
		"a seek": func(t *testing.T, w *world, c *kfake.Cluster, o Options, _ *atomic.Bool) {
			_, err := admin(t, c).CreatePartitions(t.Context(), 3, topic)
			must(t, err)
			s := seize(t, o)
			must(t, seekEarliest(t, s))
			s.Close(t.Context())
			w.change(60)
			w.publish(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2, 50)
			w.change(60)
			w.publish(false)
			c := broker(t)
			o := w.options(c)
			o.Pace.BundleBytes = 0
			var busy atomic.Bool
			w.memory.onList = func(string) error {
				if busy.Load() {
					return errors.New("the server is busy")
				}
				return nil
			}
			live(t, o)
			awaitDrained(t, o, w)
			disturb(t, w, c, o, &busy)
			awaitDrained(t, o, w)
			consume(t, c, newLanes())
		})
	}
}

// lanes fails if a key is in two partitions between two markers. Within a bundle, an added partition has the last of
// them only.
type lanes struct {
	markers map[int32]string
	of      map[string]lane // the last record of a key
	failed  []verify.Failure
}

type lane struct {
	partition int32
	marker    string // the last one of the partition before it
}

func newLanes() *lanes { return &lanes{markers: map[int32]string{}, of: map[string]lane{}} }

func (l *lanes) Note(r verify.Record) {
	if r.Key == nil {
		l.markers[r.Partition] = r.MarkerTime() + string(r.Header("seek"))
		return
	}
	now := lane{r.Partition, l.markers[r.Partition]}
	if was, ok := l.of[string(r.Key)]; ok && was.partition != now.partition && was.marker == now.marker {
		l.failed = append(l.failed, verify.Failure{Problem: fmt.Sprintf("%s is in partitions %d and %d between two markers",
			r.Key, was.partition, now.partition)})
	}
	l.of[string(r.Key)] = now
}

func (l *lanes) Failures() []verify.Failure { return l.failed }

// leaseZero returns a tenure that has acquired lease 0 of a new bridge.
func leaseZero(t *testing.T) *tenure {
	t.Helper()
	c := broker(t)
	o, _ := options(t, c, t.TempDir())
	o.Now = time.Now
	createTopic(t, c, o.offsetsTopic(), 4, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")})
	cfg := o.lease()
	view := offsets.NewView(cfg.Topic, 4)
	viewing, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- view.Run(viewing, o.Kafka.Client...) }()
	t.Cleanup(func() { stop(); <-ended })
	lease, err := offsets.Acquire(t.Context(), cfg, view, 0)
	must(t, err)
	t.Cleanup(func() { lease.Close(context.Background()) })
	h := &tenure{
		instance: &instance{opts: &o, pipe: pipeline.New(pipeline.Settings{MemoryBytes: 1 << 20})}, opts: &o,
		held: t.Context(), work: t.Context(), lease: lease, cursor: lease.Cursor(), findings: &findings{},
	}
	h.out.t, h.epoch.t, h.epoch.frontier = h, h, &offsets.Frontier{}
	return h
}

// What the coordinator decides is never added to a delivery that is open: in a test the attempt panics.
func TestChangeBesideADelivery(t *testing.T) {
	h := leaseZero(t)
	must(t, h.out.write(&change{frontier: offsets.Frontier{Completed: source.SegmentAt(hourOf(1))}}))
	_, err := h.out.open() // a delivery
	must(t, err)
	defer func() {
		if err := recover(); err != offsets.ErrOpen {
			t.Errorf("the change beside it: %v", err)
		}
	}()
	err = h.out.write(&change{frontier: offsets.Frontier{Completed: source.SegmentAt(hourOf(2))}})
	t.Errorf("it is committed: %v", err)
}

// A block of a scan that does not fit the progress of its lease ends the tenure, and gives its memory back (I9).
func TestBlockOfNoOpenRange(t *testing.T) {
	h := leaseZero(t)
	h.cursor.Scan = &offsets.Listing{}
	pass := &pipeline.Pass{Host: &h.epoch}
	run := h.instance.pipe.List(t.Context(), pass, pipeline.Rows{},
		func(ctx context.Context, emit func(context.Context, *inventory.Step) error) error {
			return emit(ctx, &inventory.Step{Range: 7})
		})
	block := <-run.Blocks
	if held, _, _ := h.instance.pipe.Use(); !held {
		t.Error("the block holds no memory")
	}
	if err := h.out.addBlock(block); err == nil {
		t.Error("it is taken")
	}
	run.Close()
	h.out.abandon() // as the end of the tenure does
	if held, _, _ := h.instance.pipe.Use(); held {
		t.Error("its memory is held for good")
	}
}

package bridge

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/suspects"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// A scan of a part of the account lists that part, and its sweep deletes nothing else.
func TestSweepOfAPart(t *testing.T) {
	t.Parallel()
	w, c, o := afterScan(t, 3, 40, func(*Options) {})
	w.unfed(20)
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true, Container: "c1", Prefix: "dir/ü3"})
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	if scan := s.Frontier.Scan; scan.Rows != 10 || scan.Containers != 1 { // ü30 to ü39
		t.Errorf("%d rows of %d containers", scan.Rows, scan.Containers)
	}
	want, got := []string{`["c1/dir/ü3"]`}, []string(nil)
	enc, err := o.Records.Encoder(t.Context(), topic)
	must(t, err)
	consume(t, c, noted(func(r verify.Record) {
		if string(r.Header("scan")) == "sweep" && enc.Deletes(r.Value) {
			got = append(got, string(r.Key))
		}
	}))
	if !slices.Equal(got, want) {
		t.Errorf("deleted %q, want %q", got, want)
	}
}

// A sweep of topics that do not say which keys live is left out, with an error that says why. The rows are written.
func TestSweepRejected(t *testing.T) {
	t.Parallel()
	for why, prepare := range map[string]func(t *testing.T, c *kfake.Cluster, o *Options){
		"other accounts write to these topics": func(_ *testing.T, _ *kfake.Cluster, o *Options) { o.Topics.Shared = true },
		"do not say which keys are deleted": func(_ *testing.T, _ *kfake.Cluster, o *Options) {
			o.Records.Encoder = encoder(envelope.Options{Envelope: envelope.KeyOnly, Events: envelope.EventsState})
		},
		"leaves out BlobDeleted": func(_ *testing.T, _ *kfake.Cluster, o *Options) {
			o.Feed.Filter.ExcludeEventTypes = []string{"BlobDeleted"}
		},
		"does not keep every key": func(t *testing.T, c *kfake.Cluster, _ *Options) {
			hour := "3600000"
			createTopic(t, c, topic, partitions, map[string]*string{"retention.ms": &hour})
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2, 40)
			c := broker(t)
			o := w.options(c)
			prepare(t, c, &o)
			live(t, o)
			awaitDrained(t, o, w)
			w.unfed(20)
			ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
			w.recorder.awaitFailure(t, why)
			s := awaitState(t, o, "the scan is done", isDone("sweep"))
			if scan := s.Frontier.Scan; scan.Rows != 40 || scan.Deleted != 0 || !strings.Contains(scan.LeftOut, why) {
				t.Errorf("%+v", s.Frontier.Scan)
			}
		})
	}
}

// A key that no blob can have is skipped, and counted: the sweep is not complete.
func TestSweepSkipsKeys(t *testing.T) {
	t.Parallel()
	_, c, o := afterScan(t, 2, 40, func(*Options) {})
	must(t, fakebroker.Client(t, c).ProduceSync(t.Context(),
		&kgo.Record{Topic: topic, Key: []byte(`["no path"]`), Value: []byte(`{"after": {}}`)}).FirstErr())
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	if r := scanOf(s).ScanResult; r.Skipped != 1 || r.Deleted != 0 || r.LeftOut != "" {
		t.Errorf("%+v", r)
	}
}

// After a topic got more partitions, the deletion of a key goes where the next event of its blob goes, not where its
// last record is: else nothing would order the two between two markers (I5).
func TestSweepBehindNewPartitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 40)
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan = ScanYes
	live(t, o)
	awaitState(t, o, "the first scan is done", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Done
	})
	_, err := admin(t, c).CreatePartitions(t.Context(), 3, topic)
	must(t, err)
	w.awaitPartitions(o, partitions+3, func(*offsets.Frontier) {})
	w.unfed(20)
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	if scan := s.Frontier.Scan; scan.Deleted != 40 || scan.Rows != 40 {
		t.Errorf("%d rows, %d deletions", scan.Rows, scan.Deleted)
	}
	for c := range w.names {
		for b := range 20 {
			w.put(c, b)
		}
	}
	w.publish(false)
	awaitDrained(t, o, w)
	enc, err := o.Records.Encoder(t.Context(), topic)
	must(t, err)
	was, deleted, event := map[string]int32{}, map[string]int32{}, map[string]int32{}
	consume(t, c, noted(func(r verify.Record) {
		key := string(r.Key)
		switch scan := string(r.Header("scan")); {
		case r.Key == nil:
		case scan == "sweep" && enc.Deletes(r.Value):
			deleted[key] = r.Partition
		case scan == "" && strings.HasPrefix(string(r.Header("position")), w.segment()):
			event[key] = r.Partition
		case scan != "sweep":
			was[key] = r.Partition
		}
	}))
	moved := 0
	for key, at := range deleted {
		if next, ok := event[key]; !ok || next != at {
			t.Errorf("%s: its deletion is in partition %d, the next event (%t) in %d", key, at, ok, next)
		}
		if was[key] != at {
			moved++
		}
	}
	if len(deleted) != 40 || moved == 0 {
		t.Errorf("%d deletions, %d of them in a new partition", len(deleted), moved)
	}
}

// After growth, a sweep asks for each blob with a stale record. If an instance ends meanwhile, the next one continues
// within the partition. Else a sweep would have no end if no instance lasted for a whole partition.
func TestSweepContinuesWithinAPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 4500)
	c := broker(t)
	o := w.options(c)
	o.Kafka.Leases, o.Feed.InitialScan, o.Once, o.Pace.ScanRound = 1, ScanYes, true, 100*time.Millisecond
	must(t, runOnce(t, o))
	_, err := admin(t, c).CreatePartitions(t.Context(), 3, topic)
	must(t, err)
	for range 2 { // to a marker
		w.change(10)
		w.publish(false)
		w.next()
		must(t, runOnce(t, o))
	}
	state := awaitState(t, o, "the new partitions are used", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Topics[topic] == partitions+3
	})
	plan, err := PlanSweep(t.Context(), &o, &offsets.Scan{}, state.Frontier.Topics)
	must(t, err)
	var asked, limit atomic.Int64
	limit.Store(1100)
	w.store.Before = func(ctx context.Context, op string, _ inventory.Query) error {
		if op == "head" && asked.Add(1) > limit.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- New(o).Run(ctx, ctx) }()
	awaitState(t, o, "a part of a partition is compared", func(s *offsets.State) bool {
		return scanOf(s).Active() && s.Cursors[0].Listing(scanOf(s)).Within != nil
	})
	kill()
	must(t, <-ended)
	asked.Store(0)
	limit.Store(math.MaxInt64)
	must(t, runOnce(t, o))
	awaitState(t, o, "the sweep is done", isDone("sweep"))
	if n := asked.Load(); n > plan.Heads-1000 || n < plan.Heads-1100 {
		t.Errorf("the second instance asked for %d blobs, of %d in all", n, plan.Heads)
	}
}

// Another instance takes the lease between two rounds of a sweep, writes deletions, and gives it back. What this one
// has read of the topic is from before them: each deletion comes once all the same.
func TestSweepBehindAnotherOwner(t *testing.T) {
	t.Parallel()
	const leases, sweeper, theirs = 5, 4, 20 // the lease has no shard
	w, c, o := afterScan(t, 1, 300, func(o *Options) {
		o.Topics.Create.Partitions, o.Kafka.Leases = 1, leases
		o.Pace.ScanRound = 2 * time.Second
	})
	if at := offsets.LeaseOf(topic, leases); at != sweeper {
		t.Fatalf("lease %d sweeps", at)
	}
	w.unfed(100)
	var answers atomic.Bool
	w.store.Before = func(ctx context.Context, op string, _ inventory.Query) error {
		if op == "head" && !answers.Load() {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	awaitState(t, o, "events are delivered between two rounds", func(s *offsets.State) bool {
		return scanOf(s).Active() && s.RowsListed(scanOf(s)) && scanOf(s).Round > 1 &&
			scanOf(s).Phase == offsets.ScanDelivers // for as long as the round took
	})
	cfg := *o.lease()
	cfg.Instance, cfg.Now = "other", time.Now
	view := offsets.NewView(cfg.Topic, leases)
	viewing, endView := context.WithCancel(t.Context())
	defer endView()
	go func() { _ = view.Run(viewing, o.Kafka.Client...) }()
	other, err := offsets.Acquire(t.Context(), &cfg, view, sweeper)
	must(t, err)
	if scan := scanOf(other.State()); scan.Phase != offsets.ScanDelivers {
		t.Fatalf("the scan's phase is %q", scan.Phase)
	}
	tx, err := other.Begin()
	must(t, err)
	var records []kgo.Record
	for i := range theirs {
		records = append(records, kgo.Record{Topic: topic, Key: fmt.Appendf(nil, `["c0/dir/ü%d"]`, i),
			Value:   []byte(`{"after": null}`),
			Headers: []kgo.RecordHeader{{Key: envelope.ScanHeader, Value: []byte("sweep")}}})
	}
	must(t, tx.Add(t.Context(), records, func(*kgo.Record) {}), tx.Commit(t.Context(), other.Cursor(), nil))
	other.Close(t.Context())
	answers.Store(true)
	awaitState(t, o, "the sweep is done", isDone("sweep"))
	gone := map[string]int{}
	w.compare(c, noted(func(r verify.Record) {
		if string(r.Header(envelope.ScanHeader)) == "sweep" && strings.Contains(string(r.Value), `"after": null`) {
			gone[string(r.Key)]++
		}
	}))
	for key, n := range gone {
		if n != 1 {
			t.Errorf("%s: %d deletions", key, n)
		}
	}
	if len(gone) != 100 {
		t.Errorf("%d blobs are deleted", len(gone))
	}
}

// A seek cancels a sweep, and the lease that swept has no work behind it. Its reader ends all the same: its client is
// closed, and a bridge that shares its memory gets the turn to sweep.
func TestSeekEndsASweep(t *testing.T) {
	t.Parallel()
	const leases, sweeper = 5, 4 // which has no shard
	shared, open := pipeline.NewBudget(0), &readers{}
	w, c, o := afterScan(t, 1, 2200, func(o *Options) {
		o.Pace.Memory, o.Topics.Create.Partitions, o.Kafka.Leases = shared, 1, leases
		o.Kafka.Client, o.Pace.ScanRound = append(o.Kafka.Client, kgo.WithHooks(open)), 2*time.Second
	})
	if at := offsets.LeaseOf(topic, leases); at != sweeper {
		t.Fatalf("lease %d sweeps", at)
	}
	w.unfed(2100) // one batch is taken, and the reader stays in the middle of the topic with the next
	asked := make(chan struct{}, 1)
	w.store.Before = func(ctx context.Context, op string, _ inventory.Query) error {
		if op == "head" {
			poke(asked)
			<-ctx.Done()
		}
		return ctx.Err()
	}
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	<-asked
	awaitState(t, o, "events are delivered between two rounds", func(s *offsets.State) bool {
		return scanOf(s).Active() && scanOf(s).Phase == offsets.ScanDelivers // for as long as the round took
	})
	if open.Load() != 1 {
		t.Errorf("%d clients read the topic", open.Load())
	}
	s := seize(t, o)
	target, err := history.ParseTarget("earliest")
	must(t, err, s.Seek(t.Context(), target.Move))
	s.Close(t.Context())
	awaitState(t, o, "the sweep is cancelled", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Epoch == 1 && !s.Frontier.Scan.Active()
	})

	other := newWorld(t, 1, 100)
	beside := other.options(c)
	beside.Name, beside.Pace.Memory, beside.Feed.InitialScan = "beside", shared, ScanYes
	beside.Records.Frozen, beside.Topics.Names = map[string]string{"BRIDGE_TOPIC": "others"}, byTemplate(t, "others")
	live(t, beside)
	awaitDrained(t, beside, other)
	other.unfed(30)
	ask(t, beside, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	if s := awaitState(t, beside, "its sweep is done", isDone("sweep")); s.Frontier.Scan.Deleted != 30 {
		t.Errorf("%d deletions", s.Frontier.Scan.Deleted)
	}
	if open.Load() != 0 {
		t.Errorf("%d clients still read the topic", open.Load())
	}
}

// readers counts the clients that read the partitions of the topic.
type readers struct{ atomic.Int32 }

func (r *readers) count(cl *kgo.Client, n int32) {
	if of, ok := cl.OptValue(kgo.ConsumePartitions).(map[string]map[int32]kgo.Offset); ok && of[topic] != nil {
		r.Add(n)
	}
}

func (r *readers) OnNewClient(cl *kgo.Client)    { r.count(cl, 1) }
func (r *readers) OnClientClosed(cl *kgo.Client) { r.count(cl, -1) }

// A reader of a sweep ends with its scan. A scan that lost history begins in place of another one has a sweep of its
// own: the other one has read partitions before it.
func TestSweepEndsWithItsScan(t *testing.T) {
	scan := &offsets.Scan{ID: "a"}
	for name, c := range map[string]struct {
		frontier *offsets.Frontier
		ends     bool
	}{
		"the scan is under way": {&offsets.Frontier{Scan: scan}, false},
		"it is cancelled":       {&offsets.Frontier{Scan: scan.Cancel(time.Now())}, true},
		"another one is behind": {&offsets.Frontier{Scan: &offsets.Scan{ID: "b"}}, true},
		"a reset has voided it": {nil, true},
	} {
		ended := make(chan struct{})
		h := &tenure{sweep: suspects.Read(t.Context(), suspects.Options{
			Scan: scan,
			Turn: func(ctx context.Context) (func(), error) {
				defer close(ended)
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}, []offsets.Lane{{}})}
		h.keepSweep(&offsets.State{Frontier: c.frontier})
		if ends := h.sweep == nil; ends != c.ends {
			t.Errorf("%s: the sweep has ended: %t", name, ends)
		}
		if c.ends {
			<-ended
		}
		h.endSweep()
	}
}

// The service lists what BRIDGE_PREFIXES select, and not the whole account.
func TestScanAsksForPrefixes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 40)
	o := w.options(broker(t))
	o.Feed.InitialScan, o.Feed.Filter = ScanYes, envelope.Filter{Prefixes: []string{"c1/dir/ü3", "c1/dir/ü2"}}
	var mu sync.Mutex
	asked := map[string]bool{}
	w.store.Before = func(_ context.Context, op string, q inventory.Query) error {
		if op == "list" {
			mu.Lock()
			defer mu.Unlock()
			asked[q.Container+"/"+q.Prefix] = true
		}
		return nil
	}
	live(t, o)
	s := awaitState(t, o, "the first scan is done", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Done
	})
	mu.Lock()
	defer mu.Unlock()
	if want := map[string]bool{"c1/dir/ü": true}; !maps.Equal(asked, want) || s.Frontier.Scan.Rows != 22 {
		t.Errorf("asked for %v; %d rows", asked, s.Frontier.Scan.Rows)
	}
}

// A sweep asks for no key that the filter leaves out, and for none that is deleted already: as in the feed, neither has
// a deletion to write.
func TestSweepAsksForWhatItMayDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 40)
	o := w.options(broker(t))
	o.Records.Encoder = encoder(envelope.Options{Envelope: envelope.Bare, Events: envelope.EventsState})
	o.Feed.InitialScan, o.Once = ScanYes, true
	deleted := func(container, from, to int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for b := from; b < to; b++ {
			w.account.Delete(w.names[container], fmt.Sprintf("dir/ü%d", b))
		}
	}
	must(t, New(o).Run(t.Context(), t.Context()))
	deleted(0, 0, 10)
	w.publish(false)
	must(t, New(o).Run(t.Context(), t.Context()))
	deleted(0, 10, 20) // the feed does not say that
	deleted(1, 0, 20)
	var asked atomic.Int64
	w.store.Before = func(_ context.Context, op string, _ inventory.Query) error {
		if op == "head" {
			asked.Add(1)
		}
		return nil
	}
	o.Feed.Filter.ExcludePrefixes = []string{w.names[1] + "/dir/ü1"} // ü1 and ü10 to ü19
	live(t, o)
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	if scan := s.Frontier.Scan; scan.Deleted != 19 || asked.Load() != 19 {
		t.Errorf("%d deletions, %d keys were asked for", scan.Deleted, asked.Load())
	}
}

// A lease whose topics are read by nobody yet does not hold up a round: events are to be delivered.
func TestSweepIsPatient(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	waiting := &suspects.Reader{Scan: "a", Batches: make(chan suspects.Batch)}
	l := &scanRound{t: &tenure{sweep: waiting, findings: &findings{}}, scan: &offsets.Scan{ID: "a"},
		done: &offsets.Listing{}}
	finished, err := l.sweep(ctx)
	if finished || err != nil || ctx.Err() != nil {
		t.Errorf("finished %t, %v; the round %v", finished, err, ctx.Err())
	}
}

// Keys that are no paths are counted once, however many rounds wait behind the partition that has them.
func TestSweepCountsSkippedKeysOnce(t *testing.T) {
	reader := &suspects.Reader{Scan: "a", Batches: make(chan suspects.Batch, 1)}
	reader.Batches <- suspects.Batch{Lane: offsets.Lane{Topic: "photos"}, Last: true, Skipped: 2}
	r := &scanRound{t: &tenure{sweep: reader}, scan: &offsets.Scan{ID: "a"}, done: &offsets.Listing{}}
	for range 3 {
		if finished, err := r.sweep(t.Context()); finished || err != nil {
			t.Fatal(finished, err)
		}
	}
	if r.done.Skipped != 2 || r.done.Judged == nil {
		t.Errorf("%+v", r.done)
	}
}

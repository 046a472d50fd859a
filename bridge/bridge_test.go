package bridge

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/fakebroker"
	"blobfeed/internal/feedsim"
	"blobfeed/offsets"
	"blobfeed/partitioner"
	"blobfeed/source"
	"blobfeed/source/dir"
	"blobfeed/verify"
)

const (
	realFeed     = "../testdata/real-2020"
	realEvents   = 717
	realSegments = 10
	topic        = "changes"
	partitions   = 4
)

// recorder is an Observer.
type recorder struct {
	NoObserver
	t  *testing.T
	mu sync.Mutex
	Commit
	failed   []string
	headroom chan time.Duration // capacity 1
	changed  chan struct{}      // capacity 1: something was committed
	failing  chan struct{}      // the same: something failed
	done     chan struct{}      // the same: a segment is complete
}

func (r *recorder) Committed(c Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Read += c.Read
	r.Emitted += c.Emitted
	r.Filtered += c.Filtered
	r.Late += c.Late
	r.Dead += c.Dead
	if c.Last.After(r.Last) {
		r.Last = c.Last
	}
	poke(r.changed)
}

func (r *recorder) Completed(Completion) { poke(r.done) }

func (r *recorder) History(h History) {
	select {
	case r.headroom <- h.Headroom:
	default:
	}
}

func (r *recorder) Failed(lease int32, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, err.Error())
	r.t.Logf("lease %d: %v", lease, err)
	poke(r.failing)
}

func broker(t *testing.T) *kfake.Cluster { return fakebroker.New(t) }

func options(t *testing.T, c *kfake.Cluster, feed string) (Options, *recorder) {
	t.Helper()
	store, err := dir.New(feed)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{
		t:        t,
		changed:  make(chan struct{}, 1),
		failing:  make(chan struct{}, 1),
		done:     make(chan struct{}, 1),
		headroom: make(chan time.Duration, 1),
	}
	return Options{
		Name: "test", Instance: "one", Feed: source.New(store, source.Options{}), FeedID: "feed", Frozen: map[string]string{"BRIDGE_TOPIC": topic},
		Topics: byTemplate(
			t,
			topic,
		), Events: envelope.EventsAll, Encoder: encoder(envelope.Options{Events: envelope.EventsAll, Updated: true, KeyInValue: true}),
		Client:        []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.MetadataMinAge(50 * time.Millisecond)},
		Transactional: true, TxnTimeout: 30 * time.Second, Session: 6 * time.Second,
		TopicPartitions: partitions, TopicReplication: 1, OffsetsPartitions: 4, Partition: partitioner.Murmur2,
		Markers: envelope.MarkersInline, ResolvedSlack: 15 * time.Minute, CommitInterval: 100 * time.Millisecond, TxnRecords: 100, TxnBytes: 1 << 20, BundleBytes: 1 << 20, BundleReaders: 4,
		PollInterval: 100 * time.Millisecond, Shutdown: 5 * time.Second, Once: true, Observer: r, Log: slog.New(slog.DiscardHandler),
	}, r
}

func byTemplate(t *testing.T, template string) *envelope.Topics {
	t.Helper()
	all, err := envelope.NewTopics(template, "account")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func encoder(all envelope.Options) func(context.Context, string) (*envelope.Encoder, error) {
	return func(_ context.Context, topic string) (*envelope.Encoder, error) {
		o := all
		o.Topic = topic
		return envelope.NewEncoder(o)
	}
}

func runOnce(t *testing.T, o Options) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := New(o).Run(ctx, ctx)
	if ctx.Err() != nil {
		t.Fatal("the run did not end")
	}
	return err
}

// consume shows what is committed to validators, and counts data and markers.
func consume(t *testing.T, c *kfake.Cluster, notes ...verify.Validator) (data, markers int) {
	t.Helper()
	return consumeAll(t, c, []string{topic}, notes...)
}

func consumeAll(t *testing.T, c *kfake.Cluster, topics []string, notes ...verify.Validator) (data, markers int) {
	t.Helper()
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(c.ListenAddrs()...),
		kgo.ConsumeTopics(topics...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(t.Context(), topics...)
	if err != nil {
		t.Fatal(err)
	}
	type lane struct {
		topic string
		p     int32
	}
	left := map[lane]bool{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[lane{o.Topic, o.Partition}] = true
		}
	})
	for len(left) > 0 {
		cl.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			if end, ok := ends.Lookup(r.Topic, r.Partition); ok && r.Offset+1 >= end.Offset {
				delete(left, lane{r.Topic, r.Partition})
			}
			if r.Attrs.IsControl() {
				return
			}
			v := verify.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				v.Headers = append(v.Headers, verify.Header(h))
			}
			if r.Key == nil {
				markers++
			} else {
				data++
			}
			for _, n := range notes {
				n.Note(v)
			}
		})
	}
	for _, n := range notes {
		for _, f := range n.Failures() {
			t.Errorf("%T: %v", n, f)
		}
	}
	return data, markers
}

func promises() []verify.Validator {
	return []verify.Validator{
		verify.NewUnique(),
		verify.NewOrder(),
		verify.NewBarrier(),
		verify.NewResolved(partitions),
		verify.NewPartition(partitions, partitioner.Murmur2),
	}
}

// Rebalances that bring no lease leave no line in the log; they only say that this instance is a member.
func TestAssignmentsInLog(t *testing.T) {
	t.Parallel()
	o, _ := options(t, broker(t), realFeed)
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	New(o).Assigned(nil)
	if log.Len() > 0 {
		t.Errorf("none came: %s", log.String())
	}
	if err := runOnce(t, o); err != nil || strings.Count(log.String(), "leases assigned") != 1 {
		t.Errorf("%v: %s", err, log.String())
	}
}

// The real feed is delivered once, and a second run adds nothing, in both modes of delivery.
func TestOnce(t *testing.T) {
	t.Parallel()
	for name, transactional := range map[string]bool{"exactly once": true, "at least once": false} {
		t.Run(name, func(t *testing.T) {
			c := broker(t)
			for run := range 2 {
				o, r := options(t, c, realFeed)
				o.Transactional = transactional
				if err := runOnce(t, o); err != nil {
					t.Fatal(err)
				}
				if want := realEvents * (1 - run); r.Read != want || r.Emitted != want || r.Late != 0 {
					t.Errorf("run %d: %+v", run, r.Commit)
				}
			}
			data, markers := consume(t, c, promises()...)
			// A bundle has inner markers only in a transaction: otherwise they would be below what is repeated after
			// a crash.
			all := markers == realSegments*partitions
			if data != realEvents || transactional != all || markers == 0 || markers%partitions != 0 {
				t.Errorf("%d records and %d markers", data, markers)
			}
		})
	}
}

// What would break the topic or the state is refused, with a text that names the setting.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Options)
		policy string
		says   string
	}{
		"another feed":    {change: func(o *Options) { o.FeedID = "other" }, says: "BRIDGE_SOURCE_URL"},
		"another setting": {change: func(o *Options) { o.Frozen = map[string]string{"BRIDGE_TOPIC": "x"} }, says: "BRIDGE_TOPIC=x"},
		"compacted":       {change: func(o *Options) { o.Name, o.Topics = "fresh", byTemplate(t, "compacted") }, policy: "compact", says: "cleanup.policy=compact"},
	} {
		t.Run(name, func(t *testing.T) {
			k := broker(t)
			if c.policy != "" {
				cl := fakebroker.Client(t, k)
				if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 1, 1, map[string]*string{"cleanup.policy": &c.policy}, "compacted"); err != nil {
					t.Fatal(err)
				}
			}
			o, _ := options(t, k, realFeed)
			if err := runOnce(t, o); err != nil {
				t.Fatal(err)
			}
			c.change(&o)
			err := runOnce(t, o)
			var settings *SettingsError
			if !errors.As(err, &settings) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

// A missing topic that may not be created is named; that of the offsets with what it takes.
func TestMissingTopic(t *testing.T) {
	t.Parallel()
	c := broker(t)
	o, r := options(t, c, realFeed)
	o.TopicPartitions = 0
	err := runOnce(t, o)
	var missing *offsets.MissingError
	if !errors.As(err, &missing) ||
		!strings.Contains(
			err.Error(),
			"kafka-topics.sh --create --topic test.offsets --partitions 4 --config cleanup.policy=compact --config ",
		) {
		t.Errorf("err = %v", err)
	}
	createTopic(t, c, o.offsetsTopic(), 4, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")})
	err = runOnce(t, o)
	if err == nil || !strings.Contains(err.Error(), "topic "+topic+" does not exist") {
		t.Errorf("err = %v", err)
	}
	if len(r.failed) == 0 {
		t.Error("the attempts were not reported")
	}
}

// A damaged chunk stops its lease and is named; what is before it is delivered, and nothing is skipped (I8).
func TestDamagedChunk(t *testing.T) {
	t.Parallel()
	ctx, feed := t.Context(), t.TempDir()
	sink := feedsim.Dir(feed)
	if err := feedsim.Write(ctx, sink, feedsim.Spec{EventsPerSegment: 50, BlockEvents: 10, Segments: 2}, nil); err != nil {
		t.Fatal(err)
	}
	if err := sink.Append(ctx, "log/00/2026/01/01/0000/00000.avro", []byte("garbage, and quite a lot of it, so that it is a block")); err != nil {
		t.Fatal(err)
	}
	c := broker(t)
	o, _ := options(t, c, feed)
	err := runOnce(t, o)
	var damage *source.DamageError
	if !errors.As(err, &damage) || damage.Blob != "log/00/2026/01/01/0000/00000.avro" {
		t.Errorf("err = %v", err)
	}
	if data, markers := consume(t, c, promises()...); data != 50 || markers != 0 {
		t.Errorf("%d records and %d markers", data, markers)
	}
}

// Two instances share a feed that grows; one leaves in the middle. Each event comes once and in order.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	ctx, feed := t.Context(), t.TempDir()
	complete := verify.NewComplete()
	expect := func(e feedsim.Event) { complete.Expect(e.ID) }
	live, err := feedsim.New(feedsim.Dir(feed), feedsim.Spec{Shards: 8, EventsPerSegment: 400, BlockEvents: 5})
	if err != nil {
		t.Fatal(err)
	}
	grow := func() {
		t.Helper()
		if err := errors.Join(live.Append(ctx, 400, expect), live.Next(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	if err := live.Open(ctx); err != nil {
		t.Fatal(err)
	}
	c := broker(t)
	committed := make(chan struct{}, 1) // by any of them
	var wg sync.WaitGroup
	defer wg.Wait()
	instance := func(name string) (*recorder, context.CancelFunc) {
		o, r := options(t, c, feed)
		o.Instance, o.Once, r.changed = name, false, committed
		stop, cancel := context.WithCancel(ctx)
		wg.Go(func() {
			if err := New(o).Run(stop, context.Background()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		return r, cancel
	}
	delivered := func(want int, rs ...*recorder) {
		t.Helper()
		limit := time.After(30 * time.Second)
		for {
			sum := 0
			for _, r := range rs {
				r.mu.Lock()
				sum += r.Emitted
				r.mu.Unlock()
			}
			if sum >= want {
				return
			}
			select {
			case <-committed:
			case <-limit:
				t.Fatalf("%d of %d events", sum, want)
			}
		}
	}
	grow()
	r1, stop1 := instance("one")
	defer stop1()
	delivered(400, r1)
	r2, stop2 := instance("two")
	defer stop2()
	grow()
	grow()
	delivered(1200, r1, r2)
	stop1() // hands over
	grow()
	delivered(1600, r1, r2)
	stop2()
	wg.Wait()
	if complete.Left() == 0 {
		t.Fatal("nothing was expected")
	}
	consume(t, c, append(promises(), complete)...)
}

// spread notes which partition counts explain where the keys of each segment are.
type spread struct{ counts map[string]map[int]bool }

func (s *spread) Note(r verify.Record) {
	if r.Key == nil {
		return
	}
	segment := string(r.Header("position"))[:15]
	if s.counts[segment] == nil {
		s.counts[segment] = map[int]bool{partitions: true, partitions + 3: true}
	}
	for n := range s.counts[segment] {
		if partitioner.Murmur2(r.Key, n) != r.Partition {
			delete(s.counts[segment], n)
		}
	}
}

func (s *spread) Failures() []verify.Failure { return nil }

// Partitions that are added while a segment is delivered are used from the next one on, and get markers from
// then on (I5).
func TestPartitionsAdded(t *testing.T) {
	t.Parallel()
	ctx, feed := t.Context(), t.TempDir()
	live, err := feedsim.New(feedsim.Dir(feed), feedsim.Spec{EventsPerSegment: 200})
	if err != nil {
		t.Fatal(err)
	}
	c := broker(t)
	o, _ := options(t, c, feed)
	grow := func() {
		t.Helper()
		if err := live.Append(ctx, 200, nil); err != nil {
			t.Fatal(err)
		}
		if err := runOnce(t, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := live.Open(ctx); err != nil {
		t.Fatal(err)
	}
	grow()
	_, err = admin(t, c).CreatePartitions(ctx, 3, topic)
	must(t, err)
	grow() // the same segment: keys stay
	if err := live.Next(ctx); err != nil {
		t.Fatal(err)
	}
	grow() // the next one
	if err := live.Finalize(ctx); err != nil {
		t.Fatal(err)
	}
	if err := runOnce(t, o); err != nil {
		t.Fatal(err)
	}
	where := &spread{counts: map[string]map[int]bool{}}
	data, markers := consume(t, c, where, verify.NewUnique(), verify.NewBarrier())
	if first, second := where.counts["2026/01/01/0000"], where.counts["2026/01/01/0100"]; !first[partitions] ||
		first[partitions+3] ||
		!second[partitions+3] ||
		second[partitions] {
		t.Errorf("segments are spread over %v", where.counts)
	}
	if data != 600 || markers != 2*(partitions+3) {
		t.Errorf("%d records, %d markers", data, markers)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// order notes the ids of records as they come on each partition.
type order struct {
	ids        []string
	partitions map[int32]bool
	last       string // marker
}

func (o *order) Note(r verify.Record) {
	if r.Key == nil {
		o.last = string(r.Value)
		return
	}
	if o.partitions == nil {
		o.partitions = map[int32]bool{}
	}
	o.partitions[r.Partition] = true
	o.ids = append(o.ids, string(r.Header("ce_id")))
}

func (o *order) Failures() []verify.Failure { return nil }

// sortedIDs returns what was noted, without the order between partitions.
func (o *order) sortedIDs() string {
	ids := slices.Clone(o.ids)
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// await polls a condition on what is committed.
func (r *recorder) await(t *testing.T, cond func(c Commit) bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		r.mu.Lock()
		c, failed := r.Commit, slices.Clone(r.failed)
		r.mu.Unlock()
		if cond(c) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for long: %+v; went wrong: %q", c, failed)
		}
		time.Sleep(5 * time.Millisecond) // polling a count
	}
}

// awaitFailure returns when something has failed for a reason that has this text.
func (r *recorder) awaitFailure(t *testing.T, text string) {
	t.Helper()
	r.await(t, func(Commit) bool { return r.failures(text) > 0 })
}

func (r *recorder) failures(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.failed {
		if strings.Contains(s, text) {
			n++
		}
	}
	return n
}

// run works in the background until the function it returns is called.
func run(t *testing.T, o Options) (stop func()) {
	t.Helper()
	o.Once = false
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New(o).Run(ctx, context.Background()) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

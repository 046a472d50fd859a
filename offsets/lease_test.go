package offsets

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/topics"
	"blobfeed/source"
)

const (
	stateTopic = "test.offsets"
	dataTopic  = "data"
)

// cluster starts a broker with the state topic, made by Ensure, and a data topic.
func cluster(t *testing.T) (*Config, context.Context) {
	t.Helper()
	c := fakebroker.New(t, kfake.SeedTopics(2, dataTopic))
	return configOf(t, c)
}

// configOf makes the state topic.
func configOf(t *testing.T, c *kfake.Cluster) (*Config, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cfg := &Config{
		Topic: stateTopic, Name: "test", Instance: "a", Transactional: true, TxnTimeout: 30 * time.Second,
		Now:    time.Now,
		Client: []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.MetadataMinAge(50 * time.Millisecond)},
	}
	cl, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	createState(t, ctx, kadm.NewClient(cl))
	return cfg, ctx
}

func createState(t *testing.T, ctx context.Context, admin *kadm.Client) {
	t.Helper()
	settings := (&topics.Plan{Atomic: true}).Settings(topics.State)
	if n, created, err := topics.Create(ctx, admin, stateTopic, 4, 1, settings); err != nil || n != 4 || !created {
		t.Fatalf("creating %s: %d partitions, %v, %v", stateTopic, n, created, err)
	}
}

func viewOf(t *testing.T, cfg *Config) *View {
	t.Helper()
	v := NewView(stateTopic, 4)
	run(t, cfg, v)
	return v
}

func run(t *testing.T, cfg *Config, v *View) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx, cfg.Client...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("view: %v", err)
		}
	})
}

func segment(t *testing.T, s string) source.Segment {
	t.Helper()
	seg, err := source.ParseSegment(s)
	if err != nil {
		t.Fatal(err)
	}
	return seg
}

func acquire(t *testing.T, ctx context.Context, cfg *Config, v *View, instance string) *Lease {
	t.Helper()
	own := *cfg
	own.Instance = instance
	l, err := Acquire(ctx, &own, v, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	return l
}

func produce(t *testing.T, ctx context.Context, l *Lease, value string) {
	t.Helper()
	r := &kgo.Record{Topic: dataTopic, Key: []byte("k"), Value: []byte(value)}
	if err := openTx(l).Mark(ctx, []*kgo.Record{r}); err != nil {
		t.Fatal(err)
	}
}

// committed reads the data topic as a consumer does.
func committed(t *testing.T, ctx context.Context, cfg *Config, want int) []string {
	t.Helper()
	cl, err := kgo.NewClient(
		append(cfg.Client, kgo.ConsumeTopics(dataTopic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.FetchMaxWait(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var got []string
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for len(got) <= want && ctx.Err() == nil { // one more than wanted, or the time that one would have needed
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	return got
}

// The view of the new owner reads late: Acquire may not return before it has the cursor of the old one (I3).
func TestAcquireReadsAfterTheFence(t *testing.T) {
	cfg, ctx := cluster(t)
	old := acquire(t, ctx, cfg, viewOf(t, cfg), "old")
	c := new(Cursor)
	c.Advance(segment(t, "2020/05/27/1500"), 1, source.ShardPosition{Chunk: 2, Offset: 300})
	produce(t, ctx, old, "one")
	if err := openTx(old).Commit(ctx, c, nil); err != nil {
		t.Fatal(err)
	}

	late := NewView(stateTopic, 4)
	acquired := make(chan *Lease, 1)
	go func() {
		own := *cfg
		own.Instance = "new"
		l, err := Acquire(ctx, &own, late, 1)
		if err != nil {
			t.Error(err)
		}
		acquired <- l
	}()
	select {
	case <-acquired:
		t.Fatal("acquired before anything was read")
	// nothing to wait for: a wrong Acquire returns within this, a right one never
	case <-time.After(200 * time.Millisecond):
	}
	run(t, cfg, late)
	l := <-acquired
	defer l.Close(ctx)
	s, _, _ := late.Get()
	if got := s.Cursor(1).At(segment(t, "2020/05/27/1500"), 1); got != (source.ShardPosition{Chunk: 2, Offset: 300}) {
		t.Errorf("position after acquiring is %+v", got)
	}
	if s.Owners[1] != "new" {
		t.Errorf("owner is %q", s.Owners[1])
	}
}

// A transaction whose first record is the first of its topic is not taken for an empty one. What kgo does
// between its two steps can't be held up from outside (some of 100,000 transactions meet it on a busy machine),
// so this looks at the order of what we do.
func TestSettlesBeforeItEnds(t *testing.T) {
	cfg, ctx := cluster(t)
	v := viewOf(t, cfg)
	var steps kgoSteps
	own := *cfg
	own.Client = append(slices.Clone(cfg.Client), kgo.WithLogger(&steps))
	l := acquire(t, ctx, &own, v, "a")
	if err := openTx(l).Commit(ctx, new(Cursor), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"flushed", "aborted buffered records", "ending transaction"}
	if got := steps.only(want...); !slices.Equal(got, append(want, want...)) {
		t.Errorf("kgo did %q", got)
	}
}

// kgoSteps are the messages that kgo logs.
type kgoSteps struct {
	mu       sync.Mutex
	messages []string
}

func (s *kgoSteps) Level() kgo.LogLevel { return kgo.LogLevelDebug }

func (s *kgoSteps) Log(_ kgo.LogLevel, msg string, _ ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, msg)
}

// only returns those among some, without repetitions: aborting flushes, too.
func (s *kgoSteps) only(some ...string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Compact(
		slices.DeleteFunc(slices.Clone(s.messages), func(m string) bool { return !slices.Contains(some, m) }),
	)
}

// A paused owner that wakes up after a takeover can't commit, and what it had open is never seen.
func TestZombieIsFenced(t *testing.T) {
	cfg, ctx := cluster(t)
	v := viewOf(t, cfg)
	zombie := acquire(t, ctx, cfg, v, "zombie")
	produce(t, ctx, zombie, "of the zombie")
	if err := openTx(zombie).Flush(ctx); err != nil { // the broker has it, and can't have it committed by the next owner
		t.Fatal(err)
	}
	next := acquire(t, ctx, cfg, v, "next")
	produce(t, ctx, next, "of the next")
	c := new(Cursor)
	c.Advance(segment(t, "2020/05/27/1500"), 1, source.ShardPosition{Offset: 1})
	if err := openTx(next).Commit(ctx, c, nil); err != nil {
		t.Fatal(err)
	}
	stale := new(Cursor)
	stale.Advance(segment(t, "2020/05/27/1500"), 1, source.ShardPosition{Offset: 99})
	if err := openTx(zombie).Commit(ctx, stale, nil); err == nil {
		t.Error("the zombie committed")
	}
	if got := committed(t, ctx, cfg, 1); len(got) != 1 || got[0] != "of the next" {
		t.Errorf("consumers see %q", got)
	}
	s, _, _ := v.Get()
	if got := s.Cursor(1).At(segment(t, "2020/05/27/1500"), 1).Offset; got != 1 {
		t.Errorf("cursor is at %d", got)
	}
}

// kgo commits what succeeded; a cursor over a record that failed would lose it (I1).
func TestFailedRecordFailsTheCommit(t *testing.T) {
	for _, transactional := range []bool{true, false} {
		cfg, ctx := cluster(t)
		cfg.Transactional = transactional
		v := viewOf(t, cfg)
		l := acquire(t, ctx, cfg, v, "a")
		produce(t, ctx, l, "good")
		bad := &kgo.Record{Topic: dataTopic, Partition: 77, Key: []byte("k"), Value: []byte("bad")}
		if err := openTx(l).Mark(ctx, []*kgo.Record{bad}); err != nil {
			t.Fatal(err)
		}
		c := new(Cursor)
		c.Advance(segment(t, "2020/05/27/1500"), 1, source.ShardPosition{Offset: 1})
		if err := openTx(l).Commit(ctx, c, nil); err == nil {
			t.Errorf("transactional %v: the commit succeeded", transactional)
		}
		l.Close(ctx)
		// Whoever comes next sees no cursor.
		again := acquire(t, ctx, cfg, v, "b")
		s, _, _ := v.Get()
		if s.Cursors[1] != nil {
			t.Errorf("transactional %v: the cursor is %+v", transactional, s.Cursors[1])
		}
		again.Close(ctx)
		if got := committed(t, ctx, cfg, 0); transactional && len(got) != 0 {
			t.Errorf("consumers see %q", got)
		}
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	b, err := json.Marshal(Frontier{Version: Version + 1})
	if err != nil {
		t.Fatal(err)
	}
	v := NewView(stateTopic, 1)
	err = v.apply(&kgo.Record{Key: []byte(keyFrontier), Value: b})
	var version *VersionError
	if !errors.As(err, &version) || version.Have != Version+1 {
		t.Errorf("err = %v", err)
	}
}

// A lease applies its own commits before the view reads them; what the view reads then must not undo newer ones.
func TestViewIgnoresWhatItHas(t *testing.T) {
	record := func(offset int64, at int64) *kgo.Record {
		c := Cursor{Version: Version, Shards: map[string]source.ShardPosition{"00": {Offset: at}}}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return &kgo.Record{Offset: offset, Key: []byte(keyCursor), Value: b}
	}
	v := NewView(stateTopic, 1)
	for _, r := range []*kgo.Record{record(5, 500), record(7, 700), record(5, 500)} {
		if err := v.apply(r); err != nil {
			t.Fatal(err)
		}
	}
	s, _, _ := v.Get()
	if got := s.Cursors[0].Shards["00"].Offset; got != 700 {
		t.Errorf("cursor is at %d, want 700", got)
	}
}

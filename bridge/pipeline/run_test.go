package pipeline

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/partitioner"
	"blobfeed/source"
	"blobfeed/source/dir"
)

// lender is a Host with one topic. It retries nothing.
type lender struct {
	topic *Topic
	store source.Store
	err   error // of Topic
	mu    sync.Mutex
	tried int
}

func (l *lender) Topic(context.Context, string) (*Topic, error) { return l.topic, l.err }

func (l *lender) Retry(ctx context.Context, f func(context.Context) error) error {
	for {
		l.mu.Lock()
		l.tried++
		l.mu.Unlock()
		err := f(ctx)
		var stay *StayError
		if err == nil || errors.As(err, &stay) || ctx.Err() != nil || l.err == nil {
			return err
		}
	}
}

func (l *lender) Known(string) bool { return true }

func (l *lender) Prepare(context.Context, []string) {}

func (l *lender) TooLarge(_ context.Context, err error) error { return err }

func (l *lender) Lost(context.Context, source.Segment, string) error { return errors.New("lost") }

// simulated returns a pipeline over a feed of one segment, and the pass for it.
func simulated(t *testing.T, memory int, h *lender) (*Pipeline, *Pass) {
	return over(t, memory, h, feedsim.Spec{Shards: 3, EventsPerSegment: 600, BlockEvents: 10})
}

// over is simulated, for any feed.
func over(t *testing.T, memory int, h *lender, spec feedsim.Spec) (*Pipeline, *Pass) {
	t.Helper()
	root := t.TempDir()
	if err := feedsim.Write(t.Context(), feedsim.Dir(root), spec, nil); err != nil {
		t.Fatal(err)
	}
	store, err := dir.New(root)
	if err != nil {
		t.Fatal(err)
	}
	h.store = store
	feed := source.New(store, source.Options{})
	topics, err := envelope.NewTopics("changes", "account")
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := envelope.NewEncoder(envelope.Options{Events: envelope.EventsAll, Updated: true})
	if err != nil {
		t.Fatal(err)
	}
	h.topic = &Topic{Name: "changes", Encoder: encoder, Partitions: 3}
	p := New(Settings{
		Feed: feed, Events: envelope.EventsAll, Topics: topics, Partition: partitioner.Murmur2, MemoryBytes: memory,
		BundleBytes: 1 << 20, BundleReaders: 2, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	for seg, err := range feed.Segments(t.Context(), source.Segment{}) {
		if err != nil {
			t.Fatal(err)
		}
		m, err := feed.Manifest(t.Context(), seg)
		if err != nil {
			t.Fatal(err)
		}
		d := &Pass{Manifest: m, Limit: 1 << 20, Backlog: &Backlog{}, Host: h}
		d.Backlog.Reset()
		return p, d
	}
	t.Fatal("no segment")
	return nil, nil
}

func (p *Pipeline) start(t *testing.T, d *Pass) *Run {
	readers := map[int]*source.ShardReader{}
	for _, shard := range d.Manifest.Shards {
		readers[shard] = p.set.Feed.Shard(d.Manifest, shard, source.ShardPosition{})
	}
	return p.Start(t.Context(), d, d.Manifest.Shards, readers, func(error) {})
}

// A run and a lookahead make the same records of a segment, shard by shard, and give back all their memory.
func TestRunAndLookaheadAgree(t *testing.T) {
	p, d := simulated(t, 4<<20, &lender{})
	ran := map[int][]string{}
	run := p.start(t, d)
	for b := range run.Blocks {
		for _, r := range b.Records {
			ran[b.Shard] = append(ran[b.Shard], string(r.Value))
		}
		p.Reuse(b)
	}
	if err := run.Err(); err != nil || run.Stays() {
		t.Fatal(err)
	}
	run.Close()
	if held, _, _ := p.Use(); held {
		t.Error("memory of the run is held")
	}
	ahead := p.Lookahead(t.Context(), source.Segment{})
	defer ahead.Stop()
	s := ahead.Peek(t.Context().Done())
	if s == nil {
		t.Fatal("no small segment")
	}
	for _, r := range s.ahead {
		if len(s.Blocks) > 0 || len(r.events.Events) == 0 {
			t.Error("what is read ahead holds room for records, or nothing (I9)")
		}
	}
	if err := p.EncodeWhole(t.Context(), d, s, true); err != nil {
		t.Fatal(err)
	}
	ahead.Take()
	whole := map[int][]string{}
	total := 0
	for _, b := range s.Blocks {
		if cap(b.events.Events) > 0 || b.events.Memory != 0 {
			t.Error("a block of a bundle holds what was read (I9)")
		}
		total += b.Counts.Emitted
		for _, r := range b.Records {
			whole[b.Shard] = append(whole[b.Shard], string(r.Value))
		}
	}
	for shard := range whole {
		if !slices.Equal(whole[shard], ran[shard]) {
			t.Errorf("shard %d: %d records ahead, %d in the run", shard, len(whole[shard]), len(ran[shard]))
		}
	}
	if total != 600 || len(whole) != len(ran) {
		t.Errorf("%d records of %d shards", total, len(whole))
	}
}

// The events of a run are parts of a window that is overwritten. What lives longer has to be a copy: records, and what
// is remembered of topics and unknown types.
func TestRunCopiesWhatItKeeps(t *testing.T) {
	p, d := simulated(t, 0, &lender{})
	var err error
	if p.set.Topics, err = envelope.NewTopics("of-{container}", "account"); err != nil {
		t.Fatal(err)
	}
	p.set.Feed = source.New(d.Host.(*lender).store, source.Options{ReadSize: 8 << 10}) // two blocks, or a little more
	run := p.start(t, d)
	ran := map[int][]kgo.Record{}
	for b := range run.Blocks { // which are not used again
		ran[b.Shard] = append(ran[b.Shard], b.Records...)
	}
	if err := run.Err(); err != nil {
		t.Fatal(err)
	}
	run.Close()
	for _, shard := range d.Manifest.Shards {
		r := p.set.Feed.Shard(d.Manifest, shard, source.ShardPosition{})
		if err := r.Poll(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		var whole []kgo.Record
		for {
			b := &Block{Shard: shard}
			if err := r.Next(t.Context(), &b.events); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if err := p.encode(t.Context(), d, b); err != nil {
				t.Fatal(err)
			}
			whole = append(whole, b.Records...)
		}
		if !reflect.DeepEqual(ran[shard], whole) {
			t.Errorf("shard %d: the run made other records than those of copies", shard)
		}
	}
}

// A run that is given up in the middle leaves no goroutine and no memory.
func TestCloseGivesBack(t *testing.T) {
	p, d := simulated(t, 10<<20, &lender{})
	run := p.start(t, d)
	b := <-run.Blocks
	for len(run.Blocks) == 0 { // until there is one that nobody receives
		runtime.Gosched()
	}
	run.Close()
	p.Send(b, nil).Abandon()
	if held, _, _ := p.Use(); held || run.Err() == nil {
		t.Errorf("held %t, %v", held, run.Err())
	}
}

// A shard of an open segment without an encoder ends its run after some attempts; one of a finalized segment retries.
func TestShardStaysWithoutEncoder(t *testing.T) {
	h := &lender{err: &EncoderError{errors.New("no schema")}}
	p, d := simulated(t, 0, h)
	d.Manifest.Finalized = false
	run := p.start(t, d)
	for b := range run.Blocks {
		t.Errorf("a block of %d records", len(b.Records))
	}
	run.Close()
	if !run.Stays() || h.tried < maxAttempts {
		t.Errorf("stays %t after %d attempts", run.Stays(), h.tried)
	}
}

// Without a dead-letter topic an event of a rejected topic stops the shard, and is named; with one it is kept.
func TestRejectedTopic(t *testing.T) {
	h := &lender{}
	p, d := simulated(t, 0, h)
	h.topic.Rejected = errors.New("one topic too many")
	run := p.start(t, d)
	for range run.Blocks {
		t.Error("a block")
	}
	var fault *EventError
	if err := run.Err(); !errors.As(err, &fault) || !strings.Contains(err.Error(), "one topic too many") {
		t.Errorf("%v", err)
	}
	run.Close()
	p.set.DeadLetter = "letters"
	run = p.start(t, d)
	dead := 0
	for b := range run.Blocks {
		dead += b.Counts.Dead
		if _, reason := b.FirstDead(); reason != "one topic too many" || b.Records[0].Topic != "letters" {
			t.Errorf("%q to %s", reason, b.Records[0].Topic)
		}
		p.Reuse(b)
	}
	run.Close()
	if dead != 600 {
		t.Errorf("%d dead letters", dead)
	}
}

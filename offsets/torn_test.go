package offsets

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/fakebroker"
)

// tornLog makes records of the state topic as a transactional producer and the brokers write them.
type tornLog struct {
	t    *testing.T
	next []int64 // by partition
	view *View
}

func (l *tornLog) add(p int32, epoch int16, key string, doc any, control bool) {
	l.t.Helper()
	value, err := json.Marshal(doc)
	if err != nil {
		l.t.Fatal(err)
	}
	r := &kgo.Record{
		Partition: p, Offset: l.next[p], Key: []byte(key), Value: value, ProducerID: int64(p), ProducerEpoch: epoch,
		Attrs: kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true, Control: control}),
	}
	l.next[p]++
	if err := l.view.apply(r); err != nil {
		l.t.Fatal(err)
	}
}

func (l *tornLog) owner(p int32, epoch int16) {
	l.add(p, epoch, keyOwner, owner{Version: Version, Owner: "a"}, false)
}
func (l *tornLog) end(p int32, epoch int16) { l.add(p, epoch, "", nil, true) }

func (l *tornLog) cursor(p int32, epoch int16, c Cursor) {
	c.Version = Version
	l.add(p, epoch, keyCursor, c, false)
}

func (l *tornLog) frontier(epoch int16, f Frontier) {
	f.Version = Version
	l.add(0, epoch, keyFrontier, f, false)
}

// A transaction that the brokers left without an end does not count, though the end of the next owner's transaction
// makes its documents readable.
func TestTornTransactionDoesNotCount(t *testing.T) {
	topics := map[string]int32{"changes": 6}
	pins := map[string]Pin{"new": {Partitions: 2}}
	for name, test := range map[string]struct {
		write func(l *tornLog)
		read  int64 // of lease 1
		torn  map[string]int32
	}{
		"the end is missing": {func(l *tornLog) {
			l.cursor(1, 5, Cursor{Counts: Counts{Read: 1}})
			l.end(1, 6)
			l.cursor(1, 6, Cursor{Counts: Counts{Read: 2}, Pins: pins})
			l.owner(1, 8)
			l.end(1, 9)
		}, 1, map[string]int32{"changes": 6, "new": 2}},
		"two owners died before they wrote": {func(l *tornLog) {
			l.cursor(1, 5, Cursor{Counts: Counts{Read: 1}})
			l.end(1, 6)
			l.cursor(1, 6, Cursor{Counts: Counts{Read: 2}})
			l.owner(1, 8)
			l.end(1, 9)
			l.owner(1, 10)
			l.end(1, 11)
		}, 1, topics},
		"its records were delivered again": {func(l *tornLog) {
			l.cursor(1, 6, Cursor{Counts: Counts{Read: 2}})
			l.owner(1, 8)
			l.end(1, 9)
			l.cursor(1, 9, Cursor{Counts: Counts{Read: 3}})
			l.end(1, 10)
		}, 3, nil},
		"the end is there": {func(l *tornLog) {
			l.cursor(1, 6, Cursor{Counts: Counts{Read: 2}})
			l.end(1, 7)
			l.owner(1, 8)
			l.end(1, 9)
		}, 2, nil},
		"compaction or a broker removed the end": {func(l *tornLog) {
			l.cursor(1, 6, Cursor{Counts: Counts{Read: 2}})
			l.next[1]++
			l.owner(1, 8)
			l.end(1, 9)
		}, 2, nil},
		"two documents of one transaction": {func(l *tornLog) {
			l.owner(1, 6)
			l.cursor(1, 6, Cursor{Counts: Counts{Read: 2}})
			l.end(1, 7)
		}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := &tornLog{t, make([]int64, 2), NewView(stateTopic, 2)}
			l.frontier(0, Frontier{Topics: topics})
			l.end(0, 1)
			test.write(l)
			s, _, _ := l.view.Get()
			if got := s.Cursor(1).Counts.Read; got != test.read {
				t.Errorf("the cursor of transaction %d counts, want %d", got, test.read)
			}
			if got, ok := s.Torn(1); ok != (test.torn != nil) || !maps.Equal(got, test.torn) {
				t.Errorf("Torn = %v, %t, want %v", got, ok, test.torn)
			}
		})
	}
}

// A view that starts reads the partitions in any order: lease 1 was taken, and its owner died before it discarded.
func TestTornKnowsTopicsOfALaterFrontier(t *testing.T) {
	l := &tornLog{t, make([]int64, 2), NewView(stateTopic, 2)}
	l.cursor(1, 6, Cursor{Pins: map[string]Pin{"new": {Partitions: 2}}})
	l.owner(1, 8)
	l.end(1, 9)
	l.frontier(0, Frontier{Topics: map[string]int32{"changes": 6}})
	l.end(0, 1)
	s, _, _ := l.view.Get()
	if got, ok := s.Torn(1); !ok || !maps.Equal(got, map[string]int32{"changes": 6, "new": 2}) {
		t.Errorf("Torn = %v, %t", got, ok)
	}
}

// With the frontier of a move, its epoch is taken back, so the cursors of the other leases have their position again.
func TestTornMoveDoesNotCount(t *testing.T) {
	l := &tornLog{t, make([]int64, 2), NewView(stateTopic, 2)}
	seg := segment(t, "2026/01/01/0300")
	l.frontier(1, Frontier{Current: seg})
	l.end(0, 2)
	l.cursor(1, 1, Cursor{Segment: seg})
	l.end(1, 2)
	l.cursor(0, 2, Cursor{Segment: seg})
	l.frontier(2, Frontier{Epoch: 1, Moving: true})
	if s, _, _ := l.view.Get(); s.Cursor(1).Segment == seg {
		t.Fatal("the move voids nothing")
	}
	l.owner(0, 4)
	l.end(0, 5)
	s, _, _ := l.view.Get()
	if s.Epoch != 0 || s.Moving || s.Frontier.Current != seg || s.Cursor(1).Segment != seg || s.Cursors[0] != nil {
		t.Errorf("epoch %d, moving %t, frontier %+v, cursors %+v", s.Epoch, s.Moving, s.Frontier, s.Cursors)
	}
}

// What the brokers left open has to be discarded also by an owner that comes after the one of a verb, which takes
// lease 0 and writes nothing but its intent, and after one whose owner record is left without an end, too.
func TestTornStaysUntilItIsDiscarded(t *testing.T) {
	l := &tornLog{t, make([]int64, 2), NewView(stateTopic, 2)}
	l.frontier(1, Frontier{Topics: map[string]int32{"changes": 6}})
	l.end(0, 2)
	l.cursor(0, 2, Cursor{Pins: map[string]Pin{"new": {Partitions: 2}}})
	l.owner(0, 4)
	l.owner(0, 6)
	l.end(0, 7)
	l.frontier(7, Frontier{Topics: map[string]int32{"changes": 6}, Epoch: 1, Moving: true})
	l.end(0, 8)
	s, _, _ := l.view.Get()
	if got, ok := s.Torn(0); !ok || !maps.Equal(got, map[string]int32{"changes": 6, "new": 2}) {
		t.Errorf("Torn = %v, %t", got, ok)
	}
	l.frontier(9, Frontier{Epoch: 1})
	l.end(0, 10)
	s, _, _ = l.view.Get()
	if _, ok := s.Torn(0); ok {
		t.Error("it stays when the move has ended")
	}
}

// A commit that the brokers acknowledge and do not complete is not believed.
func TestCommitIsReadBack(t *testing.T) {
	c := fakebroker.New(t)
	cfg, ctx := configOf(t, c)
	l := acquire(t, ctx, cfg, viewOf(t, cfg), "a")
	c.ControlKey(int16(kmsg.EndTxn), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.EndTxnRequest)
		resp := req.ResponseKind().(*kmsg.EndTxnResponse)
		resp.ProducerID, resp.ProducerEpoch = req.ProducerID, req.ProducerEpoch+1
		return resp, nil, true
	})
	l.cfg.TxnTimeout = 100 * time.Millisecond
	if err := openTx(l).Commit(ctx, &Cursor{}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Commit = %v", err)
	}
}

// An owner record that the brokers leave without an end keeps its owner waiting, and nobody else may come: the
// owner gives up, and its next acquisition ends that record.
func TestAcquisitionIsReadBack(t *testing.T) {
	c := fakebroker.New(t)
	cfg, ctx := configOf(t, c)
	v := viewOf(t, cfg)
	torn := *cfg
	torn.TxnTimeout = time.Second // also of the transactions of kfake, from now on
	fakebroker.LeaveOutEnds(t, c, "test-1")
	if _, err := Acquire(ctx, &torn, v, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Acquire = %v", err)
	}
	acquire(t, ctx, cfg, v, "b")
	if s, _, _ := v.Get(); s.Owners[1] != "b" {
		t.Errorf("the owner is %q", s.Owners[1])
	}
}

// The owner of lease 0 may have nothing to write, so a verb leaves no record of its own open.
func TestSeizedEndsItsRecords(t *testing.T) {
	c := fakebroker.New(t)
	cfg, ctx := configOf(t, c)
	standing(t, ctx, cfg)
	cfg.TxnTimeout = time.Second
	fakebroker.LeaveOutEnds(t, c, "test-0") // of the owner record
	s, err := Seize(ctx, cfg, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	fakebroker.LeaveOutEnds(t, c, "test-0") // of the intent
	if err := s.Reset(ctx); err == nil || !strings.HasSuffix(err.Error(), "run the command again") {
		t.Errorf("Reset = %v", err)
	}
	if got := stored(t, ctx, cfg); got.Frontier == nil || got.Epoch != 0 {
		t.Errorf("epoch %d, frontier %+v", got.Epoch, got.Frontier)
	}
}

// Compaction removes the owner record that stands beside a torn cursor, as soon as there is a newer one. Without it the
// cursor would count for a view that starts after that, and the records that Discard has aborted would be lost.
func TestDiscardOutlivesCompaction(t *testing.T) {
	c := fakebroker.New(t, kfake.SeedTopics(2, dataTopic))
	cfg, ctx := configOf(t, c)
	v := viewOf(t, cfg)
	gone := acquire(t, ctx, cfg, v, "gone")
	if err := openTx(gone).Commit(ctx, &Cursor{Counts: Counts{Read: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	fakebroker.LeaveOutEnds(t, c, "test-1")
	produce(t, ctx, gone, "torn")
	gone.cfg.TxnTimeout = 100 * time.Millisecond
	if err := openTx(gone).Commit(ctx, &Cursor{Counts: Counts{Read: 2}}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Commit = %v", err)
	}
	next := acquire(t, ctx, cfg, v, "next")
	if _, ok := next.State().Torn(1); !ok {
		t.Fatal("the transaction is not torn")
	}
	if err := next.Discard(ctx, map[string]int32{dataTopic: 2}); err != nil {
		t.Fatal(err)
	}
	acquire(t, ctx, cfg, v, "last")
	if s, _, _ := v.Get(); s.Cursor(1).Counts.Read != 1 {
		t.Fatalf("the cursor is %+v", s.Cursor(1))
	}
	if got := compacted(t, ctx, cfg, 1).Cursor(1).Counts.Read; got != 1 {
		t.Errorf("after compaction the cursor of transaction %d counts, want 1", got)
	}
}

// compacted returns what a view has that starts when compaction has kept only the last record of each key.
func compacted(t *testing.T, ctx context.Context, cfg *Config, p int32) *State {
	t.Helper()
	cl, err := kgo.NewClient(append(cfg.Client, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{cfg.Topic: {p: kgo.NewOffset().AtStart()}}))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	last := map[string]*kgo.Record{}
	for end, at := stored(t, ctx, cfg).next[p], int64(0); at < end; {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if at = r.Offset + 1; !r.Attrs.IsControl() {
				last[string(r.Key)] = r
			}
		})
	}
	kept := slices.SortedFunc(maps.Values(last), func(a, b *kgo.Record) int { return cmp.Compare(a.Offset, b.Offset) })
	v := NewView(cfg.Topic, 4)
	if err := v.apply(kept...); err != nil {
		t.Fatal(err)
	}
	s, _, _ := v.Get()
	return s
}

// Discard leaves nothing to read, and the lease can go on.
func TestDiscard(t *testing.T) {
	cfg, ctx := cluster(t)
	l := acquire(t, ctx, cfg, viewOf(t, cfg), "a")
	if err := l.Discard(ctx, map[string]int32{dataTopic: 2}); err != nil {
		t.Fatal(err)
	}
	if err := openTx(l).Mark(ctx, []*kgo.Record{{Topic: dataTopic, Value: []byte("kept")}}); err != nil {
		t.Fatal(err)
	}
	if err := openTx(l).Commit(ctx, &Cursor{}, nil); err != nil {
		t.Fatal(err)
	}
	for isolation, want := range map[kgo.IsolationLevel]int{kgo.ReadCommitted(): 1, kgo.ReadUncommitted(): 3} {
		cl, err := kgo.NewClient(
			append(cfg.Client, kgo.ConsumeTopics(dataTopic), kgo.FetchIsolationLevel(isolation))...)
		if err != nil {
			t.Fatal(err)
		}
		var got int
		for last := ""; last != "kept" || got < want; {
			fs := cl.PollFetches(ctx)
			if err := fs.Err(); err != nil {
				t.Fatal(err)
			}
			fs.EachRecord(func(r *kgo.Record) {
				got++
				if r.Value != nil {
					last = "kept"
				}
			})
		}
		cl.Close()
		if got != want {
			t.Errorf("%d records, want %d", got, want)
		}
	}
}

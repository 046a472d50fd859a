package bridge

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/pause"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// unfed deletes blobs, and the feed never says so.
func (w *world) unfed(blobs int) {
	for c, name := range w.names {
		for b := range blobs {
			if !w.account.Delete(name, fmt.Sprintf("dir/ü%d", b)) {
				w.t.Errorf("container %d has no blob %d", c, b)
			}
		}
	}
}

// A broker that fails does not end a sweep, and events are delivered between its rounds while it fails.
func TestSweepFails(t *testing.T) {
	t.Parallel()
	w, c, o := afterScan(t, 2, 100, func(*Options) {})
	w.unfed(30)
	fault := c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: topic, Err: kerr.TopicAuthorizationFailed, Count: -1,
	})
	defer fault.Remove()
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	w.recorder.awaitFailure(t, "looking for lost deletions")
	awaitState(t, o, "some rounds are over", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Round > 3
	})
	fault.Remove()
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	if s.Frontier.Scan.Deleted != 60 {
		t.Errorf("%d deletions", s.Frontier.Scan.Deleted)
	}
}

// A partition without a leader has no end that is proved: the sweep reports it and reads again, until it has read
// everything.
func TestSweepWithoutLeader(t *testing.T) {
	t.Parallel()
	w, c, o := afterScan(t, 2, 100, func(*Options) {})
	w.unfed(30)
	fault := c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Partitions: []int32{1}, Err: kerr.NotLeaderForPartition, Count: -1,
	})
	defer fault.Remove()
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	w.recorder.awaitFailure(t, "partition 1 is at offset")
	fault.Remove()
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	if s.Frontier.Scan.Deleted != 60 {
		t.Errorf("%d deletions", s.Frontier.Scan.Deleted)
	}
	w.compare(c)
}

// While a sweep reads the topics, its rounds may follow each other faster than a transaction is due. What is delivered
// between two of them counts, and the lease is not acquired again.
func TestRoundsKeepWhatIsDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 100)
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan, o.Pace.CommitInterval = ScanYes, time.Hour
	o.Feed.Source = source.New(w.memory, source.Options{ReadSize: 64 << 10})
	reached, gate := make(chan struct{}), make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	var reads atomic.Int32
	w.memory.onRead = func(name string) error {
		if !strings.HasPrefix(name, "log/01/") {
			return nil
		}
		switch n := reads.Add(1); {
		case n == 3: // the first block needs two
			close(reached)
			fallthrough
		case n > 3:
			<-gate
		}
		return nil
	}
	live(t, o)
	t.Cleanup(open) // before the bridge is stopped
	awaitDrained(t, o, w)
	fault := c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Partitions: []int32{1}, Err: kerr.NotLeaderForPartition, Count: -1,
	})
	defer fault.Remove()
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	before := awaitState(t, o, "the rows are listed", func(s *offsets.State) bool {
		return scanOf(s) != nil && s.RowsListed(scanOf(s)) && scanOf(s).Phase == offsets.ScanDelivers
	})
	w.change(1200)
	w.publish(false)
	<-reached
	round := scanOf(before).Round + 1
	awaitState(t, o, "another round begins", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Round >= round && scanOf(s).Phase == offsets.ScanHolds
	})
	open()
	s := awaitState(t, o, "the lease holds", func(s *offsets.State) bool {
		return scanOf(s) != nil && s.Cursor(1).Listing(scanOf(s)).Held >= round
	})
	if at := s.Cursor(1).At(s.Frontier.Current, 1); at.Offset == 0 || s.Term(1) != before.Term(1) {
		t.Errorf("lease 1 is at %+v, in term %d, before %d", at, s.Term(1), before.Term(1))
	}
	awaitDrained(t, o, w)
	fault.Remove()
	awaitState(t, o, "the sweep is done", isDone("sweep"))
	w.compare(c)
}

// Rounds end while a sweep asks for blobs; each lost deletion is written once.
func TestSweepInRounds(t *testing.T) {
	t.Parallel()
	w, c, o := afterScan(t, 2, 300, func(o *Options) {
		o.Pace.ScanRound = 60 * time.Millisecond
	})
	w.unfed(250)
	w.store.Before = func(ctx context.Context, op string, _ inventory.Query) error {
		if op == "head" {
			return pause.For(ctx, 2*time.Millisecond)
		}
		return nil
	}
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	gone := map[string]int{}
	w.compare(c, noted(func(r verify.Record) {
		if string(r.Header("scan")) == "sweep" {
			gone[string(r.Key)]++
		}
	}))
	for key, n := range gone {
		if n > 1 {
			t.Errorf("%s: %d records of the scan", key, n)
		}
	}
	if s.Frontier.Scan.Deleted != 500 || s.Frontier.Scan.Round < 4 {
		t.Errorf("%+v", s.Frontier.Scan)
	}
	for lease, cursor := range s.Cursors { // from there on, a late commit of theirs has the events repeated
		if l := cursor.Listing(s.Frontier.Scan); l.Rows > 0 && l.From != s.Frontier.Completed {
			t.Errorf("lease %d has listed behind %s", lease, l.From)
		} else if l.Judged == nil || l.Judged.Topic != topic {
			t.Errorf("lease %d has judged %v", lease, l.Judged)
		}
	}
}

// Blobs that were listed are written and deleted while the scan is under way. Their deletions are the feed's to tell:
// the sweep asks for none of them, and writes nothing.
func TestSweepOfBusyAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6, 200)
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan, o.Pace.ScanRound = ScanYes, 100*time.Millisecond
	w.store.Size = func(limit int) int { return min(limit, 50) }
	live(t, o)
	awaitDrained(t, o, w)
	w.unfed(5)
	busy := map[string]bool{}
	for b := range 10 {
		busy[fmt.Sprintf("dir/ü%d", 100+b)] = true
	}
	publish := func(selects func(account.Change) bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, err := w.account.Publish(t.Context(), w.feed, func(c account.Change) bool { return !selects(c) }, nil)
		must(t, err)
	}
	first := sync.OnceFunc(func() {
		for _, container := range w.names {
			for name := range busy {
				w.account.Delete(container, name)
			}
		}
	})
	w.store.Before = func(ctx context.Context, op string, _ inventory.Query) error {
		if op == "head" {
			first()
			return nil
		}
		w.mu.Lock()
		for c := range w.names {
			for b := range 10 {
				w.put(c, 100+b)
			}
		}
		w.mu.Unlock()
		publish(func(c account.Change) bool { return !c.Delete })
		return pause.For(ctx, 30*time.Millisecond)
	}
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	if s.Frontier.Scan.Deleted != 30 {
		t.Errorf("%d deletions", s.Frontier.Scan.Deleted)
	}
	publish(func(c account.Change) bool { return busy[c.Blob.Name] })
	awaitDrained(t, o, w)
	w.compare(c)
}

// A sweep that has little to do waits for no round of its full length: each round finds some partitions read.
func TestSweepIsSoonDone(t *testing.T) {
	t.Parallel()
	w, _, o := afterScan(t, 2, 100, func(o *Options) {
		o.Pace.ScanRound = 30 * time.Second
	})
	w.unfed(5)
	began := time.Now()
	ask(t, o, offsets.Request{ID: "sweep", Time: began, Sweep: true})
	awaitState(t, o, "the sweep is done", isDone("sweep"))
	if took := time.Since(began); took >= o.Pace.ScanRound {
		t.Errorf("it took %s", took)
	}
}

// Without an open segment, nothing is delivered between the rounds, so they follow each other without a poll interval.
func TestSweepOfAnEndedFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 100)
	w.change(10)
	w.publish(false)
	must(t, w.feed.Finalize(t.Context()))
	o := w.options(broker(t))
	o.Feed.InitialScan, o.Pace.PollInterval = ScanYes, time.Hour
	live(t, o)
	awaitState(t, o, "the first scan is done", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Done
	})
	w.unfed(5)
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	awaitState(t, o, "the sweep is done", isDone("sweep"))
}

// A sweep that finds more than fits into the memory at a time does not wait for what it holds itself (I9).
func TestSweepInLittleMemory(t *testing.T) {
	t.Parallel()
	w, c, o := afterScan(t, 1, 2*rowsAtOnce+10, func(o *Options) {
		o.Topics.Create.Partitions, o.Pace.BufferBytes = 1, 64<<10 // less than a block of deletions
	})
	w.unfed(2 * rowsAtOnce)
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	if s.Frontier.Scan.Deleted != 2*rowsAtOnce {
		t.Errorf("%d deletions", s.Frontier.Scan.Deleted)
	}
	w.compare(c)
}

// A sweep begins again with what is committed: deletions of a transaction that has failed are written once more.
func TestSweepAfterAFailure(t *testing.T) {
	t.Parallel()
	w, c, o := afterScan(t, 2, 100, func(*Options) {})
	w.unfed(30)
	fail := sync.OnceFunc(func() {
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.TopicAuthorizationFailed, Count: 1})
	})
	w.store.Before = func(_ context.Context, op string, _ inventory.Query) error {
		if op == "head" { // from now on, only deletions are written to the topic
			fail()
		}
		return nil
	}
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	w.recorder.awaitFailure(t, "TOPIC_AUTHORIZATION_FAILED")
	s := awaitState(t, o, "the sweep is done", isDone("sweep"))
	if s.Frontier.Scan.Deleted != 60 {
		t.Errorf("%d deletions", s.Frontier.Scan.Deleted)
	}
	w.compare(c)
}

// Nothing is asked for while some lease still lists: each blob of its containers would be a suspect.
func TestSweepWaitsForAllRows(t *testing.T) {
	t.Parallel()
	w, _, o := afterScan(t, 4, 100, func(o *Options) {
		o.Pace.ScanRound = 100 * time.Millisecond
	})
	w.unfed(5)
	var heads atomic.Int32
	listed := make(chan struct{})
	w.store.Before = func(ctx context.Context, op string, q inventory.Query) error {
		switch {
		case op == "head":
			heads.Add(1)
		case op == "list" && listerOf(o, q.Container) == 0:
			select {
			case <-listed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	awaitState(t, o, "some rounds are over", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).ID == "sweep" && scanOf(s).Round > 4
	})
	close(listed)
	awaitState(t, o, "the sweep is done", isDone("sweep"))
	if n := heads.Load(); n != 20 {
		t.Errorf("it asked for %d blobs", n)
	}
}

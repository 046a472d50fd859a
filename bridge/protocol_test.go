package bridge

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
	"blobfeed/internal/feedsim"
	"blobfeed/offsets"
	"blobfeed/source"
)

// At a start the view replays frontiers of the past, one by one: their segments are gone, and none of them says what
// to do (I10).
func TestStartReplaysOldFrontiers(t *testing.T) {
	t.Parallel()
	const segments = 30
	m := newMemory()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	name := func(i int) string { return source.SegmentAt(at.Add(time.Duration(i) * time.Hour)).String() }
	for i := range segments {
		m.segment(name(i), "Finalized", 60, map[int][]happened{0: nil, 1: nil, 2: nil})
	}
	m.segment(
		name(segments),
		"Publishing",
		60,
		map[int][]happened{0: nil, 1: nil, 2: {{"1", at.Add(segments * time.Hour).Format(time.RFC3339), "a"}}},
	)
	c := broker(t)
	o, _ := over(t, c, m)
	o.BundleBytes = 0
	must(t, runOnce(t, o))
	for i := range segments {
		m.remove("idx/segments/" + name(i))
		for _, shard := range []string{"log/00/", "log/01/", "log/02/"} {
			m.remove(shard + name(i))
		}
	}
	o.Client = append(o.Client, kgo.FetchMaxPartitionBytes(1)) // a record at a time
	for range 3 {
		must(t, runOnce(t, o))
	}
	if data, markers := consume(t, c, promises()...); data != 1 || markers != segments*partitions {
		t.Errorf("%d records, %d markers", data, markers)
	}
}

// A segment's manifest goes while lease 1 has the events of its shard in memory, and ON_GAP=continue is set:
// lease 1 delivers them, and the frontier waits for that (I4, I11).
func TestGapWaitsForOtherLeases(t *testing.T) {
	t.Parallel()
	m := threeHours()
	m.replace("idx/segments/2026/01/01/0000/meta.json", "Finalized", "Publishing") // so that it is read again
	removed, looked := make(chan struct{}), make(chan struct{})
	var looks atomic.Int32
	var once sync.Once
	release := sync.OnceFunc(func() { close(looked) })
	m.onRead = func(name string) error {
		switch {
		case strings.HasPrefix(name, "log/01/2026/01/01/0000"):
			once.Do(func() {
				m.remove("idx/segments/2026/01/01/0000")
				close(removed)
			})
			<-looked
		case strings.HasPrefix(name, "idx/segments/2026/01/01/0000"):
			select {
			case <-removed:
				if looks.Add(1) == 60 { // lease 0 had every chance to leave it behind
					release()
				}
			default:
			}
		case strings.HasPrefix(name, "log/00/2026/01/01/0200"): // it did
			release()
		}
		return nil
	}
	c := broker(t)
	o, r := over(t, c, m)
	o.BundleBytes, o.SkipGaps = 0, true
	live(t, o) // not --once, which reads the chunk as well
	r.await(t, func(c Commit) bool { return c.Emitted == 5 })
	seen := &order{}
	consume(t, c, append(promises(), seen)...)
	if ids := seen.sortedIDs(); ids != "1 2 3 4 5" {
		t.Errorf("events %s", ids)
	}
}

// Retention removes a chunk between its listing and its reading. A new listing says so; then it is lost history.
func TestChunkRemovedBeforeReading(t *testing.T) {
	t.Parallel()
	for name, skip := range map[string]bool{"fail": false, "continue": true} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			m.segment("2026/01/01/0000", "Finalized", 60, map[int][]happened{0: {{"1", "2026-01-01T00:10:00Z", "a"}}})
			m.segment("2026/01/01/0100", "Publishing", 60, map[int][]happened{0: {{"2", "2026-01-01T01:10:00Z", "a"}}})
			const chunk = "log/00/2026/01/01/0000/00000.avro"
			m.blobs["log/00/2026/01/01/0000/00001.avro"] = m.blobs[chunk] // what is left
			var once sync.Once
			m.onRead = func(name string) error {
				if name == chunk {
					once.Do(func() { m.remove(chunk) })
				}
				return nil
			}
			c := broker(t)
			o, _ := over(t, c, m)
			o.BundleBytes, o.SkipGaps = 0, skip
			err := runOnce(t, o)
			var gap *GapError
			if !skip {
				if !errors.As(err, &gap) || !strings.Contains(gap.Chunk, "00000.avro") {
					t.Errorf("err = %v", err)
				}
				return
			}
			must(t, err)
			var gaps []string
			if data, _ := consume(t, c, told(&gaps)); data != 2 || len(gaps) != partitions {
				t.Errorf("%d records, gaps %q", data, gaps)
			}
		})
	}
}

// A seek past damage that nothing can be done about arrives: the lease that reads it again and again hears of the move.
func TestSeekPastDamage(t *testing.T) {
	t.Parallel()
	feed, _, _ := damagedFeed(t, []byte(strings.Repeat("garbage", 20)))
	c := broker(t)
	o, r := options(t, c, feed)
	o.BundleBytes = 0
	live(t, o)
	awaitState(
		t,
		o,
		"the damage is in the cursor",
		func(s *offsets.State) bool { return s.Cursors[0] != nil && s.Cursors[0].Error != nil },
	)
	for range 5 { // so that nothing is left to write that would meet a fence
		<-r.failing
	}
	s := seize(t, o)
	target, err := ParseTarget("2026/01/01/0100")
	must(t, err)
	must(t, s.Seek(t.Context(), target.Move))
	s.Close(t.Context())
	awaitState(t, o, "the segment behind the damage is delivered", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Completed.String() == "2026/01/01/0100"
	})
}

// A broker refuses a record of a bundle whose markers have a topic of their own. The lease is given up and taken again.
func TestBundleRefusedWithMarkersApart(t *testing.T) {
	m, _, complete := smallSegments(t, 4)
	c := broker(t)
	var asked atomic.Int32
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if asked.Add(1) != 3 { // the owner record, the first frontier, the bundle
			return nil, nil, false
		}
		return answer(req, kerr.TopicAuthorizationFailed.Code), nil, true
	})
	o, _ := over(t, c, m)
	o.Markers = envelope.MarkersTopic
	must(t, runOnce(t, o))
	if data, _ := consume(t, c, complete); data != 5*20 || complete.Left() > 0 || asked.Load() < 3 {
		t.Errorf("%d records, %d missing, %d requests", data, complete.Left(), asked.Load())
	}
}

// Partitions are added to the offsets topic: shards would change their leases. That is refused, while the bridge is
// away and while it runs.
func TestLeasesAdded(t *testing.T) {
	t.Parallel()
	grow := func(t *testing.T, c *kfake.Cluster, o Options) {
		cl, err := kgo.NewClient(o.Client...)
		must(t, err)
		defer cl.Close()
		rs, err := kadm.NewClient(cl).UpdatePartitions(t.Context(), 8, o.offsetsTopic())
		must(t, err, rs.Error())
	}
	refused := func(t *testing.T, err error) {
		t.Helper()
		var settings *SettingsError
		if !errors.As(err, &settings) || !strings.Contains(err.Error(), "test.offsets has 8 partitions") ||
			!strings.Contains(err.Error(), "bridge reset") {
			t.Errorf("err = %v", err)
		}
	}
	t.Run("while it is away", func(t *testing.T) {
		m, live := simulated(t, feedsim.Spec{Shards: 3})
		must(t, live.Append(t.Context(), 30, nil))
		c := broker(t)
		o, _ := over(t, c, m)
		must(t, runOnce(t, o))
		grow(t, c, o)
		refused(t, runOnce(t, o))
		s := seize(t, o) // the way out
		must(t, s.Reset(t.Context()))
		s.Close(t.Context())
		must(t, runOnce(t, o))
	})
	t.Run("while it runs", func(t *testing.T) {
		m, live := simulated(t, feedsim.Spec{Shards: 3})
		must(t, live.Append(t.Context(), 30, nil))
		c := broker(t)
		o, r := over(t, c, m)
		o.Once, o.Client = false, append(o.Client, kgo.MetadataMaxAge(100*time.Millisecond))
		ended := make(chan error, 1)
		go func() { ended <- New(o).Run(t.Context(), t.Context()) }()
		r.await(t, func(c Commit) bool { return c.Emitted == 30 })
		grow(t, c, o)
		select {
		case err := <-ended:
			refused(t, err)
		case <-time.After(30 * time.Second):
			t.Error("it goes on")
		}
	})
}

// Two instances with --once: each ends when all that the feed holds is committed, whoever has the leases, and not
// before.
func TestOnceBesideOnce(t *testing.T) {
	m, live := simulated(t, feedsim.Spec{Shards: 6})
	must(t, live.Append(t.Context(), 300, nil))
	c := broker(t)
	var runs sync.WaitGroup
	for _, name := range []string{"one", "two", "three"} {
		o, _ := over(t, c, m)
		o.Instance = name
		runs.Go(func() {
			if err := runOnce(t, o); err != nil {
				t.Error(err)
			}
			s := awaitState(t, o, "the state is read", func(s *offsets.State) bool { return s.Frontier != nil })
			sh := New(o).shared
			sh.leases = int(o.OffsetsPartitions)
			if all, err := sh.drained(t.Context(), s); err != nil || !all {
				t.Errorf("%s ended, and all is delivered: %t, %v", name, all, err)
			}
		})
	}
	runs.Wait()
	if data, _ := consume(t, c, promises()...); data != 300 {
		t.Errorf("%d records", data)
	}
}

// Only what is committed counts for --once, in a state that is not of the past.
func TestDeliveredAllByCommittedState(t *testing.T) {
	m := newMemory()
	m.segment(
		"2026/01/01/0000",
		"Publishing",
		60,
		map[int][]happened{0: {{"1", "2026-01-01T00:10:00Z", "a"}}, 1: {{"2", "2026-01-01T00:10:00Z", "b"}}},
	)
	c := broker(t)
	o, _ := over(t, c, m)
	must(t, runOnce(t, o))
	all := awaitState(t, o, "all is delivered", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Cursors[0] != nil && s.Cursors[1] != nil
	})
	delivered := func(what string, want bool, change func(*shared, *offsets.State)) {
		t.Helper()
		sh, s := New(o).shared, *all
		sh.leases = int(o.OffsetsPartitions)
		s.Cursors = append([]*offsets.Cursor{}, all.Cursors...)
		change(sh, &s)
		if got, err := sh.deliveredAll(t.Context(), &s); err != nil || got != want {
			t.Errorf("%s: %t, %v", what, got, err)
		}
	}
	delivered("as it is", true, func(*shared, *offsets.State) {})
	delivered("a lease has committed nothing", false, func(_ *shared, s *offsets.State) { s.Cursors[1] = nil })
	delivered("the view is not at the end", false, func(sh *shared, _ *offsets.State) { sh.start = 1 << 40 })
	m.segment("2026/01/01/0100", "Publishing", 60, nil)
	delivered("there is a later segment", false, func(*shared, *offsets.State) {})
}

// Without transactions, what a broker refuses stops everything behind it: events are delivered for the first time in
// their order.
func TestRefusedBatchKeepsOrder(t *testing.T) {
	t.Parallel()
	feed := t.TempDir()
	must(
		t,
		feedsim.Write(
			t.Context(),
			feedsim.Dir(feed),
			feedsim.Spec{Segments: 3, EventsPerSegment: 200, BlockEvents: 10, Blobs: 6},
			nil,
		),
	)
	for at := int32(3); at < 12; at++ {
		c, small := broker(t), "4096"
		createTopic(t, c, topic, partitions, map[string]*string{"max.message.bytes": &small})
		var asked atomic.Int32
		c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			if asked.Add(1) != at {
				return nil, nil, false
			}
			return answer(req, kerr.PolicyViolation.Code), nil, true
		})
		o, _ := options(t, c, feed)
		o.Transactional = false
		o.Client = append(o.Client, kgo.ProducerLinger(0))
		must(t, runOnce(t, o))
		firstDeliveries(t, c)
	}
}

// A crash in catch-up without transactions: what is repeated is not below a marker for the first time, and markers do
// not fall.
func TestCrashInCatchUpWithoutTransactions(t *testing.T) {
	t.Parallel()
	feed := t.TempDir()
	must(
		t,
		feedsim.Write(t.Context(), feedsim.Dir(feed), feedsim.Spec{Segments: 12, EventsPerSegment: 40, BlockEvents: 5}, nil),
	)
	c, small := broker(t), "4096"
	createTopic(t, c, topic, partitions, map[string]*string{"max.message.bytes": &small})
	for produced := int32(3); produced < 20; produced++ {
		o, _ := options(t, c, feed)
		o.Transactional = false // one bundle, of many batches
		ctx, crash := context.WithCancel(t.Context())
		var asked atomic.Int32
		c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			if asked.Add(1) < produced {
				c.KeepControl()
			} else {
				crash()
			}
			return nil, nil, false
		})
		must(t, New(o).Run(ctx, ctx))
		crash()
	}
	o, _ := options(t, c, feed)
	o.Transactional = false
	must(t, runOnce(t, o))
	firstDeliveries(t, c)
	if tail(t, c).fell {
		t.Error("a marker is below one before it")
	}
}

// firstDeliveries checks the events of a topic as they come for the first time: in order for each key, none below a
// marker.
func firstDeliveries(t *testing.T, c *kfake.Cluster) {
	t.Helper()
	seen, resolved, last := map[string]bool{}, map[int32]string{}, map[string]string{}
	for _, r := range readAll(t, c, topic) {
		if r.Key == nil {
			resolved[r.Partition] = max(resolved[r.Partition], header(r, "resolved"))
			continue
		}
		if seen[string(r.Value)] {
			continue
		}
		seen[string(r.Value)] = true
		updated := header(r, "updated")
		if updated <= last[string(r.Key)] || updated <= resolved[r.Partition] {
			t.Errorf(
				"partition %d, offset %d: %s comes behind %s of its key, and marker %s",
				r.Partition,
				r.Offset,
				updated,
				last[string(r.Key)],
				resolved[r.Partition],
			)
		}
		last[string(r.Key)] = updated
	}
	if len(seen) == 0 {
		t.Error("there are no events")
	}
}

package bridge

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/verify"
)

// After a seek to the segment that the leases have just finished, every lease of a live instance delivers it
// again, also those that have nothing to write that would tell them that they were fenced.
func TestSeekUnderLiveInstance(t *testing.T) {
	t.Parallel()
	c := broker(t)
	dir := writeFeed(t, feedsim.Spec{EventsPerSegment: 60, Segments: 2, Shards: 3})
	o, _ := options(t, c, dir)
	o.Pace.BundleBytes = 0 // the leases deliver everything
	live(t, o)
	last := source.SegmentAt(time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC))
	done := func(epoch int64) func(*offsets.State) bool {
		return func(s *offsets.State) bool {
			f := s.Frontier
			return f != nil && f.Epoch == epoch && f.Completed == last
		}
	}
	awaitState(
		t,
		o,
		"all is delivered, by three leases",
		func(s *offsets.State) bool { // the view reads their cursors one by one
			used := 0
			for _, cur := range s.Cursors {
				if cur != nil && cur.Finished(last) {
					used++
				}
			}
			return done(0)(s) && used == 3
		},
	)
	s := seize(t, o)
	target, err := history.ParseTarget(last.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Seek(t.Context(), target.Move); err != nil {
		t.Fatal(err)
	}
	s.Close(t.Context())
	awaitState(t, o, "the last segment is delivered again", done(1))
	if data, _ := consume(t, c); data != 120+60 {
		t.Errorf("%d records, want 180: the last segment twice", data)
	}
}

// An idle account: everything is delivered, and its last segment is open. A seek is obeyed without another event.
func TestSeekWhileIdle(t *testing.T) {
	t.Parallel()
	m, f := simulated(t, feedsim.Spec{Shards: 3})
	must(t, f.Append(t.Context(), 60, nil), f.Next(t.Context()), f.Append(t.Context(), 30, nil))
	o, r := over(t, broker(t), m)
	o.Pace.BundleBytes = 0
	live(t, o)
	r.await(t, func(c Commit) bool { return c.Emitted == 90 })
	s := seize(t, o)
	target, err := history.ParseTarget("earliest")
	must(t, err)
	must(t, s.Seek(t.Context(), target.Move))
	s.Close(t.Context())
	r.await(t, func(c Commit) bool { return c.Emitted == 180 })
}

// The state knows which part of the feed is delivered, and which one a seek has left out, from the
// first start on, which is here behind a reset.
func TestSeekSkips(t *testing.T) {
	t.Parallel()
	m, f := simulated(t, feedsim.Spec{Shards: 3})
	o, _ := over(t, broker(t), m)
	seek := func(to string) {
		target, err := history.ParseTarget(to)
		must(t, err)
		s := seize(t, o)
		must(t, s.Seek(t.Context(), target.Move))
		s.Close(t.Context())
	}
	for range 3 {
		must(t, f.Append(t.Context(), 10, nil), f.Next(t.Context()))
	}
	must(t, runOnce(t, o))
	s := seize(t, o)
	must(t, s.Reset(t.Context()))
	s.Close(t.Context())
	seek("2026/01/01/0100")
	must(t, runOnce(t, o))
	for range 3 {
		must(t, f.Append(t.Context(), 10, nil), f.Next(t.Context()))
	}
	seek("2026/01/01/0500")
	must(t, runOnce(t, o))
	is := func(epoch int64, want string) {
		t.Helper()
		f := awaitState(t, o, "the last segment is delivered", func(s *offsets.State) bool {
			return s.Epoch == epoch && s.Frontier != nil && s.Frontier.Completed.String() == "2026/01/01/0500"
		}).Frontier
		if got := fmt.Sprintf("%v, %v", f.Delivered(), f.Skipped()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	is(3, "[{2026/01/01/0059 2026/01/01/0200 } {2026/01/01/0459 2026/01/01/0500 }], "+
		"[{2026/01/01/0200 2026/01/01/0459 }]")
	seek("2026/01/01/0230") // where the feed has no segment, as where retention has deleted it
	must(t, runOnce(t, o))
	is(4, "[{2026/01/01/0059 2026/01/01/0200 } {2026/01/01/0259 2026/01/01/0500 }], "+
		"[{2026/01/01/0200 2026/01/01/0259 }]")
}

// Partitions are added while a seek repeats events. Only the old partitions have the marker with the header "seek", so
// the new ones are used from the first higher marker on, also if segments come in bundles.
func TestPartitionsAddedBehindASeek(t *testing.T) {
	t.Parallel()
	for name, bundle := range map[string]int64{"leases": 0, "bundles": 5000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := broker(t)
			m, f := simulated(t, feedsim.Spec{Shards: 3})
			o, _ := over(t, c, m)
			o.Pace.BundleBytes = bundle
			grow := func(segments int) {
				for range segments {
					must(t, f.Append(t.Context(), 30, nil), f.Next(t.Context()))
				}
				must(t, runOnce(t, o))
			}
			grow(4)
			target, err := history.ParseTarget("earliest")
			must(t, err)
			s := seize(t, o)
			must(t, s.Seek(t.Context(), target.Move))
			s.Close(t.Context())
			add := sync.OnceFunc(func() {
				_, err := admin(t, c).CreatePartitions(t.Context(), 3, topic)
				must(t, err)
			})
			o.Observer = Observers{o.Observer, committed(func(c Commit) {
				if c.Emitted > 0 {
					add()
				}
			})}
			grow(3)
			grow(1) // the last counts may have been read before there were more
			resolved := verify.NewResolved(partitions + 3)
			for p := range int32(3) {
				resolved.StartsLate(partitions+p, true)
			}
			used := map[int32]bool{}
			consume(t, c, resolved, verify.NewUnique(), noted(func(r verify.Record) { used[r.Partition] = true }))
			if len(used) != partitions+3 {
				t.Errorf("the partitions %v are used", used)
			}
		})
	}
}

// A filter selects more by now, so topics are found in what a seek repeats. The last marker would be above their
// records, and no header has told them: their markers are those of the segments. Another seek goes back before the first
// one has reached the last marker.
func TestTopicsFoundBehindASeek(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bundle int64
		exact  bool
	}{
		"leases":                       {0, true},
		"bundles":                      {50000, true},
		"leases, without transactions": {0, false}, "bundles, without transactions": {50000, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := broker(t)
			m, f := simulated(t, feedsim.Spec{Shards: 3})
			for range 6 {
				must(t, f.Append(t.Context(), 40, nil), f.Next(t.Context()))
			}
			o, _ := over(t, k, m)
			o.Topics.Names, o.Kafka.Transactional = byTemplate(t, "{container}"), c.exact
			o.Pace.BundleBytes, o.Pace.TxnRecords = c.bundle, 50
			o.Feed.Filter.Containers = []string{"photos"}
			must(t, runOnce(t, o))
			o.Feed.Filter.Containers = nil
			seek := func() {
				target, err := history.ParseTarget("earliest")
				must(t, err)
				s := seize(t, o)
				must(t, s.Seek(t.Context(), target.Move))
				s.Close(t.Context())
			}
			seek()
			stop := run(t, o)
			awaitState(t, o, "topics are found", func(s *offsets.State) bool {
				return s.Frontier != nil && len(s.Frontier.Topics) > 1 && s.Frontier.Seek == nil
			})
			seek()
			stop()
			must(t, f.Append(t.Context(), 40, nil), f.Next(t.Context()), runOnce(t, o))
			resolved := verify.NewResolved(partitions)
			resolved.Repeats = !c.exact
			markers, known := map[string]bool{}, 0
			consumeAll(t, k, simTopics, resolved, noted(func(r verify.Record) {
				if r.Key == nil {
					markers[r.Topic+string(r.Header("resolved"))] = true
				}
				if r.Key == nil && r.Topic == "photos" && r.Partition == 0 {
					known++
				}
			}))
			if len(markers) != 7*len(simTopics) || known < 15 {
				t.Errorf("%d different markers on %d topics; %d in a partition of a topic that was known", len(markers),
					len(simTopics), known)
			}
		})
	}
}

// committed is called with each commit.
type committed func(Commit)

func (f committed) Committed(c Commit) { f(c) }

// A seek whose fences take longer than a session: an owner has its lease back before the frontier moves, and
// holds a cursor of the epoch before. What it writes under that would be void.
func TestSeekOverAHeldLease(t *testing.T) {
	t.Parallel()
	m, f := simulated(t, feedsim.Spec{Shards: 3})
	must(t, f.Append(t.Context(), 60, nil), f.Next(t.Context()), f.Append(t.Context(), 30, nil))
	c := broker(t)
	o, r := over(t, c, m)
	o.Pace.BundleBytes = 0
	live(t, o)
	r.await(t, func(c Commit) bool { return c.Emitted == 90 })
	cfg := *o.lease()
	cfg.Instance, cfg.Now = "operator", time.Now
	view := offsets.NewView(cfg.Topic, int(o.Kafka.Leases))
	viewing, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- view.Run(viewing, o.Kafka.Client...) }()
	lease, err := offsets.Acquire(t.Context(), &cfg, view, 0) // the last of the fences; those before it are forgotten
	must(t, err)
	now, _, err := view.Get()
	must(t, err)
	target, err := history.ParseTarget("earliest")
	must(t, err)
	moved := *now.Frontier
	target.Move(&moved)
	moved.Epoch++
	must(t, lease.Commit(t.Context(), nil, &moved))
	lease.Close(t.Context())
	stop()
	must(t, <-ended)
	r.await(t, func(c Commit) bool { return c.Emitted == 180 })
	must(t, f.Next(t.Context()))
	awaitState(t, o, "both segments are complete again", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Epoch == 1 && s.Frontier.Completed.String() == "2026/01/01/0100"
	})
	if data, _ := consume(t, c); data != 180 {
		t.Errorf("%d records, want 180: each twice", data)
	}
}

// adviser has the same remedy for every error.
type adviser string

func (a adviser) Advise(err error) error { return plain.WithRemedy(err, string(a)) }

// What is wrong shows in the cursor, once, though nothing else is committed; so does how much is left to read.
func TestCursorTellsTrouble(t *testing.T) {
	t.Parallel()
	c := broker(t)
	dir, chunk, at := damagedFeed(t, []byte(strings.Repeat("garbage", 20)))
	o, r := options(t, c, dir)
	o.Pace.BundleBytes, o.Observer = 0, append(o.Observer, adviser("do this"))
	live(t, o)
	s := awaitState(t, o, "the cursor tells of the damage", func(s *offsets.State) bool {
		return s.Cursors[0] != nil && s.Cursors[0].Error != nil && s.Cursors[0].Counts.Read == 40
	})
	cur := s.Cursors[0]
	if says := fmt.Sprintf("%s, offset %d: ", chunk, at); !strings.Contains(cur.Error.Error, says) ||
		cur.Error.Remedy != "do this" {
		t.Errorf("%q is not in %+v", says, cur.Error)
	}
	if cur.Ahead == 0 || cur.Event.IsZero() {
		t.Errorf("%+v, %+v", cur, cur.Error)
	}
	written := endOf(t, c, o)
	for range 3 { // what stays wrong is tried again, and is not written again
		select {
		case <-r.failing:
		case <-time.After(20 * time.Second):
			t.Fatal("it is not tried again")
		}
	}
	if now := endOf(t, c, o); now != written {
		t.Errorf("%d records of state came while nothing changed", now-written)
	}
	report := status.Of("test", s, status.Group{}, time.Now())
	if len(report.Errors) != 1 || report.Errors[0].Lease != 0 || report.Lag.Ahead == nil ||
		*report.Lag.Ahead != cur.Ahead {
		t.Errorf("%+v", report)
	}
}

func endOf(t *testing.T, c *kfake.Cluster, o Options) int64 {
	t.Helper()
	ends, err := admin(t, c).ListEndOffsets(t.Context(), o.offsetsTopic())
	must(t, err)
	end, _ := ends.Lookup(o.offsetsTopic(), 0)
	return end.Offset
}

// A lease whose cursor is of a later epoch than the frontier that its view has waits for the newer one: it must
// not deliver what belongs to the older.
func TestStaleFrontier(t *testing.T) {
	t.Parallel()
	c := broker(t)
	dir := writeFeed(t, feedsim.Spec{EventsPerSegment: 60, Segments: 1, Shards: 2})
	o, _ := options(t, c, dir)
	o.Pace.BundleBytes = 0
	createTopic(t, c, topic, partitions, nil)
	createTopic(t, c, o.offsetsTopic(), 4, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")})
	seg := source.SegmentAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	cfg := o.lease()
	cfg.Now = time.Now
	view := offsets.NewView(o.offsetsTopic(), 4)
	viewing, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- view.Run(viewing, o.Kafka.Client...) }()
	defer func() { stop(); <-ended }()
	commit := func(lease int32, cur *offsets.Cursor, f *offsets.Frontier) {
		t.Helper()
		l, err := offsets.Acquire(t.Context(), cfg, view, lease)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		if err := l.Commit(t.Context(), cur, f); err != nil {
			t.Fatal(err)
		}
	}
	commit(0, nil,
		&offsets.Frontier{
			Current: seg, Feed: "feed", Settings: o.Records.Frozen, Topics: map[string]int32{topic: partitions},
		})
	commit(1, &offsets.Cursor{Epoch: 1}, nil)
	o.Instance = "two"
	live(t, o)
	got := awaitState(t, o, "lease 0 has done its shard",
		func(s *offsets.State) bool { return s.Cursors[0] != nil && s.Cursors[0].Finished(seg) })
	if got.Owners[1] == "two" {
		t.Errorf("lease 1 is acquired under a frontier that is over: %+v", got.Cursors[1])
	}
	s := seize(t, o)
	target, err := history.ParseTarget("earliest")
	if err != nil {
		t.Fatal(err)
	}
	if s.State.Cursors[1].Segment == seg {
		t.Errorf("lease 1 works under a frontier that is over: %+v", s.State.Cursors[1])
	}
	if err := s.Seek(t.Context(), target.Move); err != nil {
		t.Fatal(err)
	}
	s.Close(t.Context())
	awaitState(t, o, "it continues under the new frontier",
		func(s *offsets.State) bool { return s.Frontier != nil && s.Frontier.Completed == seg })
}

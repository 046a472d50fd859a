package bridge

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/partitioner"
	"blobfeed/source"
	"blobfeed/verify"
)

// shardCounts change with each segment, so that a blob moves between leases.
func shardCounts(n int) int { return []int{1, 7, 2, 5, 3, 8}[n%6] }

// smallSegments returns a feed of n finalized segments of 20 events, and an open one.
func smallSegments(t *testing.T, n int) (*memory, *feedsim.Feed, *arrivals.Events) {
	t.Helper()
	m, live := simulated(t, feedsim.Spec{Blobs: 20, BlockEvents: 5, ShardsOf: shardCounts})
	complete := arrivals.New()
	for range n {
		must(t, live.Append(t.Context(), 20, func(e feedsim.Event) { complete.Expect(e.ID) }), live.Next(t.Context()))
	}
	must(t, live.Append(t.Context(), 20, func(e feedsim.Event) { complete.Expect(e.ID) }))
	return m, live, complete
}

// transactions counts what ends.
func transactions(c *kfake.Cluster) *atomic.Int64 {
	var n atomic.Int64
	c.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		n.Add(1)
		return nil, nil, false
	})
	return &n
}

// Segments in bundles become the same records as one by one, in the same order, with the same markers, in few
// transactions.
func TestBundles(t *testing.T) {
	t.Parallel()
	const segments = 50
	var want []string
	for _, bytes := range []int64{0, 1, 200_000, 1 << 20} {
		m, _, complete := smallSegments(t, segments)
		c := broker(t)
		n := transactions(c)
		o, r := over(t, c, m)
		o.Pace.BundleBytes, o.Pace.CommitInterval = bytes, time.Minute // what bounds a bundle is its size
		must(t, runOnce(t, o))
		all := &partitioned{}
		data, markers := consume(t, c, append(promises(), complete, all)...)
		if data != 20*(segments+1) || markers != segments*partitions || complete.Left() > 0 || r.Late > 0 ||
			r.Read != data ||
			r.Emitted != data {
			t.Errorf("%d bytes: %d records, %d markers, %d missing, %+v",
				bytes, data, markers, complete.Left(), r.Commit)
		}
		if want == nil {
			want = all.sorted()
		} else if !slices.Equal(all.sorted(), want) {
			t.Errorf("%d bytes: other records than one by one", bytes)
		}
		if few := int64(20); bytes == 1<<20 && n.Load() > few || bytes == 0 && n.Load() < segments {
			t.Errorf("%d bytes: %d transactions", bytes, n.Load())
		}
	}
}

// A copy's segments are in bundles also where some of their shards have no chunk: that is only a warning.
func TestBundlesWithEmptyShards(t *testing.T) {
	t.Parallel()
	const segments = 50
	m, live := simulated(t, feedsim.Spec{Shards: 3, EmptyShards: 1})
	for range segments {
		must(t, live.Append(t.Context(), 20, nil), live.Next(t.Context()))
	}
	c := broker(t)
	n := transactions(c)
	o, _ := over(t, c, m)
	o.Feed.Source = source.New(m, source.Options{Copy: true})
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	o.Pace.BundleBytes, o.Pace.CommitInterval = 1<<20, time.Minute
	must(t, runOnce(t, o))
	if data, markers := consume(t, c); data != 20*segments || markers != segments*partitions {
		t.Errorf("%d records, %d markers", data, markers)
	}
	if n.Load() > 20 {
		t.Errorf("%d transactions", n.Load())
	}
	if warned := strings.Count(log.String(), "chunks of the feed may be missing"); warned != segments {
		t.Errorf("%d warnings, want one for each segment: %.500s", warned, &log)
	}
}

// partitioned keeps the values of each key, and the markers of each partition, in order.
type partitioned struct{ lines map[string][]string }

func (p *partitioned) Note(r verify.Record) {
	if p.lines == nil {
		p.lines = map[string][]string{}
	}
	key := string(r.Key)
	if r.Key == nil {
		key = string('0' + rune(r.Partition))
	}
	p.lines[key] = append(p.lines[key], string(r.Value))
}

func (p *partitioned) Failures() []verify.Failure { return nil }

func (p *partitioned) sorted() (all []string) {
	for key, lines := range p.lines {
		for i, line := range lines {
			all = append(all, key+" "+string('0'+rune(i/100))+string('0'+rune(i/10%10))+string('0'+rune(i%10))+" "+line)
		}
	}
	slices.Sort(all)
	return all
}

// What a transaction promised that did not come to be is void: the marker after the first segment of the next
// one says no more than that segment allows (I6).
func TestBundleFails(t *testing.T) {
	t.Parallel()
	m, _, complete := smallSegments(t, 30)
	c := broker(t)
	var failed atomic.Bool
	o, _ := over(t, c, m)
	o.Pace.BundleBytes = 200_000
	var records atomic.Int64
	o.Records.Partition = func(key []byte, n int) int32 { // called for every record
		if records.Add(1) == 200 {
			c.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
				failed.Store(true)
				resp := req.ResponseKind().(*kmsg.EndTxnResponse)
				resp.ErrorCode = kerr.InvalidProducerEpoch.Code
				return resp, nil, true
			})
		}
		return partitioner.Murmur2(key, n)
	}
	must(t, runOnce(t, o))
	if data, markers := consume(t, c, append(promises(), complete)...); data != 31*20 || markers != 30*partitions ||
		complete.Left() > 0 ||
		!failed.Load() {
		t.Errorf("%d records, %d markers, %d missing; failed: %v", data, markers, complete.Left(), failed.Load())
	}
}

// A crash in the middle of a bundle leaves nothing of it behind.
func TestBundleCrash(t *testing.T) {
	t.Parallel()
	m, _, complete := smallSegments(t, 30)
	c := broker(t)
	for _, at := range []int64{15, 30, 130, 170} {
		o, _ := over(t, c, m)
		o.Pace.BundleBytes, o.Once = 200_000, false
		hard, kill := context.WithCancel(t.Context())
		var records atomic.Int64
		o.Records.Partition = func(key []byte, n int) int32 {
			if records.Add(1) == at {
				kill()
			}
			return partitioner.Murmur2(key, n)
		}
		must(t, New(o).Run(hard, hard))
		kill()
	}
	o, _ := over(t, c, m)
	must(t, runOnce(t, o))
	if data, markers := consume(t, c, append(promises(), complete)...); data != 31*20 || markers != 30*partitions ||
		complete.Left() > 0 {
		t.Errorf("%d records, %d markers, %d missing", data, markers, complete.Left())
	}
}

// A bundle ends before a segment that is large, damaged, or the last before the end time: the leases deliver that.
func TestBundleEnds(t *testing.T) {
	t.Parallel()
	m, live, complete := smallSegments(t, 10)
	must(t, live.Append(t.Context(), 2000, func(e feedsim.Event) { complete.Expect(e.ID) }))
	for range 10 {
		must(t, live.Next(t.Context()), live.Append(t.Context(), 20, func(e feedsim.Event) { complete.Expect(e.ID) }))
	}
	must(t, live.Finalize(t.Context()))
	c := broker(t)
	o, r := over(t, c, m)
	o.Pace.BundleBytes, o.Topics.DeadLetter = 100_000, "dead"
	name, whole := "log/00/2026/01/01/0500/00000.avro", []byte(nil)
	m.mu.Lock()
	whole = m.blobs[name]
	damaged := slices.Clone(whole)
	damaged[len(damaged)-1]++ // the last block's sync marker
	m.blobs[name] = damaged
	m.mu.Unlock()
	end, err := history.ParseTime("2026-01-01T18:00:00Z")
	must(t, err)
	o.Feed.End = end
	must(t, runOnce(t, o))
	last := &latest{}
	data, _ := consume(t, c, append(promises(), last)...)
	if r.Dead != 1 {
		t.Errorf("%d dead letters", r.Dead)
	}
	if got, err := envelope.ParseTimestamp(last.resolved); err != nil || got != end {
		t.Errorf("the last marker says %s, want %s (%v)", last.resolved, end, err)
	}
	const inBlock = 5
	if lost := r.Read - data - r.Filtered; lost != 0 || r.Filtered < 20 || r.Filtered > 100 ||
		complete.Left()-r.Read > 40+inBlock {
		t.Errorf("%d records of %d, %d lost, %+v", data, complete.Left(), lost, r.Commit)
	}
}

// latest keeps what the last marker says.
type latest struct{ resolved string }

func (l *latest) Note(r verify.Record) {
	if r.Key == nil {
		l.resolved = max(l.resolved, string(r.Header("resolved")))
	}
}

func (l *latest) Failures() []verify.Failure { return nil }

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
	o.Records.Markers = envelope.MarkersTopic
	must(t, runOnce(t, o))
	if data, _ := consume(t, c, complete); data != 5*20 || complete.Left() > 0 || asked.Load() < 3 {
		t.Errorf("%d records, %d missing, %d requests", data, complete.Left(), asked.Load())
	}
}

package bridge

import (
	"fmt"
	"slices"
	"testing"

	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// Shards come to the manifest of an open segment: to a lease that is at work, and to one that had nothing to do.
func TestShardsThatAppear(t *testing.T) {
	m := newMemory()
	const seg = "2026/01/01/0000"
	shards := map[int][]happened{0: {{"0", "2026-01-01T00:10:00Z", "a"}}}
	m.segment(seg, "Publishing", 60, shards)
	c := broker(t)
	o, r := over(t, c, m)
	stop := run(t, o)
	for _, shard := range []int{4, 1, 7} { // of four leases
		r.await(t, func(c Commit) bool { return c.Emitted == len(shards) })
		shards[shard] = []happened{{fmt.Sprint(shard), "2026-01-01T00:20:00Z", fmt.Sprint("b", shard)}}
		m.segment(seg, "Publishing", 60, shards)
	}
	r.await(t, func(c Commit) bool { return c.Emitted == 4 })
	m.segment(seg, "Finalized", 60, shards)
	stop()
	must(t, runOnce(t, o))
	seen := &order{}
	_, markers := consume(t, c, append(promises(), seen)...)
	if seen.sortedIDs() != "0 1 4 7" || markers != partitions {
		t.Errorf("%s, %d markers", seen.sortedIDs(), markers)
	}
}

// A shard that is at its end stays in every later cursor, whoever else grows, and over restarts.
func TestExhaustedShardStaysInTheCursor(t *testing.T) {
	m := newMemory()
	const seg = "2026/01/01/0000"
	m.segment(seg, "Publishing", 60,
		map[int][]happened{0: {{"quiet", "2026-01-01T00:10:00Z", "a"}}, 1: {{"busy 0", "2026-01-01T00:10:00Z", "b"}}})
	quiet := int64(len(m.blobs["log/00/"+seg+"/00000.avro"]))
	c := broker(t)
	for i := range 4 {
		o, r := over(t, c, m)
		o.Kafka.Leases = 1 // both shards belong to one lease
		b := New(o)
		must(t, b.Run(t.Context(), t.Context()))
		if want := []int{2, 1, 1, 1}[i]; r.Read != want {
			t.Errorf("run %d read %d events, want %d", i, r.Read, want)
		}
		state := b.State()
		busy := int64(len(m.blobs["log/01/"+seg+"/00000.avro"]))
		want := map[string]source.ShardPosition{"00": {Offset: quiet}, "01": {Offset: busy}}
		if got := state.Cursor(0).Shards; len(got) != 2 || got["00"] != want["00"] || got["01"] != want["01"] {
			t.Errorf("run %d: %v, want %v", i, got, want)
		}
		must(t, m.Append(t.Context(), "log/01/"+seg+"/00000.avro",
			avro(false, happened{fmt.Sprint("busy ", i+1), "2026-01-01T00:20:00Z", "b"})))
	}
	consume(t, c, promises()...)
}

// Control events leave no record, and are passed: also where there is nothing else.
func TestControlMovesTheCursor(t *testing.T) {
	for name, mix := range map[string]feedsim.Mix{"mixed": {Control: 1, Created: 1}, "alone": {Control: 1}} {
		t.Run(name, func(t *testing.T) {
			m, live := simulated(t, feedsim.Spec{Mix: mix})
			must(t, live.Append(t.Context(), 100, nil))
			c := broker(t)
			for run := range 2 {
				o, r := over(t, c, m)
				must(t, runOnce(t, o))
				controls := int(live.Summary().Controls)
				wantRead, wantEmitted := 100*(1-run), (100-controls)*(1-run)
				if r.Read != wantRead || r.Emitted != wantEmitted ||
					r.Filtered != wantRead-wantEmitted ||
					controls == 0 {
					t.Errorf("run %d: %+v, %d Control events", run, r.Commit, controls)
				}
			}
			consume(t, c, promises()...)
		})
	}
}

// Many events of one blob, in blocks and over transactions, shards and segments: one partition, in order.
func TestOneBlobInOrder(t *testing.T) {
	ctx := t.Context()
	m, live := simulated(t, feedsim.Spec{Blobs: 1, BlockEvents: 7, ShardsOf: func(n int) int { return 1 + n%3 }})
	var want []string
	expect := func(e feedsim.Event) { want = append(want, e.ID) }
	for range 4 {
		must(t, live.Append(ctx, 60, expect), live.Next(ctx))
	}
	c := broker(t)
	o, _ := over(t, c, m)
	o.Pace.TxnRecords, o.Pace.TxnBytes, o.Pace.BundleBytes = 10, 5000, 0
	must(t, runOnce(t, o))
	seen := &order{}
	consume(t, c, append(promises(), seen)...)
	if !slices.Equal(seen.ids, want) || len(seen.partitions) != 1 {
		t.Errorf("%d of %d events, in order: %v, in %d partitions", len(seen.ids), len(want),
			slices.Equal(seen.ids, want), len(seen.partitions))
	}
}

// The number of shards changes with each segment, and with it the shard of a blob, and the lease: all of N
// before any of N+1.
func TestShardCountsChange(t *testing.T) {
	ctx := t.Context()
	complete := arrivals.New()
	m, live := simulated(t,
		feedsim.Spec{Blobs: 20, BlockEvents: 5, ShardsOf: func(n int) int { return []int{1, 7, 2, 5, 3, 8}[n%6] }})
	for range 6 {
		must(t, live.Append(ctx, 100, func(e feedsim.Event) { complete.Expect(e.ID) }), live.Next(ctx))
	}
	c := broker(t)
	o, _ := over(t, c, m)
	o.Pace.TxnRecords, o.Pace.TxnBytes, o.Pace.BundleBytes = 20, 20_000, 0
	must(t, runOnce(t, o))
	if data, markers := consume(t, c, append(promises(), complete)...); data != 600 || markers != 6*partitions ||
		complete.Left() > 0 {
		t.Errorf("%d records, %d markers, %d missing", data, markers, complete.Left())
	}
}

package ops

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/status"
)

// The last hour is kept, and no more: what the page shows after a reload.
func TestHistoryIsOfTheLastHour(t *testing.T) {
	m, metrics, now := busy(t)
	h := Handler(m, metrics)
	history := func() (got History) {
		t.Helper()
		_, body, _ := get(t, h, "/history")
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := history(); len(got.Time) != 0 || got.Interval != 10 {
		t.Errorf("at first: %+v", got)
	}
	m.Sample()
	for i := range samplesKept + 50 {
		*now = now.Add(sampleInterval)
		m.Committed(bridge.Commit{Lease: 0, Read: 10 * i, Bytes: 100 * i, Seen: *now})
		m.Sample()
	}
	got := history()
	last := samplesKept - 1
	for name, n := range map[string]int{
		"time": len(got.Time), "azure": len(got.Azure), "bridge": len(got.Bridge), "events": len(got.Events),
		"bytes": len(got.Bytes), "resolved": len(got.Resolved), "verdict": len(got.Verdict),
	} {
		if n != samplesKept {
			t.Fatalf("%d samples of %s, want %d", n, name, samplesKept)
		}
	}
	if got.Time[last] != now.Unix() || got.Time[0] != now.Add(-time.Hour+sampleInterval).Unix() {
		t.Errorf("from %d to %d, at %d", got.Time[0], got.Time[last], now.Unix())
	}
	if n := samplesKept + 49; got.Events[last] != float64(n) || got.Bytes[last] != float64(10*n) {
		t.Errorf("%v events/s and %v bytes/s in the last sample, want %d events/s", got.Events[last], got.Bytes[last],
			n)
	}
	if got.Verdict[last] != status.CatchingUp || got.Azure[last] == nil || got.Bridge[last] == nil ||
		*got.Resolved[last] <= *got.Resolved[0] {
		t.Errorf("the last sample: %s %v %v %v", got.Verdict[last], got.Azure[last], got.Bridge[last],
			got.Resolved[last])
	}
}

// The first seconds have a chart: the start, and this moment with the rate since then. At its end there is no stroke to
// the rate of a moment.
func TestHistoryOfTheFirstSeconds(t *testing.T) {
	m, _, now := busy(t)
	m.Sample()
	began := *now
	*now = now.Add(2 * time.Second)
	m.Committed(bridge.Commit{Lease: 0, Read: 100, Bytes: 1000, Seen: *now})
	h := m.LastHour()
	if len(h.Time) != 2 || h.Time[0] != began.Unix() || h.Time[1] != now.Unix() || h.Events[1] != 50 ||
		h.Bytes[1] != 500 {
		t.Errorf("after 2 s: %+v", h)
	}
	m.Sample()
	if h := m.LastHour(); len(h.Time) != 2 { // the sample is of this moment
		t.Errorf("with a sample: %+v", h)
	}
	m.Committed(bridge.Commit{Lease: 0, Read: 800, Seen: *now})
	*now = now.Add(8 * time.Second)
	m.Sample()
	*now = now.Add(time.Second / 2)
	m.Committed(bridge.Commit{Lease: 0, Read: 1000, Seen: *now})
	if h := m.LastHour(); len(h.Time) != 3 || h.Events[2] != 100 {
		t.Errorf("a moment later: %+v", h)
	}
	*now = now.Add(time.Second)
	if h := m.LastHour(); len(h.Time) != 4 || h.Events[3] != 100 {
		t.Errorf("a second later: %+v", h)
	}
	*now = now.Add(time.Second * 5 / 2)
	if h := m.LastHour(); len(h.Time) != 4 || h.Events[3] != 250 {
		t.Errorf("when the rate can be measured: %+v", h)
	}
}

// At the start samples are close, so that charts have more than a point in the first ten seconds.
func TestFirstSamplesAreClose(t *testing.T) { synctest.Test(t, testFirstSamples) }

func testFirstSamples(t *testing.T) {
	m := NewMonitor("b", "feed", Info{}, time.Minute, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go m.Keep(ctx)
	for after, want := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 10, 11} {
		synctest.Wait()
		m.mu.Lock()
		n := m.samples.next
		m.mu.Unlock()
		if n != want {
			t.Errorf("%d samples after %d s, want %d", n, 2*after, want)
		}
		time.Sleep(2 * time.Second)
	}
}

// The speed of an instance is that of its work: the time before its first transaction does not count.
func TestThroughputOfTheFirstTransaction(t *testing.T) {
	m, _, now := watching(t)
	*now = now.Add(20 * time.Second)
	m.Committed(bridge.Commit{Read: 100, Bytes: 1000, Took: 2 * time.Second})
	if got := m.Snapshot().Throughput; got != (Throughput{50, 500}) {
		t.Errorf("%+v", got)
	}
}

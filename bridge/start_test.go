package bridge

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// The feed is not enabled yet: that is said, and tried again, until it is.
func TestFeedIsNotEnabledYet(t *testing.T) {
	t.Parallel()
	m, live := simulated(t, feedsim.Spec{})
	must(t, live.Append(t.Context(), 10, nil), live.Finalize(t.Context()))
	var asked atomic.Int32
	m.onRead = func(string) error {
		if asked.Add(1) <= 2 {
			return source.ErrNoFeed
		}
		return nil
	}
	c := broker(t)
	o, r := over(t, c, m)
	must(t, runOnce(t, o))
	if data, _ := consume(t, c, promises()...); data != 10 || len(r.failed) != 2 ||
		!strings.Contains(r.failed[0], "there is no change feed") {
		t.Errorf("%d records, %q", data, r.failed)
	}
}

// Without meta/segments.json there is nothing to read, and nothing wrong.
func TestNoWatermarkYet(t *testing.T) {
	m, live := simulated(t, feedsim.Spec{})
	must(t, live.Append(t.Context(), 10, nil))
	watermark := m.blobs["meta/segments.json"]
	delete(m.blobs, "meta/segments.json")
	c := broker(t)
	o, r := over(t, c, m)
	must(t, runOnce(t, o))
	if r.Read != 0 || len(r.failed) > 0 {
		t.Errorf("%+v, %q", r.Commit, r.failed)
	}
	stop := run(t, o)
	must(t, m.Put(t.Context(), "meta/segments.json", watermark))
	r.await(t, func(c Commit) bool { return c.Emitted == 10 })
	stop()
	if data, markers := consume(t, c, promises()...); data != 10 || markers != 0 {
		t.Errorf("%d records, %d markers", data, markers)
	}
}

// An event may be in the segment before the one that encloses its time, or after; the start is a matter of events.
func TestStartInsideASegment(t *testing.T) {
	t.Parallel()
	for start, want := range map[string]string{
		"2026-01-01T10:05:00Z": "09-late 10-b 10-c 11-a 11-early",
		"2026-01-01T10:00:00Z": "09-late 10-a 10-b 10-c 11-a 11-early",
		"2026-01-01T10:46:00Z": "11-a 11-early",
		"2026-01-01T12:00:00Z": "",
	} {
		m := newMemory()
		m.segment("2026/01/01/0800", "Finalized", 60, map[int][]happened{0: {{"08-a", "2026-01-01T08:59:59Z", "a"}}})
		m.segment("2026/01/01/0900", "Finalized", 60,
			map[int][]happened{0: {{"09-a", "2026-01-01T09:30:00Z", "a"}, {"09-late", "2026-01-01T10:05:00Z", "b"}}})
		m.segment(
			"2026/01/01/1000",
			"Finalized",
			60,
			map[int][]happened{
				0: {
					{"10-early", "2026-01-01T09:55:00Z", "a"},
					{"10-a", "2026-01-01T10:04:59.9999999Z", "b"},
					{"10-b", "2026-01-01T10:06:00Z", "a"},
					{"10-c", "2026-01-01T10:45:00Z", "a"},
				},
			},
		)
		m.segment("2026/01/01/1100", "Finalized", 60,
			map[int][]happened{0: {{"11-early", "2026-01-01T10:46:00Z", "a"}, {"11-a", "2026-01-01T11:00:00Z", "a"}}})
		c := broker(t)
		o, _ := over(t, c, m)
		var err error
		if o.Feed.Start, err = history.ParseStart(start); err != nil {
			t.Fatal(err)
		}
		must(t, runOnce(t, o))
		seen := &order{}
		consume(t, c, append(promises(), seen)...)
		if got := seen.sortedIDs(); got != want {
			t.Errorf("from %s: %s, want %s", start, got, want)
		}
	}
}

// The segment behind the end may hold events of its last minutes. Behind that one nothing is read.
func TestEndTime(t *testing.T) {
	m := newMemory()
	m.segment("2026/01/01/1000", "Finalized", 15,
		map[int][]happened{0: {{"a", "2026-01-01T10:04:00Z", "a"}, {"too late", "2026-01-01T10:05:00.0000001Z", "a"}}})
	m.segment("2026/01/01/1015", "Finalized", 15,
		map[int][]happened{0: {{"b", "2026-01-01T10:05:00Z", "b"}, {"too late, too", "2026-01-01T10:20:00Z", "b"}}})
	tooLate := happened{"far too late", "2026-01-01T10:50:00Z", "b"}
	m.segment("2026/01/01/1045", "Publishing", 15, map[int][]happened{0: {tooLate}})
	c := broker(t)
	o, r := over(t, c, m)
	var err error
	if o.Feed.End, err = history.ParseTime("2026-01-01T10:05:00Z"); err != nil {
		t.Fatal(err)
	}
	o.Once = false // it ends by itself, also the second time
	for range 2 {
		must(t, runOnce(t, o))
	}
	seen := &order{}
	consume(t, c, append(promises(), seen)...)
	if got := seen.sortedIDs(); got != "a b" || !strings.Contains(seen.last, o.Feed.End.String()) || r.Filtered != 2 {
		t.Errorf("%s, %d filtered, the last marker %s", got, r.Filtered, seen.last)
	}
	ofTheLast := func(name string) bool { return strings.HasPrefix(name, "log/00/2026/01/01/1045") }
	if slices.ContainsFunc(m.reads, ofTheLast) {
		t.Error("the segment behind was read")
	}
}

// The state of one account is of no use to another: it is refused before anything is written, and stays as it was.
func TestStateOfAnotherAccount(t *testing.T) {
	ctx := t.Context()
	m, live := simulated(t, feedsim.Spec{})
	must(t, live.Append(ctx, 10, nil))
	c := broker(t)
	o, _ := over(t, c, m)
	o.Feed.ID = "acct.blob.core.windows.net"
	must(t, runOnce(t, o))
	must(t, live.Append(ctx, 5, nil))
	for _, other := range []string{"other.blob.core.windows.net", "acct.blob.core.windows.net/x", ""} {
		wrong, r := over(t, c, m)
		wrong.Feed.ID = other
		err := runOnce(t, wrong)
		var settings *plain.SettingsError
		if !errors.As(err, &settings) || !strings.Contains(err.Error(), "BRIDGE_SOURCE_URL") ||
			!strings.Contains(err.Error(), o.Feed.ID) ||
			r.Read > 0 {
			t.Errorf("%q: %v, %+v", other, err, r.Commit)
		}
	}
	must(t, runOnce(t, o))
	if data, _ := consume(t, c, promises()...); data != 15 {
		t.Errorf("%d records", data)
	}
}

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
	one := happened{"1", at.Add(segments * time.Hour).Format(time.RFC3339), "a"}
	m.segment(name(segments), "Publishing", 60, map[int][]happened{0: nil, 1: nil, 2: {one}})
	c := broker(t)
	o, _ := over(t, c, m)
	o.Pace.BundleBytes = 0
	must(t, runOnce(t, o))
	for i := range segments {
		m.remove("idx/segments/" + name(i))
		for _, shard := range []string{"log/00/", "log/01/", "log/02/"} {
			m.remove(shard + name(i))
		}
	}
	o.Kafka.Client = append(o.Kafka.Client, kgo.FetchMaxPartitionBytes(1)) // a record at a time
	for range 3 {
		must(t, runOnce(t, o))
	}
	if data, markers := consume(t, c, promises()...); data != 1 || markers != segments*partitions {
		t.Errorf("%d records, %d markers", data, markers)
	}
}

// Records of any lease count: the start reads the cursors of all before it says that there are none.
func TestRecordsOfAnotherLease(t *testing.T) {
	t.Parallel()
	c := broker(t)
	o, _ := options(t, c, writeFeed(t, feedsim.Spec{Shards: 2, EventsPerSegment: 100}))
	o.Pace.BundleBytes = 0
	must(t, runOnce(t, o))
	cl := fakebroker.Client(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	forgotten := &kgo.Record{Topic: o.offsetsTopic(), Partition: 0, Key: []byte("cursor")}
	must(t, cl.ProduceSync(t.Context(), forgotten).FirstErr())
	o.Records.Frozen = map[string]string{"BRIDGE_TOPIC": "other"}
	if err := runOnce(t, o); err == nil || !strings.Contains(err.Error(), "but records were written with "+topic) {
		t.Error(err)
	}
}

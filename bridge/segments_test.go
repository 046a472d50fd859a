package bridge

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobfeed/internal/history"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
	"blobfeed/source"
)

// The last segment of an idle account stays open for months: all its events are delivered, at once and once, it
// is never done, and to look again costs no download.
func TestIdleAccount(t *testing.T) {
	t.Parallel()
	m, live := simulated(t, feedsim.Spec{Shards: 3})
	c := broker(t)
	total := 0
	for i, n := range []int{40, 0, 0, 15} {
		if n > 0 {
			must(t, live.Append(t.Context(), n, nil))
		}
		m.reads = nil
		o, r := over(t, c, m)
		must(t, runOnce(t, o))
		if total += n; r.Emitted != n || r.Read != n {
			t.Errorf("run %d: %+v", i, r.Commit)
		}
		if n == 0 && slices.ContainsFunc(m.reads, func(name string) bool { return strings.HasPrefix(name, "log/") }) {
			t.Errorf("run %d: chunks were read, though they have nothing new", i)
		}
	}
	if data, markers := consume(t, c, promises()...); data != total || markers != 0 {
		t.Errorf("%d records of %d, %d markers", data, total, markers)
	}
}

// For a minute two segments are open. The second has to wait, however often the first is looked at.
func TestNextSegmentWaitsForTheOpenOne(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m, live := simulated(t, feedsim.Spec{Shards: 2})
	must(t, live.Append(ctx, 30, nil), live.Next(ctx), live.Append(ctx, 20, nil))
	const first = "idx/segments/2026/01/01/0000/meta.json"
	m.replace(first, "Finalized", "Publishing") // as it was when the second appeared
	c := broker(t)
	o, r := over(t, c, m)
	looks := 0
	var mu sync.Mutex // several workers look
	m.onRead = func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		r.mu.Lock()
		defer r.mu.Unlock()
		if name != first || r.Read < 30 {
			return nil
		}
		if r.Read > 30 && looks < 6 { // a slow worker may look later
			t.Errorf("%d events, though the first segment is open", r.Read)
		}
		if looks++; looks == 6 {
			m.replace(first, "Publishing", "Finalized")
		}
		return nil
	}
	stop := run(t, o)
	awaitState(t, o, "both segments are delivered", func(s *offsets.State) bool {
		read := int64(0)
		for _, c := range s.Cursors {
			if c != nil {
				read += c.Counts.Read
			}
		}
		return read == 50
	})
	stop()
	if data, markers := consume(t, c, promises()...); data != 50 || markers != partitions || looks < 6 {
		t.Errorf("%d records, %d markers, %d looks", data, markers, looks)
	}
}

// The service appends for the last time, and finalizes, between any two calls of ours: here just before the manifest is
// read, and says so. Status, then list, then read (I7).
func TestFinalizedSegmentIsListedAgain(t *testing.T) {
	ctx := t.Context()
	m, live := simulated(t, feedsim.Spec{})
	must(t, live.Append(ctx, 10, nil))
	c := broker(t)
	o, r := over(t, c, m)
	var once sync.Once
	m.onRead = func(name string) error {
		r.mu.Lock()
		drained := r.Read == 10
		r.mu.Unlock()
		if drained && strings.HasPrefix(name, "idx/") {
			once.Do(func() {
				live.Roll()
				if err := errors.Join(live.Append(ctx, 5, nil), live.Finalize(ctx)); err != nil {
					t.Error(err)
				}
			})
		}
		return nil
	}
	stop := run(t, o)
	r.await(t, func(c Commit) bool { return c.Emitted == 15 })
	stop()
	m.onRead = nil
	must(t, runOnce(t, o))
	if data, markers := consume(t, c, promises()...); data != 15 || markers != partitions {
		t.Errorf("%d records, %d markers", data, markers)
	}
}

// An open manifest is read again, at the latest after half a poll; a finalized one stays true.
func TestOpenManifestIsReadAgain(t *testing.T) {
	m := newMemory()
	m.segment("2026/01/01/0000", "Publishing", 60, nil)
	m.segment("2026/01/01/0100", "Publishing", 60, nil) // lastConsumable is above it
	seg, err := source.ParseSegment("2026/01/01/0000")
	must(t, err)
	cache := history.New(source.New(m, source.Options{}), 0)
	for i := range 3 {
		man, err := cache.Manifest(t.Context(), seg, time.Time{})
		if err != nil || man.Finalized || len(m.reads) != i+1 {
			t.Errorf("%+v, %v after %d reads", man, err, len(m.reads))
		}
	}
	m.segment("2026/01/01/0000", "Finalized", 60, nil)
	for range 3 {
		man, err := cache.Manifest(t.Context(), seg, time.Time{})
		if err != nil || !man.Finalized || len(m.reads) != 4 {
			t.Errorf("%+v, %v after %d reads", man, err, len(m.reads))
		}
	}
	next, err := source.ParseSegment("2026/01/01/0100")
	must(t, err)
	man, err := cache.Manifest(t.Context(), next, time.Time{})
	if err != nil || man.Finalized || man.Segment != next {
		t.Errorf("of another segment: %+v, %v", man, err)
	}
}

// Segments that list no shards, and shards that never get a blob, are done when they are finalized, and promise
// their time.
func TestSegmentsWithoutShards(t *testing.T) {
	m := newMemory()
	m.segment("2026/01/01/0000", "Finalized", 60, map[int][]happened{0: {{"a", "2026-01-01T00:10:00Z", "a"}}})
	m.segment("2026/01/01/0100", "Finalized", 60, nil)
	m.segment("2026/01/01/0200", "Finalized", 60, map[int][]happened{0: nil, 5: nil})
	delete(m.blobs, "log/05/2026/01/01/0200/00000.avro") // not even an empty chunk
	m.segment("2026/01/01/0300", "Publishing", 60, nil)
	c := broker(t)
	o, r := over(t, c, m)
	must(t, runOnce(t, o))
	if data, markers := consume(t, c, promises()...); data != 1 || markers != 3*partitions || r.Read != 1 {
		t.Errorf("%d records, %d markers", data, markers)
	}
	m.segment("2026/01/01/0300", "Finalized", 60, nil)
	must(t, runOnce(t, o))
	if _, markers := consume(t, c, promises()...); markers != 4*partitions {
		t.Errorf("%d markers after the open one is finalized", markers)
	}
}

// A resumed segment delivers events whose times are outside it, too.
func TestEventsOutsideTheirSegment(t *testing.T) {
	m := newMemory()
	const seg = "2026/01/01/1000"
	m.segment(seg, "Publishing", 60, map[int][]happened{0: {{"1", "2026-01-01T10:30:00Z", "a"}}})
	c := broker(t)
	o, _ := over(t, c, m)
	for _, e := range []happened{
		{"2", "2026-01-01T09:45:00Z", "b"}, {"3", "2026-01-01T11:14:00Z", "c"}, {"4", "2025-01-01T00:00:00Z", "d"},
	} {
		must(t, runOnce(t, o))
		must(t, m.Append(t.Context(), "log/00/"+seg+"/00000.avro", avro(false, e)))
	}
	must(t, runOnce(t, o))
	seen := &order{}
	consume(t, c, append(promises(), seen)...)
	if got := seen.sortedIDs(); got != "1 2 3 4" {
		t.Error(got)
	}
}

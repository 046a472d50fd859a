package bridge

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
	"blobfeed/integration/feedsim"
	"blobfeed/source"
	"blobfeed/verify"
)

// The tests below are rows of the list of what a reader of the feed has to get right, by their numbers; more of them are in
// package source.

// memory is a feed in memory, for feedsim to write and the engine to read. Hooks are called before a call is answered, and
// may change the feed; an error of theirs is the answer.
type memory struct {
	mu     sync.Mutex
	blobs  map[string][]byte
	reads  []string // names
	onRead func(name string) error
	onList func(prefix string) error
}

func newMemory() *memory { return &memory{blobs: map[string][]byte{}} }

func (m *memory) Put(_ context.Context, name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[name] = slices.Clone(data)
	return nil
}

func (m *memory) Append(_ context.Context, name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[name] = slices.Concat(m.blobs[name], data)
	return nil
}

func (m *memory) replace(name, old, by string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[name] = []byte(strings.ReplaceAll(string(m.blobs[name]), old, by))
}

// remove deletes what begins with prefix, as retention does.
func (m *memory) remove(prefix string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.blobs {
		if strings.HasPrefix(name, prefix) {
			delete(m.blobs, name)
		}
	}
}

func (m *memory) List(ctx context.Context, prefix, delimiter string) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		if m.onList != nil {
			if err := m.onList(prefix); err != nil {
				yield(source.Entry{}, err)
				return
			}
		}
		m.mu.Lock()
		var entries []source.Entry
		for name, b := range m.blobs {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				e := source.Entry{Name: name, Size: int64(len(b))}
				if i := strings.Index(rest, "/"); delimiter != "" && i >= 0 {
					e = source.Entry{Name: prefix + rest[:i+1], IsPrefix: true}
				}
				if !slices.Contains(entries, e) {
					entries = append(entries, e)
				}
			}
		}
		m.mu.Unlock()
		slices.SortFunc(entries, func(a, b source.Entry) int { return strings.Compare(a.Name, b.Name) })
		for _, e := range entries {
			if !yield(e, ctx.Err()) {
				return
			}
		}
	}
}

func (m *memory) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	if m.onRead != nil {
		if err := m.onRead(name); err != nil {
			return 0, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads = append(m.reads, name)
	b, ok := m.blobs[name]
	if !ok {
		return 0, source.ErrNotFound
	}
	return copy(p, b[min(offset, int64(len(b))):]), ctx.Err()
}

// over returns options for a feed in memory, polled fast.
func over(t *testing.T, c *kfake.Cluster, m *memory) (Options, *recorder) {
	t.Helper()
	o, r := options(t, c, realFeed)
	o.Feed, o.PollInterval = source.New(m, source.Options{}), 20*time.Millisecond
	return o, r
}

// simulated returns a feed to be written step by step into memory.
func simulated(t *testing.T, spec feedsim.Spec) (*memory, *feedsim.Feed) {
	t.Helper()
	m := newMemory()
	live, err := feedsim.New(m, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m, live
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// happened is an event as a test says it, of a made feed: "id time subject".
type happened struct{ id, at, blob string }

// avro returns a chunk with one block, of a schema with only what the envelope needs.
func avro(header bool, events ...happened) []byte {
	const sync = "0123456789abcdef"
	text := func(s string) string { return string([]byte{byte(len(s)<<1&0x7f | 0x80), byte(len(s) >> 6)}) + s }
	schema := `{"type":"record","name":"E","fields":[{"name":"id","type":"string"},{"name":"subject","type":"string"},{"name":"eventType","type":"string"},{"name":"eventTime","type":"string"}]}`
	b := ""
	if header {
		b = "Obj\x01\x02\x16avro.schema" + text(schema) + "\x00" + sync
	}
	data := ""
	for _, e := range events {
		data += text(e.id) + text("/blobServices/default/containers/c/blobs/"+e.blob) + text("BlobCreated") + text(e.at)
	}
	if len(events) > 0 {
		b += string([]byte{byte(len(events) << 1)}) + text(data) + sync
	}
	return []byte(b)
}

// segment writes a whole one, of shards that each have one chunk, and says that it may be read.
func (m *memory) segment(name, status string, minutes int, shards map[int][]happened) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := time.Parse("2006/01/02/1504", name)
	if err != nil {
		panic(err)
	}
	begin := at.Format("2006-01-02T15:04:05.000Z")
	var paths []string
	for shard, events := range shards {
		path := fmt.Sprintf("log/%02d/%s/", shard, name)
		paths = append(paths, `"$blobchangefeed/`+path+`"`)
		if _, ok := m.blobs[path+"00000.avro"]; !ok {
			m.blobs[path+"00000.avro"] = avro(true, events...)
		}
	}
	m.blobs["idx/segments/"+name+"/meta.json"] = fmt.Appendf(nil, `{"begin":%q,"intervalSecs":%d,"status":%q,"chunkFilePaths":[%s]}`, begin, minutes*60, status, strings.Join(paths, ","))
	m.blobs["meta/segments.json"] = fmt.Appendf(nil, `{"lastConsumable":%q}`, begin)
}

// order notes the ids of records as they come on each partition.
type order struct {
	ids        []string
	partitions map[int32]bool
	last       string // marker
}

func (o *order) Note(r verify.Record) {
	if r.Key == nil {
		o.last = string(r.Value)
		return
	}
	if o.partitions == nil {
		o.partitions = map[int32]bool{}
	}
	o.partitions[r.Partition] = true
	o.ids = append(o.ids, string(r.Header("ce_id")))
}

func (o *order) Failures() []verify.Failure { return nil }

// sortedIDs returns what was noted, without the order between partitions.
func (o *order) sortedIDs() string {
	ids := slices.Clone(o.ids)
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// await polls a condition on what is committed.
func (r *recorder) await(t *testing.T, cond func(c Commit) bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		r.mu.Lock()
		c := r.Commit
		r.mu.Unlock()
		if cond(c) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for long: %+v", c)
		}
		time.Sleep(5 * time.Millisecond) // polling a count
	}
}

// run works in the background until the function it returns is called.
func run(t *testing.T, o Options) (stop func()) {
	t.Helper()
	o.Once = false
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New(o).Run(ctx, context.Background()) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The feed is not enabled yet: that is said, and tried again, until it is.
func TestChecklist01_NotEnabledYet(t *testing.T) {
	m, live := simulated(t, feedsim.Spec{})
	must(t, live.Append(t.Context(), 10, nil), live.Finalize(t.Context()))
	var asked atomic.Int32
	m.onRead = func(string) error {
		if asked.Add(1) <= 2 {
			return source.ErrNotEnabled
		}
		return nil
	}
	c := broker(t)
	o, r := over(t, c, m)
	must(t, runOnce(t, o))
	if data, _ := consume(t, c, promises()...); data != 10 || len(r.failed) != 2 || !strings.Contains(r.failed[0], "enable it for the storage account") {
		t.Errorf("%d records, %q", data, r.failed)
	}
}

// Without meta/segments.json there is nothing to read, and nothing wrong.
func TestChecklist02_NoWatermarkYet(t *testing.T) {
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
func TestChecklist06_StartInsideASegment(t *testing.T) {
	for start, want := range map[string]string{
		"2026-01-01T10:05:00Z": "09-late 10-b 10-c 11-a 11-early",
		"2026-01-01T10:00:00Z": "09-late 10-a 10-b 10-c 11-a 11-early",
		"2026-01-01T10:46:00Z": "11-a 11-early",
		"2026-01-01T12:00:00Z": "",
	} {
		m := newMemory()
		m.segment("2026/01/01/0800", "Finalized", 60, map[int][]happened{0: {{"08-a", "2026-01-01T08:59:59Z", "a"}}})
		m.segment("2026/01/01/0900", "Finalized", 60, map[int][]happened{0: {{"09-a", "2026-01-01T09:30:00Z", "a"}, {"09-late", "2026-01-01T10:05:00Z", "b"}}})
		m.segment("2026/01/01/1000", "Finalized", 60, map[int][]happened{0: {{"10-early", "2026-01-01T09:55:00Z", "a"}, {"10-a", "2026-01-01T10:04:59.9999999Z", "b"}, {"10-b", "2026-01-01T10:06:00Z", "a"}, {"10-c", "2026-01-01T10:45:00Z", "a"}}})
		m.segment("2026/01/01/1100", "Finalized", 60, map[int][]happened{0: {{"11-early", "2026-01-01T10:46:00Z", "a"}, {"11-a", "2026-01-01T11:00:00Z", "a"}}})
		c := broker(t)
		o, _ := over(t, c, m)
		var err error
		if o.Start, err = ParseStart(start); err != nil {
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
func TestChecklist07_EndTime(t *testing.T) {
	m := newMemory()
	m.segment("2026/01/01/1000", "Finalized", 15, map[int][]happened{0: {{"a", "2026-01-01T10:04:00Z", "a"}, {"too late", "2026-01-01T10:05:00.0000001Z", "a"}}})
	m.segment("2026/01/01/1015", "Finalized", 15, map[int][]happened{0: {{"b", "2026-01-01T10:05:00Z", "b"}, {"too late, too", "2026-01-01T10:20:00Z", "b"}}})
	m.segment("2026/01/01/1045", "Publishing", 15, map[int][]happened{0: {{"far too late", "2026-01-01T10:50:00Z", "b"}}})
	c := broker(t)
	o, r := over(t, c, m)
	var err error
	if o.End, err = ParseTime("2026-01-01T10:05:00Z"); err != nil {
		t.Fatal(err)
	}
	o.Once = false // it ends by itself, also the second time
	for range 2 {
		must(t, runOnce(t, o))
	}
	seen := &order{}
	consume(t, c, append(promises(), seen)...)
	if got := seen.sortedIDs(); got != "a b" || !strings.Contains(seen.last, o.End.String()) || r.Filtered != 2 {
		t.Errorf("%s, %d filtered, the last marker %s", got, r.Filtered, seen.last)
	}
	if slices.ContainsFunc(m.reads, func(name string) bool { return strings.HasPrefix(name, "log/00/2026/01/01/1045") }) {
		t.Error("the segment behind was read")
	}
}

// The last segment of an idle account stays open for months: all its events are delivered, at once and once, it is never
// done, and to look again costs no download.
func TestChecklist10_IdleAccount(t *testing.T) {
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
func TestChecklist11_NextExistsWhileOpen(t *testing.T) {
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
		if r.Read > 30 {
			t.Errorf("%d events, though the first segment is open", r.Read)
		}
		if looks++; looks == 6 {
			m.replace(first, "Publishing", "Finalized")
		}
		return nil
	}
	must(t, runOnce(t, o))
	if data, markers := consume(t, c, promises()...); data != 50 || markers != partitions || looks < 6 {
		t.Errorf("%d records, %d markers, %d looks", data, markers, looks)
	}
}

// The service appends for the last time, and finalizes, between any two calls of ours: here just before the manifest is
// read, and says so. Status, then list, then read (I7).
func TestChecklist12_FinalizedIsRelisted(t *testing.T) {
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
func TestChecklist13_OpenManifestIsReadAgain(t *testing.T) {
	m := newMemory()
	m.segment("2026/01/01/0000", "Publishing", 60, nil)
	m.segment("2026/01/01/0100", "Publishing", 60, nil) // lastConsumable is above it
	seg, err := source.ParseSegment("2026/01/01/0000")
	must(t, err)
	cache := newManifests(source.New(m, source.Options{}), 0)
	for i := range 3 {
		if man, err := cache.get(t.Context(), seg); err != nil || man.Finalized || len(m.reads) != i+1 {
			t.Errorf("%+v, %v after %d reads", man, err, len(m.reads))
		}
	}
	m.segment("2026/01/01/0000", "Finalized", 60, nil)
	for range 3 {
		if man, err := cache.get(t.Context(), seg); err != nil || !man.Finalized || len(m.reads) != 4 {
			t.Errorf("%+v, %v after %d reads", man, err, len(m.reads))
		}
	}
	next, err := source.ParseSegment("2026/01/01/0100")
	must(t, err)
	if man, err := cache.get(t.Context(), next); err != nil || man.Finalized || man.Segment != next {
		t.Errorf("of another segment: %+v, %v", man, err)
	}
}

// Segments that list no shards, and shards that never get a blob, are done when they are finalized, and promise their time.
func TestChecklist17_SegmentsWithoutShards(t *testing.T) {
	m := newMemory()
	m.segment("2026/01/01/0000", "Finalized", 60, map[int][]happened{0: {{"a", "2026-01-01T00:10:00Z", "a"}}})
	m.segment("2026/01/01/0100", "Finalized", 60, nil)
	m.segment("2026/01/01/0200", "Finalized", 60, map[int][]happened{0: nil, 5: nil})
	delete(m.blobs, "log/05/2026/01/01/0200/00000.avro") // row 18: not even an empty chunk
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

// Shards come to the manifest of an open segment: to a lease that is at work, and to one that had nothing to do.
func TestChecklist23_ShardsThatAppear(t *testing.T) {
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
	if _, markers := consume(t, c, append(promises(), seen)...); seen.sortedIDs() != "0 1 4 7" || markers != partitions {
		t.Errorf("%s, %d markers", seen.sortedIDs(), markers)
	}
}

// A shard that is at its end stays in every later cursor, whoever else grows, and over restarts.
func TestChecklist24_ExhaustedShardStaysInTheCursor(t *testing.T) {
	m := newMemory()
	const seg = "2026/01/01/0000"
	m.segment(seg, "Publishing", 60, map[int][]happened{0: {{"quiet", "2026-01-01T00:10:00Z", "a"}}, 1: {{"busy 0", "2026-01-01T00:10:00Z", "b"}}})
	quiet := int64(len(m.blobs["log/00/"+seg+"/00000.avro"]))
	c := broker(t)
	for i := range 4 {
		o, r := over(t, c, m)
		o.OffsetsPartitions = 1 // both shards belong to one lease
		b := New(o)
		must(t, b.Run(t.Context(), t.Context()))
		if want := []int{2, 1, 1, 1}[i]; r.Read != want {
			t.Errorf("run %d read %d events, want %d", i, r.Read, want)
		}
		state, _, err := b.view.Get()
		must(t, err)
		busy := int64(len(m.blobs["log/01/"+seg+"/00000.avro"]))
		want := map[string]source.ShardPosition{"00": {Offset: quiet}, "01": {Offset: busy}}
		if got := state.Cursor(0).Shards; len(got) != 2 || got["00"] != want["00"] || got["01"] != want["01"] {
			t.Errorf("run %d: %v, want %v", i, got, want)
		}
		must(t, m.Append(t.Context(), "log/01/"+seg+"/00000.avro", avro(false, happened{fmt.Sprint("busy ", i+1), "2026-01-01T00:20:00Z", "b"})))
	}
	consume(t, c, promises()...)
}

// What retention has removed is a gap only if it was to be read.
func TestChecklist27_Gap(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		remove []string // before the second run
		lost   string   // "": no gap
		data   int
	}{
		"the segment that was read":       {[]string{"2026/01/01/0000"}, "2026/01/01/0000", 10},
		"that one and those behind":       {[]string{"2026/01/01/0000", "2026/01/01/0100"}, "2026/01/01/0000", 10},
		"nothing":                         {nil, "", 60},
		"one in the middle was not there": {[]string{"2026/01/01/0100"}, "", 40},
	} {
		t.Run(name, func(t *testing.T) {
			m, live := simulated(t, feedsim.Spec{})
			must(t, live.Append(ctx, 10, nil))
			k := broker(t)
			o, _ := over(t, k, m)
			must(t, runOnce(t, o))
			must(t, live.Next(ctx), live.Append(ctx, 20, nil), live.Next(ctx), live.Append(ctx, 30, nil), live.Finalize(ctx))
			for _, seg := range c.remove {
				m.remove("idx/segments/" + seg)
				m.remove("log/00/" + seg)
			}
			err := runOnce(t, o)
			var gap *GapError
			if c.lost == "" {
				must(t, err)
			} else if !errors.As(err, &gap) || gap.At.String() != c.lost || gap.Oldest.Compare(gap.At) <= 0 || !strings.Contains(err.Error(), gap.Oldest.String()) || !strings.Contains(err.Error(), c.lost) {
				t.Fatalf("err = %v", err)
			}
			if data, _ := consume(t, k, promises()...); data != c.data {
				t.Errorf("%d records, want %d", data, c.data)
			}
			if c.lost == "" {
				return
			}
			o.SkipGaps = true
			must(t, runOnce(t, o))
			want := map[int]int{1: 10 + 20 + 30, 2: 10 + 30}[len(c.remove)]
			seen := &gaps{}
			if data, _ := consume(t, k, append(promises(), seen)...); data != want || len(seen.seen) != partitions {
				t.Errorf("told to go on: %d records, want %d, gaps %q", data, want, seen.seen)
			}
		})
	}
	// A manifest that is missing for a moment, in a feed that begins before it, is trouble.
	m, live := simulated(t, feedsim.Spec{})
	must(t, live.Append(ctx, 10, nil), live.Next(ctx), live.Append(ctx, 20, nil), live.Finalize(ctx))
	left := 2
	var mu sync.Mutex
	m.onRead = func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(name, "/0100/meta.json") && left > 0 {
			left--
			return source.ErrNotFound
		}
		return nil
	}
	k := broker(t)
	o, r := over(t, k, m)
	o.BundleBytes = 0 // reading ahead says nothing of trouble: it leaves that to the leases
	must(t, runOnce(t, o))
	if data, markers := consume(t, k, promises()...); data != 30 || markers != 2*partitions || len(r.failed) == 0 {
		t.Errorf("%d records, %d markers, %q", data, markers, r.failed)
	}
}

// A resumed segment delivers events whose times are outside it, too.
func TestChecklist28_NoFilterBySegmentTime(t *testing.T) {
	m := newMemory()
	const seg = "2026/01/01/1000"
	m.segment(seg, "Publishing", 60, map[int][]happened{0: {{"1", "2026-01-01T10:30:00Z", "a"}}})
	c := broker(t)
	o, _ := over(t, c, m)
	for _, e := range []happened{{"2", "2026-01-01T09:45:00Z", "b"}, {"3", "2026-01-01T11:14:00Z", "c"}, {"4", "2025-01-01T00:00:00Z", "d"}} {
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

// Control events leave no record, and are passed: also where there is nothing else.
func TestChecklist35_ControlMovesTheCursor(t *testing.T) {
	for name, mix := range map[string]feedsim.Mix{"mixed": {Control: 1, Created: 1}, "alone": {Control: 1}} {
		t.Run(name, func(t *testing.T) {
			m, live := simulated(t, feedsim.Spec{Mix: mix})
			must(t, live.Append(t.Context(), 100, nil))
			c := broker(t)
			for run := range 2 {
				o, r := over(t, c, m)
				must(t, runOnce(t, o))
				controls := int(live.Summary().Controls)
				if wantRead, wantEmitted := 100*(1-run), (100-controls)*(1-run); r.Read != wantRead || r.Emitted != wantEmitted || controls == 0 {
					t.Errorf("run %d: %+v, %d Control events", run, r.Commit, controls)
				}
			}
			consume(t, c, promises()...)
		})
	}
}

// Many events of one blob, in blocks and over transactions, shards and segments: one partition, in order.
func TestChecklist41_OneBlobInOrder(t *testing.T) {
	ctx := t.Context()
	m, live := simulated(t, feedsim.Spec{Blobs: 1, BlockEvents: 7, ShardsOf: func(n int) int { return 1 + n%3 }})
	var want []string
	expect := func(e feedsim.Event) { want = append(want, e.ID) }
	for range 4 {
		must(t, live.Append(ctx, 60, expect), live.Next(ctx))
	}
	c := broker(t)
	o, _ := over(t, c, m)
	o.TxnRecords, o.TxnBytes, o.BundleBytes = 10, 5000, 0
	must(t, runOnce(t, o))
	seen := &order{}
	consume(t, c, append(promises(), seen)...)
	if !slices.Equal(seen.ids, want) || len(seen.partitions) != 1 {
		t.Errorf("%d of %d events, in order: %v, in %d partitions", len(seen.ids), len(want), slices.Equal(seen.ids, want), len(seen.partitions))
	}
}

// The number of shards changes with each segment, and with it the shard of a blob, and the lease: all of N before any of N+1.
func TestChecklist42_ShardCountsChange(t *testing.T) {
	ctx := t.Context()
	complete := verify.NewComplete()
	m, live := simulated(t, feedsim.Spec{Blobs: 20, BlockEvents: 5, ShardsOf: func(n int) int { return []int{1, 7, 2, 5, 3, 8}[n%6] }})
	for range 6 {
		must(t, live.Append(ctx, 100, func(e feedsim.Event) { complete.Expect(e.ID) }), live.Next(ctx))
	}
	c := broker(t)
	o, _ := over(t, c, m)
	o.TxnRecords, o.TxnBytes, o.BundleBytes = 20, 20_000, 0
	must(t, runOnce(t, o))
	if data, markers := consume(t, c, append(promises(), complete)...); data != 600 || markers != 6*partitions || complete.Left() > 0 {
		t.Errorf("%d records, %d markers, %d missing", data, markers, complete.Left())
	}
}

// A crash in the middle, at any commit: with transactions nothing comes twice; without, ids tell what does, and what comes
// for the first time is in order.
func TestChecklist47_ReplayAfterACrash(t *testing.T) {
	for name, transactional := range map[string]bool{"exactly once": true, "at least once": false} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			m, live := simulated(t, feedsim.Spec{Blobs: 30, BlockEvents: 5, Shards: 2})
			complete := verify.NewComplete()
			for range 2 {
				must(t, live.Append(ctx, 200, func(e feedsim.Event) { complete.Expect(e.ID) }), live.Next(ctx))
			}
			c := broker(t)
			abortOpen(c)
			for crash := range 3 {
				o, r := over(t, c, m)
				o.Transactional, o.TxnBytes, o.CommitInterval, o.BundleBytes = transactional, 30_000, time.Millisecond, 0
				hard, kill := context.WithCancel(ctx)
				o.Observer = &crashing{recorder: r, left: 2 + crash, kill: kill}
				if err := New(o).Run(hard, hard); err != nil {
					t.Errorf("crash %d: %v", crash, err)
				}
				if hard.Err() == nil {
					t.Errorf("crash %d: it did not come to it", crash)
				}
				kill()
			}
			o, _ := over(t, c, m)
			o.Transactional = transactional
			must(t, runOnce(t, o))
			first := &firsts{seen: map[string]bool{}, last: map[string]string{}}
			notes := []verify.Validator{complete, first}
			if transactional {
				notes = append(notes, promises()...)
			}
			data, _ := consume(t, c, notes...)
			if data < 400 || transactional && data != 400 || complete.Left() > 0 || first.wrong > 0 {
				t.Errorf("%d records, %d events missing, %d out of order", data, complete.Left(), first.wrong)
			}
		})
	}
}

// abortOpen makes a broker abort what a transactional id has open when a new client takes it, as Kafka does. kfake does so
// only for a client that names the producer, whose number it makes from the id; without it the cursor of a transaction that
// was left open would be committed by the next owner, and the records that it covers would never come.
func abortOpen(c *kfake.Cluster) {
	known := map[string]bool{}
	c.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		r := req.(*kmsg.InitProducerIDRequest)
		if r.TransactionalID == nil || r.ProducerID >= 0 {
			return nil, nil, false
		}
		if id := *r.TransactionalID; known[id] {
			h := fnv.New64()
			_, _ = h.Write([]byte(id))
			r.ProducerID, r.ProducerEpoch = int64(h.Sum64())&math.MaxInt64, 0
		} else {
			known[id] = true
		}
		return nil, nil, false
	})
}

// crashing ends an instance hard after some commits.
type crashing struct {
	*recorder
	left int
	kill func()
}

func (c *crashing) Committed(commit Commit) {
	c.recorder.Committed(commit)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		c.kill()
	}
}

// firsts checks the order of each blob's events by their sequencers, without those that came before.
type firsts struct {
	seen  map[string]bool
	last  map[string]string
	wrong int
}

func (f *firsts) Note(r verify.Record) {
	id := string(r.Header("ce_id"))
	if r.Key == nil || f.seen[id] {
		return
	}
	f.seen[id] = true
	sequence := strings.ToLower(string(r.Header("sequence")))
	if sequence <= f.last[string(r.Key)] {
		f.wrong++
	}
	f.last[string(r.Key)] = sequence
}

func (f *firsts) Failures() []verify.Failure { return nil }

// One container of several: its events alone are written, all are read, and none twice.
func TestChecklist48_FilterByContainer(t *testing.T) {
	ctx := t.Context()
	m, live := simulated(t, feedsim.Spec{Shards: 2})
	want := 0
	count := func(e feedsim.Event) {
		if e.Container == "backups" {
			want++
		}
	}
	c := broker(t)
	for run := range 3 {
		must(t, live.Append(ctx, 100, count))
		o, r := over(t, c, m)
		o.Filter = envelope.Filter{Containers: []string{"backups"}}
		before := want
		must(t, runOnce(t, o))
		if r.Read != 100 || r.Emitted+r.Filtered != 100 || want != before {
			t.Errorf("run %d: %+v", run, r.Commit)
		}
	}
	if data, _ := consume(t, c, promises()...); data != want || want == 0 || want == 300 {
		t.Errorf("%d records, want %d of 300", data, want)
	}
}

// A stop gets through a store that hangs, wherever it does, without waiting for the shutdown's timeout.
func TestChecklist51_Cancel(t *testing.T) {
	for name, where := range map[string]string{"watermark": "meta/", "manifest": "idx/segments/2026/01/01/0000/meta.json", "chunk": "log/"} {
		t.Run(name, func(t *testing.T) {
			m, live := simulated(t, feedsim.Spec{})
			must(t, live.Append(t.Context(), 10, nil))
			c := broker(t)
			o, _ := over(t, c, m)
			stuck := &hanging{memory: m, where: where, asked: make(chan struct{}, 100)}
			o.Feed, o.Once, o.Shutdown = source.New(stuck, source.Options{}), false, time.Hour
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- New(o).Run(ctx, context.Background()) }()
			<-stuck.asked
			cancel()
			select {
			case err := <-done:
				must(t, err)
			case <-time.After(20 * time.Second):
				t.Fatal("it hangs")
			}
			if data, _ := consume(t, c, promises()...); data != 0 {
				t.Errorf("%d records", data)
			}
		})
	}
}

// hanging is a store that does not answer for some names, until it is canceled.
type hanging struct {
	*memory
	where string
	asked chan struct{}
}

func (h *hanging) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	if strings.HasPrefix(name, h.where) {
		h.asked <- struct{}{}
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return h.memory.ReadAt(ctx, name, p, offset)
}

// The state of one account is of no use to another: it is refused before anything is written, and stays as it was.
func TestChecklist52_StateOfAnotherAccount(t *testing.T) {
	ctx := t.Context()
	m, live := simulated(t, feedsim.Spec{})
	must(t, live.Append(ctx, 10, nil))
	c := broker(t)
	o, _ := over(t, c, m)
	o.FeedID = "acct.blob.core.windows.net"
	must(t, runOnce(t, o))
	must(t, live.Append(ctx, 5, nil))
	for _, other := range []string{"other.blob.core.windows.net", "acct.blob.core.windows.net/x", ""} {
		wrong, r := over(t, c, m)
		wrong.FeedID = other
		err := runOnce(t, wrong)
		var settings *SettingsError
		if !errors.As(err, &settings) || !strings.Contains(err.Error(), "BRIDGE_SOURCE_URL") || !strings.Contains(err.Error(), o.FeedID) || r.Read > 0 {
			t.Errorf("%q: %v, %+v", other, err, r.Commit)
		}
	}
	must(t, runOnce(t, o))
	if data, _ := consume(t, c, promises()...); data != 15 {
		t.Errorf("%d records", data)
	}
}

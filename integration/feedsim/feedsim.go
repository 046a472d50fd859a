package feedsim

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Spec says what to write. Zero fields have the defaults that are noted.
type Spec struct {
	Seed             uint64
	Account          string        // simaccount
	Start            time.Time     // begin of the first segment; 2026-01-01
	Interval         time.Duration // of a segment; 1 h
	Segments         int           // 1
	Shards           int           // 1
	EventsPerSegment int           // 1000; in an open segment only the distance of event times
	ChunksPerShard   int           // 1
	BlockEvents      int           // events of a block; 100
	Blobs            int           // 1000
	HotShare         float64       // of the events that go to ten blobs
	Versions         []int         // schema versions, in turn by chunk; 5
	LeaveOpen        bool          // the last segment stays Publishing
}

func (s Spec) withDefaults() Spec {
	s.Account = cmp.Or(s.Account, "simaccount")
	if s.Start.IsZero() {
		s.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	s.Interval = cmp.Or(s.Interval, time.Hour)
	s.Segments, s.Shards, s.ChunksPerShard = cmp.Or(s.Segments, 1), cmp.Or(s.Shards, 1), cmp.Or(s.ChunksPerShard, 1)
	s.EventsPerSegment, s.BlockEvents, s.Blobs = cmp.Or(s.EventsPerSegment, 1000), cmp.Or(s.BlockEvents, 100), cmp.Or(s.Blobs, 1000)
	if len(s.Versions) == 0 {
		s.Versions = []int{5}
	}
	return s
}

// Event is an event that a reader has to find.
type Event struct {
	ID, Key              string // Key is container/blob
	EventType, API       string
	EventTime, Sequencer string
	Snapshot             string
	Segment              string // 2026/01/01/0000
	Shard, Chunk         int
	State                bool // it changes the blob's row
}

type event struct {
	Event
	topic, subject, url, etag string
	length                    int64
}

// Feed writes one feed. It is for one goroutine.
type Feed struct {
	sink     Sink
	spec     Spec
	rng      *rand.Rand
	versions []*version

	begin   time.Time // of the open segment
	open    bool
	inSeg   int64 // events of the open segment
	total   int64
	opened  int // segments so far
	shards  []shard
	created map[int]bool
}

type shard struct {
	chunk   int
	headed  bool // the chunk has its header
	pending []byte
	count   int    // events in pending
	out     []byte // whole blocks
}

// New returns a feed that has nothing yet.
func New(sink Sink, spec Spec) (*Feed, error) {
	f := &Feed{sink: sink, spec: spec.withDefaults(), rng: rand.New(rand.NewPCG(spec.Seed, 1)), created: map[int]bool{}}
	for _, n := range f.spec.Versions {
		v, err := loadVersion(n)
		if err != nil {
			return nil, err
		}
		f.versions = append(f.versions, v)
	}
	return f, nil
}

// Write writes the feed of spec and calls emit for every event, in an order in which each blob's events are right.
func Write(ctx context.Context, sink Sink, spec Spec, emit func(Event)) error {
	f, err := New(sink, spec)
	if err != nil {
		return err
	}
	for i := range f.spec.Segments {
		if err := f.Open(ctx); err != nil {
			return err
		}
		for c := range f.spec.ChunksPerShard {
			if c > 0 {
				f.Roll()
			}
			n := f.spec.EventsPerSegment / f.spec.ChunksPerShard
			if c == 0 {
				n += f.spec.EventsPerSegment % f.spec.ChunksPerShard
			}
			if err := f.Append(ctx, n, emit); err != nil {
				return err
			}
		}
		if i == f.spec.Segments-1 && f.spec.LeaveOpen {
			break
		}
		if err := f.Finalize(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Segment returns the begin of the open segment, or of the last one.
func (f *Feed) Segment() time.Time { return f.begin }

// Open begins the next segment: its manifest says Publishing.
func (f *Feed) Open(ctx context.Context) error {
	f.begin = f.spec.Start.Add(time.Duration(f.opened) * f.spec.Interval)
	f.opened++
	f.open, f.inSeg = true, 0
	f.shards = make([]shard, f.spec.Shards)
	return f.manifest(ctx, f.begin, "Publishing")
}

// Finalize ends the open segment.
func (f *Feed) Finalize(ctx context.Context) error {
	f.open = false
	return f.manifest(ctx, f.begin, "Finalized")
}

// Next does what Azure does at the hour: the next segment exists before the one before it is finalized.
func (f *Feed) Next(ctx context.Context) error {
	before := f.begin
	if err := f.Open(ctx); err != nil {
		return err
	}
	return f.manifest(ctx, before, "Finalized")
}

// Roll begins a new chunk in every shard.
func (f *Feed) Roll() {
	for i := range f.shards {
		f.shards[i] = shard{chunk: f.shards[i].chunk + 1}
	}
}

const pathLayout = "2006/01/02/1504"

func (f *Feed) manifest(ctx context.Context, begin time.Time, status string) error {
	const stamp = "2006-01-02T15:04:05.000Z"
	paths := ""
	for i := range f.spec.Shards {
		if i > 0 {
			paths += ","
		}
		paths += fmt.Sprintf("%q", "$blobchangefeed/"+f.prefix(i, begin))
	}
	at := begin.Format(stamp)
	meta := fmt.Sprintf(`{"version":0,"begin":"%s","intervalSecs":%d,"status":"%s","config":{"version":1,"configVersionEtag":"0x8dad189bd5c84f6","numShards":%d,"recordsFormat":"avro","formatSchemaVersion":%d,"shardDistFnVersion":1,"streamAppendType":3},"chunkFilePaths":[%s],"storageDiagnostics":{"version":0,"lastModifiedTime":"%s","data":{"aid":"77cb7abe-0000-0000-0000-000000000000"}}}`,
		at, int(f.spec.Interval.Seconds()), status, f.spec.Shards, f.spec.Versions[0], paths, at)
	if err := f.sink.Put(ctx, "idx/segments/"+begin.Format(pathLayout)+"/meta.json", []byte(meta)); err != nil {
		return err
	}
	return f.sink.Put(ctx, "meta/segments.json", fmt.Appendf(nil,
		`{"version":0,"lastConsumable":"%s","storageDiagnostics":{"version":0,"lastModifiedTime":"%s","data":{"aid":"f7d1e86f-0000-0000-0000-000000000000"}}}`,
		f.begin.Format(stamp), f.begin.Format(stamp)))
}

func (f *Feed) prefix(shard int, begin time.Time) string {
	return fmt.Sprintf("log/%02d/%s/", shard, begin.Format(pathLayout))
}

// flushAt is when blocks that wait in memory are written.
const flushAt = 1 << 20

// Append adds n events to the open segment, as whole blocks. Emit may be nil.
func (f *Feed) Append(ctx context.Context, n int, emit func(Event)) error {
	for range n {
		e := f.event()
		h := fnv.New32a()
		_, _ = h.Write([]byte(e.Key)) // never fails
		e.Shard = int(h.Sum32()+uint32(f.opened)) % len(f.shards)
		s := &f.shards[e.Shard]
		e.Chunk = s.chunk
		s.pending = f.version(s).append(s.pending, &e)
		s.count++
		if emit != nil {
			emit(e.Event)
		}
		if s.count == f.spec.BlockEvents {
			s.cut()
		}
		if len(s.out) >= flushAt {
			if err := f.flush(ctx, e.Shard); err != nil {
				return err
			}
		}
	}
	for i := range f.shards {
		f.shards[i].cut()
		if err := f.flush(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (f *Feed) version(s *shard) *version { return f.versions[(f.opened+s.chunk)%len(f.versions)] }

// cut ends a block.
func (s *shard) cut() {
	if s.count == 0 {
		return
	}
	s.out = appendLong10(appendLong10(s.out, int64(s.count)), int64(len(s.pending)))
	s.out = append(append(s.out, s.pending...), syncMarker...)
	s.pending, s.count = s.pending[:0], 0
}

func (f *Feed) flush(ctx context.Context, i int) error {
	s := &f.shards[i]
	if len(s.out) == 0 {
		return nil
	}
	if !s.headed {
		s.out = append(append([]byte{}, f.version(s).header...), s.out...)
		s.headed = true
	}
	err := f.sink.Append(ctx, fmt.Sprintf("%s%05d.avro", f.prefix(i, f.begin), s.chunk), s.out)
	s.out = s.out[:0]
	return err
}

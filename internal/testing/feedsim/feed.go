package feedsim

import (
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// ErrNotOpen is returned by what needs an open segment.
var ErrNotOpen = errors.New("no segment is open")

// Feed writes one feed, step by step. It is for one goroutine.
type Feed struct {
	sink     Sink
	spec     Spec
	rng      *rand.Rand // of events
	tears    *rand.Rand // of torn appends: tearing changes no event
	versions []*version
	blobs    *population
	picker   picker
	stamper  stamper
	topic    string // of the account
	endpoint string
	event    event
	flate    *flate.Writer
	now      int64 // the latest of spec.Now, in ticks since 1970

	opened    int      // segments so far
	current   *segment // the open one, or the last
	before    *segment // between Turn and Settle
	open      bool
	finalized string // begin of the last finalized segment
	sum       Summary
}

// segment is one while it is written.
type segment struct {
	begin  time.Time
	name   string // 2026/01/01/0000
	ticks  int64  // of its begin, since 1970
	seed   uint64
	listed int // shards
	shards []*shard
	events int64
	clock  clock
}

// New returns a feed that has nothing yet.
func New(sink Sink, spec Spec) (*Feed, error) {
	spec = spec.defaulted()
	if err := spec.validate(); err != nil {
		return nil, fmt.Errorf("checking the spec of a feed: %w", err)
	}
	f := &Feed{
		sink: sink, spec: spec, rng: rand.New(rand.NewPCG(spec.Seed, 1)), tears: rand.New(rand.NewPCG(spec.Seed, 2)),
		blobs: newPopulation(spec.Containers, spec.Blobs), picker: newPicker(spec.Mix),
		topic: "/subscriptions/00000000-1111-2222-3333-444444444444/resourceGroups/sim/providers/" +
			"Microsoft.Storage/storageAccounts/" + spec.Account,
		endpoint: "https://" + spec.Account + ".blob.core.windows.net/",
	}
	for _, n := range spec.Versions {
		v, err := loadVersion(n, spec.Deflate)
		if err != nil {
			return nil, err
		}
		f.versions = append(f.versions, v)
	}
	return f, nil
}

// Segment returns the begin of the open segment, or of the last one.
func (f *Feed) Segment() time.Time {
	if f.current == nil {
		return time.Time{}
	}
	return f.current.begin
}

// Summary says what was written so far.
func (f *Feed) Summary() Summary { return f.sum }

// Open begins the next segment: first its manifest, Publishing, then meta/segments.json.
func (f *Feed) Open(ctx context.Context) error {
	if f.open {
		return fmt.Errorf("opening a segment: %s is open; Next ends it", f.current.name)
	}
	return f.begin(ctx)
}

// Next does what the service does at the hour: the next segment exists, and is named in meta/segments.json, before the
// one before turns Finalized. In between both are Publishing.
func (f *Feed) Next(ctx context.Context) error {
	if err := f.Turn(ctx); err != nil {
		return err
	}
	return f.Settle(ctx)
}

// Turn is the first half of Next: both segments are Publishing, and events go to the new one.
func (f *Feed) Turn(ctx context.Context) error {
	if !f.open {
		return ErrNotOpen
	}
	if err := f.Settle(ctx); err != nil {
		return err
	}
	before := f.current
	if err := f.end(ctx); err != nil {
		return err
	}
	if err := f.begin(ctx); err != nil {
		return err
	}
	f.before = before
	return nil
}

// Settle is the second half: the segment before turns Finalized, if it is not.
func (f *Feed) Settle(ctx context.Context) error {
	if f.before == nil {
		return nil
	}
	before := f.before
	f.before = nil
	return f.finalize(ctx, before)
}

// Finalize ends the open segment, though there is no next one.
func (f *Feed) Finalize(ctx context.Context) error {
	if !f.open {
		return ErrNotOpen
	}
	if err := f.Settle(ctx); err != nil {
		return err
	}
	if err := f.end(ctx); err != nil {
		return err
	}
	f.open = false
	return f.finalize(ctx, f.current)
}

func (f *Feed) begin(ctx context.Context) error {
	begin := f.spec.Start.Add(time.Duration(f.opened) * f.spec.Interval)
	seg := &segment{
		begin: begin, name: begin.Format(pathLayout), ticks: begin.Unix() * ticksPerSecond,
		seed: scramble(f.spec.Seed ^ uint64(begin.Unix())), clock: newClock(f.spec.Interval, f.spec.EventsPerSegment),
	}
	if f.spec.Now != nil {
		seg.clock = newLiveClock(f.spec.Interval)
	}
	listed, used, err := f.spec.shards(f.opened)
	if err != nil {
		return fmt.Errorf("opening a segment: %w", err)
	}
	seg.listed = listed
	for i := range used {
		late := i > 0 && i >= used-f.spec.LateShards
		seg.shards = append(seg.shards, &shard{number: i, dir: shardDir(i, seg.name), version: f.version(i, 0),
			late: late})
	}
	if err := f.manifest(ctx, seg, "Publishing"); err != nil {
		return err
	}
	f.opened++
	f.sum.Segments++
	f.current, f.open = seg, true
	return f.segments(ctx)
}

// Reveal ends the waiting of the late shards: first the open segment's manifest lists them, then their events are in
// the sink. The end of a segment does so, too.
func (f *Feed) Reveal(ctx context.Context) error {
	if !f.open {
		return ErrNotOpen
	}
	waiting := false
	for _, s := range f.current.shards {
		waiting = waiting || s.late
		s.late = false
	}
	if !waiting {
		return nil
	}
	if err := f.manifest(ctx, f.current, "Publishing"); err != nil {
		return err
	}
	for _, s := range f.current.shards {
		if err := f.flush(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// end writes what comes at the end of the open segment's shards.
func (f *Feed) end(ctx context.Context) error {
	if err := f.Reveal(ctx); err != nil {
		return err
	}
	shards := f.current.shards
	switch {
	case f.spec.HeaderOnlyChunks:
		f.Roll()
	case f.current.events == 0 && len(shards) > 0:
		shards = shards[:1] // the service has no finalized segment without a chunk
	default:
		return nil
	}
	for _, s := range shards {
		f.head(s)
		if err := f.flush(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (f *Feed) finalize(ctx context.Context, seg *segment) error {
	if err := f.manifest(ctx, seg, "Finalized"); err != nil {
		return err
	}
	f.sum.Finalized++
	f.finalized = seg.begin.Format(manifestTime)
	return f.segments(ctx)
}

// Roll begins a new chunk in the given shards of the open segment, or in all. It is in the sink with its first event. A
// shard whose chunk has nothing yet, as a late one, stays as it is: the numbers of chunks have no holes.
func (f *Feed) Roll(shards ...int) {
	if !f.open {
		return
	}
	for _, s := range f.current.shards {
		if s.headed && !s.late && (len(shards) == 0 || slices.Contains(shards, s.number)) {
			s.chunk++
			s.headed, s.size, s.version = false, 0, f.version(s.number, s.chunk)
		}
	}
}

func (f *Feed) version(shard, chunk int) *version {
	return f.versions[(f.opened+shard+chunk)%len(f.versions)]
}

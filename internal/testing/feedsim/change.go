package feedsim

import (
	"context"
	"fmt"
	"slices"
)

// Change is what happened to a blob, if the caller decides that and not the spec.
type Change struct {
	Container, Blob string
	Delete          bool
	Ticks           int64 // when, in units of 100 ns since 1970: no two changes of a blob have the same
	Length          int64
	ContentType     string
	Tier            string // "": inferred
}

// AppendChanges adds an event for each change to the open segment, as Append does with events of its own. The changes
// of a blob must come in their order. It is the caller's part that their times fit the segment.
func (f *Feed) AppendChanges(ctx context.Context, changes []Change, emit func(Expected)) error {
	switch {
	case !f.open:
		return ErrNotOpen
	case len(f.current.shards) == 0:
		return fmt.Errorf("appending to segment %s: it is one without shards", f.current.name)
	}
	for i := range changes {
		s, err := f.happen(&changes[i])
		if err != nil {
			return err
		}
		if err := f.put(ctx, s, emit); err != nil {
			return err
		}
	}
	return f.flushAll(ctx)
}

// happen makes f.event the event of a change.
func (f *Feed) happen(c *Change) (*shard, error) {
	b := &blob{container: slices.Index(f.blobs.containers, c.Container)}
	if b.container < 0 {
		b.container = len(f.blobs.containers)
		f.blobs.containers = append(f.blobs.containers, c.Container)
		f.blobs.versions = append(f.blobs.versions, containerVersion(b.container))
	}
	b.named(c.Container, c.Blob)
	s := f.shardOf(b)
	if c.Tier != "" {
		i := slices.Index(s.version.tiers, c.Tier)
		if i < 1 {
			return nil, fmt.Errorf("appending a change of %s: schema version %d has no tier %q", b.key,
				s.version.number, c.Tier)
		}
		b.tier = uint8(i)
	}
	kind := created
	if c.Delete {
		kind = deleted
	}
	f.fill(&f.event, kind, b)
	f.event.ticks, f.event.length, f.event.contentType = c.Ticks, c.Length, c.ContentType
	f.stamper.stamp(f.event.time(), c.Ticks)
	return s, nil
}

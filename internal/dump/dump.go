// Package dump prints what others keep in files and topics: segments, chunks and events of a feed, and the state of a
// bridge.
package dump

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/ocf"
)

// Dumper prints documents to Out: as JSON, one a line, or as text.
type Dumper struct {
	Out  io.Writer
	JSON bool
}

// print writes a document as JSON, or as text.
func (d Dumper) print(doc any, format string, args ...any) error {
	if !d.JSON {
		for i, a := range args {
			if text, ok := a.(string); ok {
				args[i] = plain.Line(text) // a line break in a name must not forge a line
			}
		}
		_, err := fmt.Fprintf(d.Out, format+"\n", args...)
		return err
	}
	return json.NewEncoder(d.Out).Encode(doc)
}

// State prints what a bridge keeps in its state topic.
func (d Dumper) State(s *offsets.State) error {
	if f := s.Frontier; f != nil {
		if err := d.print(map[string]any{"key": "frontier", "value": f},
			"frontier  completed %s  current %s  resolved %s  feed %s  by %s at %s",
			cmp.Or(f.Completed.String(), "-"), cmp.Or(f.Current.String(), "-"), cmp.Or(f.Resolved, "-"),
			f.Feed, f.Owner, f.Time.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	for lease, cur := range s.Cursors {
		if cur == nil {
			continue
		}
		where := "as far as the frontier"
		if !cur.Over(s.Frontier) {
			where = fmt.Sprintf("segment %s  done %-5t ", cur.Segment, cur.Done)
			for _, name := range slices.Sorted(maps.Keys(cur.Shards)) {
				where += fmt.Sprintf(" %s:%s", name, cur.Shards[name])
			}
		}
		doc := map[string]any{"key": "cursor", "lease": lease, "owner": s.Owners[lease], "value": cur}
		if err := d.print(doc, "lease %-3d %s  events %d  by %s at %s",
			lease, where, cur.Counts.Read, s.Owners[lease], cur.Time.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}

// ParseChunk parses the name of a chunk, log/SS/YYYY/MM/DD/HHMM/NNNNN.avro, as the position of its beginning.
func ParseChunk(name string) (p source.Position, err error) {
	f := strings.Split(strings.TrimSuffix(name, ".avro"), "/")
	if len(f) == 7 {
		var errs [3]error
		p.Segment, errs[0] = source.ParseSegment(strings.Join(f[2:6], "/"))
		p.Shard, errs[1] = strconv.Atoi(f[1])
		p.Chunk, errs[2] = strconv.Atoi(f[6])
		err = errors.Join(errs[:]...)
	}
	if len(f) != 7 || err != nil {
		return p, fmt.Errorf("invalid chunk %s: want log/SS/YYYY/MM/DD/HHMM/NNNNN.avro", name)
	}
	return p, nil
}

// shardPosition is where a reader of the shard of p begins.
func shardPosition(p source.Position) source.ShardPosition {
	return source.ShardPosition{Chunk: p.Chunk, Offset: p.Offset}
}

// Segments prints the segments of the feed.
func (d Dumper) Segments(ctx context.Context, feed *source.Feed) error {
	for seg, err := range feed.Segments(ctx, source.Segment{}) {
		if err != nil {
			return err
		}
		m, err := feed.Manifest(ctx, seg)
		if err != nil {
			return err
		}
		status := "open"
		if m.Finalized {
			status = "finalized"
		}
		doc := map[string]any{"segment": seg, "begin": m.Begin, "interval_seconds": m.Interval.Seconds(),
			"finalized": m.Finalized, "shards": m.Shards}
		if err := d.print(doc, "%s  %-9s  %s  shards %s", seg, status, m.Interval,
			strings.Trim(fmt.Sprint(m.Shards), "[]")); err != nil {
			return err
		}
	}
	return nil
}

// Segment prints the events of a segment.
func (d Dumper) Segment(ctx context.Context, feed *source.Feed, seg source.Segment) error {
	m, err := manifest(ctx, feed, seg)
	if err != nil {
		return err
	}
	for _, shard := range m.Shards {
		err := d.shard(ctx, feed, m, shard, source.ShardPosition{}, func(source.Batch) bool { return true })
		if err != nil {
			return err
		}
	}
	return nil
}

// manifest returns the manifest of a segment that somebody named.
func manifest(ctx context.Context, feed *source.Feed, seg source.Segment) (source.Manifest, error) {
	m, err := feed.Manifest(ctx, seg)
	if errors.Is(err, source.ErrNotFound) {
		err = plain.WithRemedy(fmt.Errorf("the feed has no segment %s", seg), "bridge dump lists those that it has")
	}
	return m, err
}

// shard prints the events of a shard from a position on, up to the first block for which more returns false.
func (d Dumper) shard(ctx context.Context, feed *source.Feed, m source.Manifest, shard int, from source.ShardPosition,
	more func(source.Batch) bool) error {
	r := feed.Shard(m, shard, from)
	if err := r.Poll(ctx, m.Finalized); err != nil {
		return err
	}
	for {
		var b source.Batch
		err := r.Next(ctx, &b)
		if errors.Is(err, io.EOF) || err == nil && !more(b) {
			return nil
		}
		if err != nil {
			return err
		}
		at := source.Position{Segment: m.Segment, Shard: shard, Chunk: b.Chunk, Offset: b.Offset}
		for ; at.Index < len(b.Events); at.Index++ {
			if err := d.event(b.Blob, at, &b.Events[at.Index]); err != nil {
				return err
			}
		}
	}
}

// event prints an event with its position, which --at takes.
func (d Dumper) event(blob string, at source.Position, e *ocf.Event) error {
	doc := map[string]any{"position": at.String(), "chunk": blob, "offset": at.Offset, "index": at.Index,
		"event": e.Columns()}
	return d.print(doc, "%-34s  %s  %-28s  %s", at.String(), e.EventTime, e.EventType, path(e))
}

// path returns the path of the blob, which bridge find takes.
func path(e *ocf.Event) string {
	container, blob, _ := strings.Cut(strings.TrimPrefix(e.Subject, "/blobServices/default/containers/"), "/blobs/")
	return strings.TrimSuffix(container+"/"+blob, "/")
}

// Chunk prints the events of one chunk of the feed, from an offset on.
func (d Dumper) Chunk(ctx context.Context, feed *source.Feed, p source.Position) error {
	m, err := manifest(ctx, feed, p.Segment)
	if err != nil {
		return err
	}
	err = d.shard(ctx, feed, m, p.Shard, shardPosition(p), func(b source.Batch) bool { return b.Chunk == p.Chunk })
	return noBlock(ctx, feed, m, p, err)
}

// noBlock returns the error for a place where no block begins, which reads like damage, if that is what err is of.
func noBlock(ctx context.Context, feed *source.Feed, m source.Manifest, p source.Position, err error) error {
	damage, is := errors.AsType[*source.DamageError](err)
	if is && damage.Kind == source.Gone {
		return plain.WithRemedy(fmt.Errorf("the feed has no chunk %s", damage.Blob),
			"bridge dump --segment "+p.Segment.String()+" shows what it has")
	}
	if p.Offset == 0 || !is || damage.Offset != p.Offset {
		return err
	}
	r := feed.Shard(m, p.Shard, source.ShardPosition{Chunk: p.Chunk})
	if r.Poll(ctx, m.Finalized) != nil {
		return err
	}
	var b source.Batch
	var before []string
	for {
		failed := r.Next(ctx, &b)
		if failed == nil && b.Chunk == p.Chunk && b.Offset < p.Offset {
			before = []string{strconv.FormatInt(b.Offset, 10)}
			continue
		}
		if failed == nil && b.Chunk == p.Chunk && b.Offset > p.Offset {
			before = append(before, strconv.FormatInt(b.Offset, 10))
		} else if failed != nil && !errors.Is(failed, io.EOF) || failed == nil && b.Chunk == p.Chunk {
			return err // the damage is at this block, or before it
		}
		return fmt.Errorf("%s: no block begins at offset %d; blocks near it begin at %s",
			b.Blob, p.Offset, strings.Join(before, " and "))
	}
}

// Event prints the event at a position.
func (d Dumper) Event(ctx context.Context, feed *source.Feed, p source.Position) error {
	m, err := manifest(ctx, feed, p.Segment)
	if err != nil {
		return err
	}
	r := feed.Shard(m, p.Shard, shardPosition(p))
	if err := r.Poll(ctx, m.Finalized); err != nil {
		return err
	}
	var b source.Batch
	err = r.Next(ctx, &b)
	if err != nil {
		return fmt.Errorf("reading position %s: %w", p, noBlock(ctx, feed, m, p, err))
	}
	if b.Offset != p.Offset || p.Index >= len(b.Events) {
		return fmt.Errorf("reading position %s: no such event: the block at offset %d has %s",
			p, b.Offset, plain.Count(len(b.Events), "event"))
	}
	return d.event(b.Blob, p, &b.Events[p.Index])
}

// File prints the events of a chunk in a local file, from an offset on.
func (d Dumper) File(file string, at int64) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	h, err := ocf.ParseHeader(data, ocf.Limits{})
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	var evs []ocf.Event
	for off := max(at, h.Size); off < int64(len(data)); {
		b, err := h.ReadBlock(data[off:], off)
		if err == nil {
			evs, err = h.Events(b, evs)
		}
		if err != nil && off == at {
			if near, begins := blocksAround(h, data, at); !begins {
				return fmt.Errorf("reading %s: no block begins at offset %d; blocks near it begin at %s",
					file, at, near)
			}
		}
		if errors.Is(err, ocf.ErrShort) {
			return fmt.Errorf("reading %s: the block at offset %d is cut off at %d", file, off, len(data))
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		for i := range evs {
			doc := map[string]any{"chunk": file, "offset": b.Offset, "index": i, "event": evs[i].Columns()}
			if err := d.print(doc, "%8d  %3d  %s  %-28s  %s", b.Offset, i, evs[i].EventTime, evs[i].EventType,
				path(&evs[i])); err != nil {
				return err
			}
		}
		off = b.End
	}
	return nil
}

// blocksAround returns where the blocks before and after an offset begin, and whether one begins there. Behind damage,
// nobody knows.
func blocksAround(h *ocf.Header, data []byte, at int64) (near string, begins bool) {
	for off := h.Size; ; {
		if off >= at {
			if off < int64(len(data)) {
				near = strings.TrimPrefix(near+" and "+strconv.FormatInt(off, 10), " and ")
			}
			return near, off == at
		}
		near = strconv.FormatInt(off, 10)
		b, err := h.ReadBlock(data[off:], off)
		if err != nil {
			return near, true
		}
		off = b.End
	}
}

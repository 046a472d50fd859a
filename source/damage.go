package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"blobfeed/internal/plain"
)

// DamageError says that a chunk can't be read further: it does not hold what the feed promises. A retry is harmless,
// and helps if the bytes were damaged on their way.
type DamageError struct {
	Blob   string
	Offset int64
	Kind   DamageKind
	Reason string
	Err    error  // may be nil
	Hint   string // the remedy
}

// DamageKind says what can be done about damage.
type DamageKind uint8

// The kinds of damage.
const (
	Elsewhere DamageKind = iota // not in the bytes: an invalid position or name. Nothing can be left out
	BadBytes                    // a header or block that can't be decoded: Loss says how much is lost
	Gone                        // a chunk that no longer exists
)

const (
	hintPosition = "the position is not one of this feed: check that it belongs to this account and segment, " +
		"or restart at the begin of the segment"
	hintGone  = "if it has been deleted, the events up to the next chunk are lost"
	hintName  = "check which program wrote it: the service names chunks 00000.avro, 00001.avro and so on"
	hintBytes = "compare the blob with the service's copy; if the copy is damaged too, these bytes are lost"
)

func (e *DamageError) Error() string {
	s := fmt.Sprintf("%s, offset %d: %s", e.Blob, e.Offset, e.Reason)
	if e.Err != nil { // which may name the place again
		s += ": " + strings.TrimPrefix(e.Err.Error(), fmt.Sprintf("corrupt at offset %d: ", e.Offset))
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *DamageError) Unwrap() error { return e.Err }

// damaged returns d, and drops the buffered bytes so that the next attempt reads them again.
func (r *ShardReader) damaged(d *DamageError) error {
	r.window, r.at, r.grow, r.of = nil, 0, 0, -1
	return d
}

// Loss is what a reader leaves out to resume after damage: the bytes From to To of a chunk, or no bytes of a chunk that
// is gone.
type Loss struct {
	Blob     string
	Chunk    int
	From, To int64
	next     ShardPosition
}

// Loss returns what Skip would leave out after the damage that Next has just reported. Ok is false if nothing can be
// left out: the damage is elsewhere, or the chunk still grows and its next block is not written yet.
func (r *ShardReader) Loss(ctx context.Context, d *DamageError) (loss Loss, ok bool, err error) {
	loss = Loss{Blob: d.Blob, Chunk: r.pos.Chunk, From: max(r.pos.Offset, d.Offset)}
	if d.Kind == Gone {
		loss.To = loss.From
		if i := slices.IndexFunc(r.chunks, func(c chunk) bool { return c.index > r.pos.Chunk }); i >= 0 {
			loss.next.Chunk = r.chunks[i].index
		} else if n := len(r.chunks); n > 0 {
			loss.next = ShardPosition{Chunk: r.chunks[n-1].index, Offset: r.chunks[n-1].size}
		}
		return loss, true, nil
	}
	c, err := r.current()
	if err != nil || d.Kind != BadBytes {
		return Loss{}, false, nil
	}
	end, known := c.size, r.complete(c)
	if d.Offset > 0 && r.header != nil {
		// Every block ends with the file's sync marker, so a block starts after the next marker.
		at, err := r.find(ctx, c, r.header.Sync[:], loss.From)
		if err != nil {
			return Loss{}, false, err
		}
		if at >= 0 {
			end, known = at+int64(len(r.header.Sync)), true
		}
	}
	loss.To = end
	loss.next = ShardPosition{Chunk: c.index, Offset: end}
	return loss, known, nil
}

// find returns the first offset from which the bytes of c are those of text, -1 if there is none.
func (r *ShardReader) find(ctx context.Context, c chunk, text []byte, from int64) (int64, error) {
	var have []byte // of the chunk, up to from
	for from < c.size {
		part := make([]byte, min(r.feed.opt.ReadSize, c.size-from))
		n, err := r.feed.store.ReadAt(ctx, c.name, part, from)
		if err != nil {
			return 0, fmt.Errorf("reading %s at %d: %w", c.name, from, err)
		}
		if n == 0 {
			break
		}
		have, from = append(have, part[:n]...), from+int64(n)
		if i := bytes.Index(have, text); i >= 0 {
			return from - int64(len(have)-i), nil
		}
		have = have[max(0, len(have)-len(text)+1):] // the marker may lie across two reads
	}
	return -1, nil
}

// Skip moves the position behind a loss.
func (r *ShardReader) Skip(loss Loss) { r.pos = loss.next }

// ReadAt reads bytes of a chunk as they are; see Store.ReadAt.
func (f *Feed) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	return f.store.ReadAt(ctx, name, p, offset)
}

// ErrIncomplete is the error of a copy without a part that every feed has.
var ErrIncomplete = errors.New("the copy is incomplete")

// incomplete returns ErrIncomplete with what is missing.
func incomplete(what string) error {
	return plain.WithRemedy(fmt.Errorf("%w: %s", ErrIncomplete, what),
		"copy the container $blobchangefeed whole: log/ and idx/ first, then meta/")
}

// hasIndex returns an error if the copy has no segment, although one may be read.
func (f *Feed) hasIndex(ctx context.Context, last Segment) error {
	for _, err := range f.Indexed(ctx) {
		return err
	}
	return incomplete(fmt.Sprintf("%s says that segment %s may be read, and %s has no segment", watermarkName, last,
		segmentsRoot))
}

// chunkless judges a complete shard without chunks. The service makes segments only for times with events, so one of
// the shards has a chunk. If none has, chunks are missing (I8): that is certain for a copy. The service itself may have
// deleted them. Whether each shard must have a chunk is not known.
func (r *ShardReader) chunkless(ctx context.Context) error {
	for _, prefix := range r.paths {
		if prefix == r.prefix {
			continue
		}
		chunks, err := r.feed.chunks(ctx, prefix)
		if err != nil {
			return err
		}
		if len(chunks) == 0 {
			continue
		}
		if r.feed.opt.Copy {
			r.lacks = fmt.Sprintf("the manifest names %s, and the copy of the feed has no chunk there: if the "+
				"container has one, copy it, and continue at segment %s again (bridge seek)", r.prefix, r.segment)
		}
		return nil
	}
	r.lacks = fmt.Sprintf("segment %s is finalized, and none of the %d shards that its manifest names has a chunk",
		r.segment, len(r.paths))
	if r.feed.opt.Copy {
		return incomplete(r.lacks)
	}
	return nil
}

// Lacks says what of a complete shard may be missing, as far as the last Poll can tell; "" is nothing.
func (r *ShardReader) Lacks() string { return r.lacks }

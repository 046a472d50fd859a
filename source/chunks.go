package source

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// chunk is one file of a shard, as it was listed.
type chunk struct {
	index int
	name  string
	size  int64

	modified time.Time
}

// maxChunks bounds the listing of a shard (I9). A chunk takes 50,000 appends, and a segment gets 60 of them.
const maxChunks = 10_000

// chunks lists the chunks of a shard, in order of their numbers.
func (f *Feed) chunks(ctx context.Context, prefix string) ([]chunk, error) {
	var chunks []chunk
	for e, err := range f.store.List(ctx, prefix, "") {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", prefix, err)
		}
		number, ok := strings.CutSuffix(strings.TrimPrefix(e.Name, prefix), ".avro")
		if !ok {
			continue
		}
		if !digits(number) { // its place in the order is unknown, and without it events may be missing (I8)
			return nil, &DamageError{Blob: e.Name, Reason: "the name of this chunk is not a number", Hint: hintName}
		}
		index, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("listing %s: the number of chunk %.100q is out of range", prefix, e.Name)
		}
		if len(chunks) == maxChunks {
			return nil, fmt.Errorf("listing %s: more than %d chunks: check which program wrote them", prefix,
				maxChunks)
		}
		chunks = append(chunks, chunk{index, e.Name, e.Size, e.Modified})
	}
	slices.SortFunc(chunks, func(a, b chunk) int { return a.index - b.index })
	for i := range len(chunks) - 1 {
		if a, b := chunks[i], chunks[i+1]; a.index == b.index {
			return nil, &DamageError{Blob: b.name, Reason: "the same number as " + a.name, Hint: hintName}
		}
	}
	return chunks, nil
}

// current returns the chunk at the position, io.EOF at the end of the shard, or a DamageError if the position is
// invalid (I8).
func (r *ShardReader) current() (chunk, error) {
	i, found := slices.BinarySearchFunc(r.chunks, r.pos.Chunk, func(c chunk, index int) int { return c.index - index })
	switch {
	case found && r.pos.Offset > r.chunks[i].size:
		c := r.chunks[i]
		return c, &DamageError{Blob: c.name, Offset: r.pos.Offset, Reason: fmt.Sprintf("the chunk has only %d bytes",
			c.size), Hint: hintPosition}
	case found:
		return r.chunks[i], nil
	case i < len(r.chunks):
		return chunk{}, r.gone(fmt.Sprintf("the chunk is missing, %s is there", r.chunks[i].name))
	case r.pos != (ShardPosition{}): // the reader only moves on to a chunk that is listed
		return chunk{}, r.gone("the chunk that was being read is gone")
	}
	return chunk{}, io.EOF
}

func (r *ShardReader) gone(reason string) error {
	return &DamageError{Blob: chunkName(r.prefix, r.pos.Chunk), Offset: r.pos.Offset, Kind: Gone, Reason: reason,
		Hint: hintGone}
}

func (r *ShardReader) last(c chunk) bool { return c.index == r.chunks[len(r.chunks)-1].index }

// Modified returns when the last listed chunk last grew: by that time the feed had published its contents. It is zero
// if the store does not say.
func (r *ShardReader) Modified() time.Time {
	if len(r.chunks) == 0 {
		return time.Time{}
	}
	return r.chunks[len(r.chunks)-1].modified
}

// complete reports whether c no longer grows: another chunk follows it, or the segment is finalized.
func (r *ShardReader) complete(c chunk) bool { return r.finalized || !r.last(c) }

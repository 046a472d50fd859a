package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"blobfeed/source/ocf"
)

// ShardPosition is where to read on in a shard. Offset is 0 at the start of a chunk, else just after a block.
type ShardPosition struct {
	Chunk  int   `json:"chunk"`
	Offset int64 `json:"offset"`
}

// Batch is one block of a chunk. It belongs to the caller, who may pass it to Next again.
type Batch struct {
	Events []Event
	Blob   string // name of the chunk
	Chunk  int
	Offset int64         // of the block
	Next   ShardPosition // behind it
}

// DamageError is a chunk that can't be read on: what the feed promised is not there.
type DamageError struct {
	Blob   string
	Offset int64
	Reason string
	Err    error  // may be nil
	Hint   string // what to do about it
}

// What to do about a DamageError. Trying again is harmless, and helps where the damage was in the copy.
const (
	hintPosition = "the position is not one of this feed's: check that it belongs to this account and segment, else start again at the segment's begin"
	hintGone     = "if the account's retention has removed it, start at the oldest segment that is left; the events between are lost to this reader"
	hintName     = "find out what wrote it: the service's names are 00000.avro and so on"
	hintBytes    = "compare the blob with the service's copy; if that is damaged too, its remaining events can't be read: go on behind this segment"
)

func (e *DamageError) Error() string {
	s := fmt.Sprintf("%s, offset %d: %s", e.Blob, e.Offset, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *DamageError) Unwrap() error { return e.Err }

// headerRead is what is read of a chunk for its header alone: real ones are below 3 KiB.
const headerRead = 16 << 10

type chunk struct {
	index int
	name  string
	size  int64
}

// ShardReader reads one shard of one segment, and follows it while it grows. It is for one goroutine. After an error its
// position is where it was, and the call can be made again.
type ShardReader struct {
	feed    *Feed
	segment Segment
	shard   int
	prefix  string // "" if the manifest does not have the shard
	pos     ShardPosition

	chunks    []chunk // of the last Poll, from pos.Chunk on
	finalized bool    // as the last Poll was told

	header *ocf.Header // of the chunk headerOf
	of     int
	window []byte // bytes of the current chunk from windowAt on
	at     int64
	grow   int64 // bytes to read at least: doubles while one block is larger than what is here
}

// Shard returns a reader of a shard of m, from a position on.
func (f *Feed) Shard(m Manifest, shard int, from ShardPosition) *ShardReader {
	return &ShardReader{feed: f, segment: m.Segment, shard: shard, prefix: m.Paths[shard], pos: from, of: -1}
}

// Position returns where to go on: behind everything that Next has returned.
func (r *ShardReader) Position() ShardPosition { return r.pos }

// Poll lists the chunks. Next then reads to the end of that listing. Finalized is what the manifest said, read before
// this call (I7): then the listing is the last, and what is cut off in it is damage.
func (r *ShardReader) Poll(ctx context.Context, finalized bool) error {
	if r.prefix == "" {
		return fmt.Errorf("shard %02d is not in the manifest of segment %s", r.shard, r.segment)
	}
	if r.pos.Chunk < 0 || r.pos.Offset < 0 {
		return &DamageError{Blob: r.prefix, Offset: r.pos.Offset, Reason: fmt.Sprintf("the position to read on at is negative, in chunk %d", r.pos.Chunk), Hint: hintPosition}
	}
	chunks, err := r.list(ctx)
	if err != nil {
		return err
	}
	if !finalized && len(chunks) > max(1, len(r.chunks)) {
		// A chunk with a successor is complete, but a listing is not one moment: bytes may have come to it after its line
		// was made and before the successor's. A second listing has its final size; what is new in that one waits.
		again, err := r.list(ctx)
		if err != nil {
			return err
		}
		chunks = again[:min(len(chunks), len(again))]
	}
	if r.pos != (ShardPosition{}) && r.pos.Chunk >= len(chunks) {
		return &DamageError{Blob: fmt.Sprintf("%s%05d.avro", r.prefix, r.pos.Chunk), Offset: r.pos.Offset,
			Reason: "the chunk that was being read is gone", Hint: hintGone}
	}
	if r.pos.Chunk < len(chunks) && r.pos.Offset > chunks[r.pos.Chunk].size {
		c := chunks[r.pos.Chunk]
		return &DamageError{Blob: c.name, Offset: r.pos.Offset, Reason: fmt.Sprintf("the chunk has only %d bytes", c.size), Hint: hintPosition}
	}
	r.chunks, r.finalized = chunks, finalized
	return nil
}

// list returns the chunks in order. Their numbers have no gap.
func (r *ShardReader) list(ctx context.Context) ([]chunk, error) {
	var chunks []chunk
	for e, err := range r.feed.store.List(ctx, r.prefix, "") {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", r.prefix, err)
		}
		number, ok := strings.CutSuffix(strings.TrimPrefix(e.Name, r.prefix), ".avro")
		if !ok {
			continue
		}
		if !digits(number) { // its place in the order is unknown, and without it events may be missing (I8)
			return nil, &DamageError{Blob: e.Name, Reason: "the name of this chunk is no number", Hint: hintName}
		}
		index, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("listing %s: chunk %q: %w", r.prefix, e.Name, err)
		}
		chunks = append(chunks, chunk{index, e.Name, e.Size})
	}
	slices.SortFunc(chunks, func(a, b chunk) int { return a.index - b.index })
	for i, c := range chunks {
		if c.index != i {
			return nil, &DamageError{Blob: r.prefix, Reason: fmt.Sprintf("chunk %05d is missing, %s is there", i, c.name), Hint: hintGone}
		}
	}
	return chunks, nil
}

// Next fills b with the next block. It returns io.EOF at the end of the last listing; Poll again to go on.
func (r *ShardReader) Next(ctx context.Context, b *Batch) error {
	for {
		if r.pos.Chunk >= len(r.chunks) {
			return io.EOF
		}
		c := r.chunks[r.pos.Chunk]
		err := r.block(ctx, c, b)
		if err == nil {
			r.pos = b.Next
			if len(b.Events) == 0 {
				continue // a block without records
			}
			return nil
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		// The chunk is read as far as it was listed. It is complete if another follows it, or the segment is finalized.
		last := r.pos.Chunk == len(r.chunks)-1
		if last && !r.finalized {
			return io.EOF
		}
		if r.pos.Offset != c.size && (r.header == nil || r.of != c.index || r.header.Size != c.size) {
			return &DamageError{Blob: c.name, Offset: r.pos.Offset, Reason: fmt.Sprintf("it is complete at %d bytes and ends inside a block", c.size), Hint: hintBytes}
		}
		if last {
			return io.EOF
		}
		r.pos = ShardPosition{Chunk: r.pos.Chunk + 1}
	}
}

// block reads the block at the position. io.EOF says that the listed bytes hold no whole block there.
func (r *ShardReader) block(ctx context.Context, c chunk, b *Batch) error {
	off := r.pos.Offset
	if off > 0 && off >= c.size {
		return io.EOF // not even the header is needed
	}
	if r.of != c.index {
		if err := r.open(ctx, c); err != nil {
			return err
		}
	}
	if off == 0 {
		off = r.header.Size
	}
	if off < r.header.Size {
		return &DamageError{Blob: c.name, Offset: off, Reason: fmt.Sprintf("no block begins there, the header has %d bytes", r.header.Size), Hint: hintPosition}
	}
	if off >= c.size {
		return io.EOF
	}
	for {
		if data := r.have(off); len(data) > 0 {
			blk, err := r.header.ReadBlock(data, off)
			if err == nil {
				b.Events, err = r.header.Events(blk, b.Events)
			}
			if err == nil {
				r.grow = 0
				b.Blob, b.Chunk, b.Offset, b.Next = c.name, c.index, off, ShardPosition{Chunk: c.index, Offset: blk.End}
				return nil
			}
			if !errors.Is(err, ocf.ErrShort) {
				return &DamageError{Blob: c.name, Offset: off, Reason: "the block can't be decoded", Err: err, Hint: hintBytes}
			}
		}
		more, err := r.fill(ctx, c, off, r.feed.opt.ReadSize)
		if err != nil {
			return err
		}
		if !more {
			return io.EOF
		}
	}
}

// open reads the header of c: from offset 0, also when reading goes on in the middle.
func (r *ShardReader) open(ctx context.Context, c chunk) error {
	r.window, r.at, r.grow = r.window[:0], 0, 0
	r.of = -1
	size := r.feed.opt.ReadSize
	if r.pos.Offset > 0 {
		size = headerRead // what follows the header is of no use
	}
	for {
		h, err := ocf.ParseHeader(r.have(0), r.feed.opt.Limits)
		if err == nil {
			r.header, r.of = h, c.index
			return nil
		}
		if !errors.Is(err, ocf.ErrShort) {
			return &DamageError{Blob: c.name, Reason: "the header can't be read", Err: err, Hint: hintBytes}
		}
		more, err := r.fill(ctx, c, 0, size)
		if err != nil {
			return err
		}
		if !more {
			return io.EOF
		}
	}
}

// have returns the bytes that are here from off on.
func (r *ShardReader) have(off int64) []byte {
	if off < r.at || off >= r.at+int64(len(r.window)) {
		return nil
	}
	return r.window[off-r.at:]
}

// fill reads size bytes or more behind what is here from off on, up to the listed size. more is false if there is nothing
// to read. The window's memory is used again: events are copies.
func (r *ShardReader) fill(ctx context.Context, c chunk, off, size int64) (more bool, err error) {
	kept := r.have(off)
	from := off + int64(len(kept))
	n := min(max(size, r.grow), c.size-from)
	if n <= 0 {
		return false, nil
	}
	window := append(r.window[:0], kept...) // a move to the front
	window = slices.Grow(window, int(n))
	got, err := r.feed.store.ReadAt(ctx, c.name, window[len(window):len(window)+int(n)], from)
	r.window, r.at = window[:len(window)+got], off
	if err != nil {
		return false, fmt.Errorf("reading %s at %d: %w", c.name, from, err)
	}
	if got == 0 {
		return false, &DamageError{Blob: c.name, Offset: from, Reason: fmt.Sprintf("it was listed with %d bytes and has fewer", c.size), Hint: hintBytes}
	}
	r.grow = int64(len(r.window))
	return true, nil
}

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"blobfeed/source/ocf"
)

// Batch is one block of a chunk. It belongs to the caller, which may pass it to Next again.
type Batch struct {
	Events []Event
	Blob   string // name of the chunk
	Chunk  int
	Offset int64         // of the block
	Memory int           // approximate bytes of memory of the block and its events
	Next   ShardPosition // behind it
}

// headerRead is the size of a read for a header alone. Real headers are below 3 KiB.
const headerRead = 16 << 10

// ShardReader reads one shard of one segment, and follows it while it grows. It is for one goroutine. An error leaves
// the position as it was, so the call can be repeated.
type ShardReader struct {
	feed    *Feed
	segment Segment
	shard   int
	prefix  string // "" if the manifest does not have the shard
	paths   map[int]string
	pos     ShardPosition

	chunks    []chunk // of the last Poll
	finalized bool    // as the last Poll was told
	doubted   bool    // the bytes read do not fit the listing
	lacks     string  // what the last Poll found missing, perhaps

	header *ocf.Header // of chunk of
	of     int
	window []byte // bytes of the current chunk from at on
	at     int64
	grow   int64 // bytes to read at least: doubles while one block is larger than what is here
	limit  int64 // of the window; 0: Options.ReadSize
	ahead  []*ahead
}

// Shard returns a reader of a shard of m that starts at a position.
func (f *Feed) Shard(m Manifest, shard int, from ShardPosition) *ShardReader {
	return &ShardReader{feed: f, segment: m.Segment, shard: shard, prefix: m.Paths[shard], paths: m.Paths, pos: from,
		of: -1}
}

// LimitWindow sets how many bytes later reads may keep, up to Options.ReadSize, for readers that share memory. A block
// that is larger is read all the same. The reader reads ahead, until Stop is called, where more of that size fit.
func (r *ShardReader) LimitWindow(bytes int64) { r.limit = bytes }

// readSize returns the size of a read into an empty window.
func (r *ShardReader) readSize() int64 {
	size := r.feed.opt.ReadSize
	if r.limit == 0 {
		return size
	}
	if part := max(r.limit/(1+partsAhead), min(size, minPart)); r.limit >= 2*part {
		return min(size, part)
	}
	return min(size, r.limit)
}

// Position returns where to resume: after everything that Next has returned.
func (r *ShardReader) Position() ShardPosition { return r.pos }

// Ahead returns how many bytes of the last listing are still to be read.
func (r *ShardReader) Ahead() (size int64) {
	for _, c := range r.chunks {
		if c.index >= r.pos.Chunk {
			size += c.size
		}
		if c.index == r.pos.Chunk {
			size -= r.pos.Offset
		}
	}
	return max(size, 0)
}

// Listed returns how many bytes the last listing has.
func (r *ShardReader) Listed() (size int64) {
	for _, c := range r.chunks {
		size += c.size
	}
	return size
}

// Poll lists the chunks. Next then reads to the end of that listing. Finalized is what the manifest said; the caller
// must have read the manifest before this call (I7). If it is true, the listing is the last one, and a torn block in it
// is damage.
func (r *ShardReader) Poll(ctx context.Context, finalized bool) error {
	if r.prefix == "" {
		return fmt.Errorf("shard %s is not in the manifest of segment %s", ShardName(r.shard), r.segment)
	}
	if r.pos.Chunk < 0 || r.pos.Offset < 0 {
		return &DamageError{Blob: r.prefix, Offset: r.pos.Offset, Hint: hintPosition,
			Reason: fmt.Sprintf("the position to read on at is negative, in chunk %d", r.pos.Chunk)}
	}
	chunks, err := r.feed.chunks(ctx, r.prefix)
	if err != nil {
		return err
	}
	if !finalized && len(chunks) > max(1, len(r.chunks)) {
		// A chunk with a successor is complete, but a listing is not a snapshot: the service may have appended to the
		// chunk after it listed the chunk and before it listed the successor. A second listing has the final size.
		// Chunks that only the second listing has wait for the next poll.
		again, err := r.feed.chunks(ctx, r.prefix)
		if err != nil {
			return err
		}
		newest := chunks[len(chunks)-1].index
		chunks = slices.DeleteFunc(again, func(c chunk) bool { return c.index > newest })
	}
	r.chunks, r.finalized, r.doubted, r.lacks = chunks, finalized, false, ""
	if finalized && len(chunks) == 0 && r.pos == (ShardPosition{}) {
		return r.chunkless(ctx)
	}
	return nil
}

// Prefetch reads the bytes that the next call of Next needs, if they are the first of a chunk. That call reports what
// goes wrong.
func (r *ShardReader) Prefetch(ctx context.Context) {
	if c, err := r.current(); err == nil && r.of != c.index && r.pos.Offset < c.size {
		_ = r.open(ctx, c)
	}
}

// Next fills b with the next block. It returns io.EOF at the end of the last listing; Poll again to continue. With a
// DamageError, b has the block's events before the damage. The call after a DamageError or an ErrNotFound lists and
// reads again: the bytes may have been damaged on their way, and retention may have removed a listed chunk.
func (r *ShardReader) Next(ctx context.Context, b *Batch) error { return r.advance(ctx, b, true) }

// Borrow is Next for a caller that needs the events until its next call only. Their strings are parts of the reader's
// window, and change with it: what lives longer has to be a copy. Next allocates three times as much.
func (r *ShardReader) Borrow(ctx context.Context, b *Batch) error { return r.advance(ctx, b, false) }

func (r *ShardReader) advance(ctx context.Context, b *Batch, own bool) error {
	b.Events = b.Events[:0]
	if r.doubted {
		if err := r.Poll(ctx, r.finalized); err != nil {
			return err
		}
	}
	err := r.next(ctx, b, own)
	if errors.Is(err, io.EOF) && len(r.have(r.pos.Offset)) == 0 {
		keepWindow(r.window)
		r.window = nil // I9: the next poll may be hours away
	}
	// I8: only a new listing says that the chunk is gone.
	r.doubted = errors.As(err, new(*DamageError)) || errors.Is(err, ErrNotFound)
	return err
}

func (r *ShardReader) next(ctx context.Context, b *Batch, own bool) error {
	for {
		c, err := r.current()
		if err != nil {
			return err
		}
		if err := r.block(ctx, c, b, own); err == nil {
			r.pos = b.Next
			if len(b.Events) == 0 {
				continue // a block without records
			}
			return nil
		} else if !errors.Is(err, io.EOF) {
			return err
		}
		if !r.complete(c) {
			return io.EOF
		}
		if r.pos.Offset != c.size && (r.header == nil || r.of != c.index || r.header.Size != c.size) {
			return r.damaged(&DamageError{Blob: c.name, Offset: r.pos.Offset, Kind: BadBytes, Hint: hintBytes,
				Reason: fmt.Sprintf("it is complete at %d bytes and ends inside a block", c.size)})
		}
		if r.last(c) {
			return io.EOF
		}
		r.pos = ShardPosition{Chunk: c.index + 1}
	}
}

// block reads the block at the position. It returns io.EOF if the listed bytes hold no whole block there.
func (r *ShardReader) block(ctx context.Context, c chunk, b *Batch, own bool) error {
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
		return &DamageError{Blob: c.name, Offset: off, Hint: hintPosition,
			Reason: fmt.Sprintf("no block begins there, the header has %d bytes", r.header.Size)}
	}
	if off >= c.size {
		return io.EOF
	}
	for {
		if data := r.have(off); len(data) > 0 {
			blk, err := r.header.ReadBlock(data, off)
			if own {
				blk = blk.Clone()
			}
			if err == nil {
				b.Events, b.Memory, err = r.header.Decode(blk, b.Events)
			}
			if err == nil {
				r.grow = 0
				b.Blob, b.Chunk, b.Offset, b.Next = c.name, c.index, off, ShardPosition{Chunk: c.index, Offset: blk.End}
				return nil
			}
			if !errors.Is(err, ocf.ErrShort) {
				b.Blob, b.Chunk, b.Offset = c.name, c.index, off
				return r.damaged(&DamageError{Blob: c.name, Offset: off, Kind: BadBytes,
					Reason: "the block can't be decoded", Err: err, Hint: hintBytes})
			}
		}
		more, err := r.fill(ctx, c, off, r.readSize())
		if err != nil {
			return err
		}
		if !more {
			return io.EOF
		}
	}
}

// open reads the header of c, which is needed also to resume in the middle of the chunk.
func (r *ShardReader) open(ctx context.Context, c chunk) error {
	r.window, r.at, r.grow = r.window[:0], 0, 0
	r.of = -1
	size := r.readSize()
	if r.pos.Offset > 0 {
		size = headerRead // the bytes after the header are not needed
	}
	for {
		h, err := ocf.ParseHeader(r.have(0), r.feed.opt.Limits)
		if err == nil {
			r.header, r.of = h, c.index
			return nil
		}
		if !errors.Is(err, ocf.ErrShort) {
			return r.damaged(&DamageError{Blob: c.name, Kind: BadBytes, Reason: "the header can't be read", Err: err,
				Hint: hintBytes})
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

// have returns the buffered bytes from off on.
func (r *ShardReader) have(off int64) []byte {
	if off < r.at || off >= r.at+int64(len(r.window)) {
		return nil
	}
	return r.window[off-r.at:]
}

// fill reads at least size bytes after the buffered ones, up to the listed size of the chunk, and drops those before
// off. more is false if nothing is left to read. It reuses the window's memory, since events are copies, unless the
// window has become much smaller.
func (r *ShardReader) fill(ctx context.Context, c chunk, off, size int64) (more bool, err error) {
	kept := r.have(off)
	from := off + int64(len(kept))
	n := min(max(size, r.grow), c.size-from)
	if n <= 0 {
		return false, nil
	}
	window := r.window[:0]
	// I9: no more than is needed, with room for the beginning of a block, which differs in size each time.
	need, former := len(kept)+int(n), window
	other := cap(window) < need || cap(window) > 2*(len(kept)+int(max(size, r.grow)))
	if other {
		window = takeWindow(need + need/8)
	}
	window = append(window, kept...) // a move to the front, mostly
	if other {
		keepWindow(former)
	}
	window = window[:len(window):cap(window)]
	got, err := r.readAt(ctx, c, window[len(window):len(window)+int(n)], from)
	r.window, r.at = window[:len(window)+got], off
	if err != nil {
		return false, fmt.Errorf("reading %s at %d: %w", c.name, from, err)
	}
	if got == 0 {
		return false, &DamageError{Blob: c.name, Offset: from,
			Reason: fmt.Sprintf("it was listed with %d bytes but has fewer", c.size), Hint: hintPosition}
	}
	r.grow = int64(len(r.window))
	return true, nil
}

// windows are free. Of small segments each shard needs another one. The garbage collector takes what nobody uses (I9).
var windows sync.Pool

// takeWindow returns an empty window of a size at least.
func takeWindow(size int) []byte {
	if w, ok := windows.Get().(*[]byte); ok && cap(*w) >= size && cap(*w) <= 2*size {
		return (*w)[:0]
	}
	return make([]byte, 0, size)
}

func keepWindow(w []byte) {
	if cap(w) > 0 {
		windows.Put(&w)
	}
}

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

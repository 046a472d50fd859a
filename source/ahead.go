package source

import (
	"context"

	"blobfeed/internal/crash"
)

// ahead is a part of a chunk that is read while the caller works on what comes before it. With few shards, that time
// would be lost: there is no other one to work on.
type ahead struct {
	chunk  int
	from   int64
	size   int64
	data   []byte        // none if the read failed: it is repeated when the bytes are needed
	taken  int           // bytes of data
	done   chan struct{} // closed when data is set
	cancel context.CancelFunc
}

// With parts of a quarter of a reader's room, three come while it works on one: one shard that is 60 ms away is read
// 1.6 times as fast as with halves (docs/project/performance.md). Smaller parts than minPart cost more than they gain.
const (
	partsAhead = 3
	minPart    = 2 << 20
)

// readAt reads a part of a chunk, or takes it from what was read ahead. What follows is read ahead as far as there is
// room.
func (r *ShardReader) readAt(ctx context.Context, c chunk, p []byte, from int64) (n int, err error) {
	if len(r.ahead) > 0 && r.ahead[0].at(c, from) {
		a := r.ahead[0]
		select {
		case <-a.done:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		n = copy(p, a.data[a.taken:])
		if a.taken += n; a.taken == len(a.data) {
			r.ahead = r.ahead[1:]
			a.stop()
		}
	}
	if n == 0 { // also to learn of a failure, or that the chunk has become shorter
		if n, err = r.feed.store.ReadAt(ctx, c.name, p, from); err != nil {
			r.Stop()
			return n, err
		}
	}
	if from += int64(n); n > 0 && from >= r.pos.Offset { // a header is not followed by what is needed next
		r.readAhead(ctx, c, from)
	}
	return n, nil
}

// readAhead has the parts that follow from on read, and drops what was read of other ones.
func (r *ShardReader) readAhead(ctx context.Context, c chunk, from int64) {
	if len(r.ahead) > 0 && !r.ahead[0].at(c, from) {
		r.Stop()
	}
	for _, a := range r.ahead {
		from = a.from + a.size
	}
	size := r.readSize()
	for room := r.limit/size - 1; int64(len(r.ahead)) < room && from < c.size; {
		a := r.read(ctx, c, from, min(size, c.size-from))
		r.ahead = append(r.ahead, a)
		from += a.size
	}
}

func (r *ShardReader) read(ctx context.Context, c chunk, from, size int64) *ahead {
	ctx, cancel := context.WithCancel(ctx)
	a := &ahead{
		chunk: c.index, from: from, size: size, data: takeWindow(int(size)), done: make(chan struct{}), cancel: cancel,
	}
	crash.Go(ctx, "feed", func() {
		defer close(a.done)
		if n, err := r.feed.store.ReadAt(ctx, c.name, a.data[:size], from); err == nil {
			a.data = a.data[:n]
		}
	})
	return a
}

// at reports whether what is not taken of the part begins there.
func (a *ahead) at(c chunk, from int64) bool {
	return a.chunk == c.index && a.from+int64(a.taken) == from
}

// stop ends the read, and gives back its memory.
func (a *ahead) stop() {
	a.cancel()
	<-a.done
	keepWindow(a.data)
}

// Stop ends reading ahead, which Next starts again.
func (r *ShardReader) Stop() {
	for _, a := range r.ahead {
		a.cancel()
	}
	for _, a := range r.ahead {
		a.stop()
	}
	r.ahead = nil
}

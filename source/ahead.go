package source

import (
	"context"
	"errors"

	"blobfeed/internal/crash"
)

// ahead is a part of a chunk that is read while the caller works on what comes before it. With a single shard, that
// time would be lost: there is no other one to work on.
type ahead struct {
	chunk  int
	from   int64
	data   []byte
	err    error
	done   chan struct{} // closed when data and err are set
	cancel context.CancelFunc
}

// errUnread is what stays if the read panics, which the handler of the bridge reports.
var errUnread = errors.New("the read did not end")

// readAt reads a part of a chunk, or takes it from what was read ahead. What follows is read ahead if there is room.
func (r *ShardReader) readAt(ctx context.Context, c chunk, p []byte, from int64) (n int, err error) {
	if a := r.ahead; a != nil && a.chunk == c.index && a.from == from {
		select {
		case <-a.done:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if a.err == nil {
			n = copy(p, a.data)
		}
	}
	r.Stop()
	if n == 0 { // also to learn of a failure, or that the chunk has become shorter
		if n, err = r.feed.store.ReadAt(ctx, c.name, p, from); err != nil {
			return n, err
		}
	}
	from += int64(n)
	if size := r.feed.opt.ReadSize; n > 0 && from < c.size && r.limit >= 2*size {
		r.readAhead(ctx, c, from, min(size, c.size-from))
	}
	return n, nil
}

func (r *ShardReader) readAhead(ctx context.Context, c chunk, from, size int64) {
	ctx, cancel := context.WithCancel(ctx)
	a := &ahead{
		chunk: c.index, from: from, data: takeWindow(int(size)), err: errUnread,
		done: make(chan struct{}), cancel: cancel,
	}
	r.ahead = a
	crash.Go(ctx, "feed", func() {
		defer close(a.done)
		n, err := r.feed.store.ReadAt(ctx, c.name, a.data[:size], from)
		a.data, a.err = a.data[:n], err
	})
}

// Stop ends reading ahead, which Next starts again.
func (r *ShardReader) Stop() {
	if r.ahead == nil {
		return
	}
	r.ahead.cancel()
	<-r.ahead.done
	keepWindow(r.ahead.data)
	r.ahead = nil
}

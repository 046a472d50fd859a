package bridge

import (
	"context"
	"errors"
	"slices"
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/offsets"
	"blobfeed/source"
)

// retryOpen retries f while a transaction may be open. It remembers the last failure, and the next commit writes it
// into the cursor. Errors that end the shard or the hold are returned at once.
func (h *hold) retryOpen(ctx context.Context, f func(context.Context) error) error {
	var ends error
	err := h.shared.retry(ctx, h.p, func(ctx context.Context) error {
		err := f(ctx)
		var stay *pipeline.StayError
		if errors.Is(err, errLimitChanged) || errors.As(err, &stay) {
			ends = err
			return nil
		}
		h.findings.remember(ctx, h.opts.Now(), err)
		return err
	})
	if err == nil {
		err = ends
	}
	return err
}

// retryIdle retries f between two transactions. No commit follows that would write the failure, so it commits the
// failure itself.
func (h *hold) retryIdle(ctx context.Context, f func(context.Context) error) error {
	return h.shared.retry(ctx, h.p, func(ctx context.Context) error {
		err := f(ctx)
		if h.findings.remember(ctx, h.opts.Now(), err) {
			_ = h.commitFailure() // if the lease is gone, its next use says so
		}
		return err
	})
}

// commitFailure commits the cursor with the last failure, unless the cursor has it: a lasting failure is written once.
// It is no progress, so the observer is not called. No transaction may be open.
func (h *hold) commitFailure() error {
	if h.lease == nil || !h.findings.putInto(h.cursor) {
		return nil
	}
	return h.lease.Commit(h.held, h.cursor, nil)
}

// recovered commits that what failed before is over: the lease has done all that there is to do. No transaction may be
// open.
func (h *hold) recovered() error {
	if h.lease == nil || !h.cursor.Failing {
		return nil
	}
	h.cursor.Failing = false
	return h.lease.Commit(h.held, h.cursor, nil)
}

// manifest reads the manifest of seg. The error is a GapError if retention has removed it.
func (h *hold) manifest(ctx context.Context, seg source.Segment) (m source.Manifest, err error) {
	err = h.retryIdle(ctx, func(ctx context.Context) error {
		if m, err = h.shared.history.readManifest(ctx, seg, time.Time{}); err != nil {
			return h.shared.history.lost(ctx, seg, err)
		}
		return nil
	})
	return m, err
}

// current reads the manifest of the current segment in s, however long it takes: a failure of the store is no reason
// to give up a lease. If retention has removed it, current returns the loss, and the manifest as the frontier
// remembers it.
func (h *hold) current(s *offsets.State) (m source.Manifest, gap *GapError, err error) {
	ctx, done := h.during(s.Frontier.Current)
	defer done()
	m, err = h.manifest(ctx, s.Frontier.Current)
	if errors.As(err, &gap) {
		return h.shared.remembered(s), gap, nil
	}
	return m, nil, err
}

// nextSegment returns the segment after seg.
func (h *hold) nextSegment(seg source.Segment) (next source.Segment, ok bool, err error) {
	err = h.retryIdle(h.work, func(ctx context.Context) error {
		next, ok, err = h.shared.history.segmentAfter(ctx, seg)
		return err
	})
	return next, ok, err
}

// isThere reports whether the manifest of seg exists, by a read after a moment. If it does not exist, its chunks may be
// gone, too, and a listing before that moment proves nothing.
func (h *hold) isThere(seg source.Segment, moment time.Time) (there bool, err error) {
	err = h.retryIdle(h.work, func(ctx context.Context) error {
		_, err := h.shared.history.readManifest(ctx, seg, moment)
		if there = err == nil; errors.Is(err, source.ErrNotFound) {
			return nil
		}
		return err
	})
	return there, err
}

// remembered returns the manifest of the current segment as the frontier remembers it, after retention has removed it.
// It names a shard for each lease that has to say that it is done: those of the segment, and those that began it.
func (sh *shared) remembered(s *offsets.State) source.Manifest {
	f := s.Frontier
	m := source.Manifest{Segment: f.Current, Begin: f.Current.Time(), Finalized: true, Shards: slices.Clone(f.Shards)}
	if f.Ends.After(m.Begin) {
		m.Interval = f.Ends.Sub(m.Begin)
	}
	for p, c := range s.Cursors {
		began := c != nil && c.Segment == f.Current || f.Shards == nil // by an older version: any lease may have some
		if began && len(sh.shardsOf(int32(p), m)) == 0 {
			m.Shards = append(m.Shards, p)
		}
	}
	return m
}

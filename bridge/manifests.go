package bridge

import (
	"context"
	"time"

	"blobfeed/source"
)

// manifests keeps the last manifest read, which all workers of an instance share. A finalized one stays true for ever;
// an open one is read again when it is older than the caller accepts.
type manifests struct {
	feed *source.Feed
	poll time.Duration

	lock chan struct{} // capacity 1: who waits for it still hears its context
	last source.Manifest
	read time.Time
}

func newManifests(feed *source.Feed, poll time.Duration) *manifests {
	return &manifests{feed: feed, poll: poll, lock: make(chan struct{}, 1)}
}

// get returns the manifest of seg. The lock is held while reading: the workers that wait want the same one. The reader may be a
// worker that has all the time in the world, and who waits for it one that must go.
func (m *manifests) get(ctx context.Context, seg source.Segment) (source.Manifest, error) {
	return m.getSince(ctx, seg, time.Time{})
}

// getSince is get, with a manifest that was read after a moment.
func (m *manifests) getSince(ctx context.Context, seg source.Segment, moment time.Time) (source.Manifest, error) {
	select {
	case m.lock <- struct{}{}:
		defer func() { <-m.lock }()
	case <-ctx.Done():
		return source.Manifest{}, ctx.Err()
	}
	if m.last.Segment == seg && m.read.After(moment) && (m.last.Finalized || time.Since(m.read) < m.poll/2) {
		return m.last, nil
	}
	m.last = source.Manifest{} // if it is gone now, nobody is to believe in it
	began := time.Now()
	man, err := m.feed.Manifest(ctx, seg)
	if err != nil {
		return source.Manifest{}, err
	}
	m.last, m.read = man, began
	return man, nil
}

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

	turn turn
	last source.Manifest
	read time.Time
}

func newManifests(feed *source.Feed, poll time.Duration) *manifests {
	return &manifests{feed: feed, poll: poll, turn: newTurn()}
}

// get returns the manifest of seg. The workers that wait for their turn want the same one; the reader may have time,
// and one that
// waits may have to go.
func (m *manifests) get(ctx context.Context, seg source.Segment) (source.Manifest, error) {
	return m.getSince(ctx, seg, time.Time{})
}

// getSince is get, with a manifest that was read after a moment.
func (m *manifests) getSince(ctx context.Context, seg source.Segment, moment time.Time) (source.Manifest, error) {
	if err := m.turn.take(ctx); err != nil {
		return source.Manifest{}, err
	}
	defer m.turn.leave()
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

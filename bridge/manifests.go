package bridge

import (
	"context"
	"sync"
	"time"

	"blobfeed/source"
)

// manifests keeps the last manifest read, which all workers of an instance share. A finalized one stays true for ever;
// an open one is read again when it is older than the caller accepts.
type manifests struct {
	feed *source.Feed
	poll time.Duration

	mu   sync.Mutex
	last source.Manifest
	read time.Time
}

func newManifests(feed *source.Feed, poll time.Duration) *manifests {
	return &manifests{feed: feed, poll: poll}
}

// get returns the manifest of seg. The lock is held while reading: the workers that wait want the same one.
func (m *manifests) get(ctx context.Context, seg source.Segment) (source.Manifest, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.Segment == seg && (m.last.Finalized || time.Since(m.read) < m.poll/2) {
		return m.last, nil
	}
	began := time.Now()
	man, err := m.feed.Manifest(ctx, seg)
	if err != nil {
		return source.Manifest{}, err
	}
	m.last, m.read = man, began
	return man, nil
}

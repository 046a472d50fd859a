package account

import (
	"context"
	"fmt"

	"blobfeed/internal/testing/feedsim"
)

// Publish writes the events of recorded changes into the open segment of a feed, and reports how many. Later selects
// the changes that wait for another Publish, as the service publishes late; nil: none waits. A change also waits for an
// earlier one of its blob. An account has one publisher at a time.
func (a *Account) Publish(
	ctx context.Context, feed *feedsim.Feed, later func(Change) bool, emit func(feedsim.Expected),
) (int, error) {
	a.mu.Lock()
	waiting := map[string]bool{}
	var events []feedsim.Change
	var rest []Change
	for _, c := range a.changes {
		key := c.Container + "/" + c.Blob.Name
		if later != nil && (waiting[key] || later(c)) {
			waiting[key] = true
			rest = append(rest, c)
			continue
		}
		events = append(events, feedsim.Change{Container: c.Container, Blob: c.Blob.Name, Delete: c.Delete,
			Ticks: c.Ticks, Length: c.Blob.Length, ContentType: c.Blob.ContentType, Tier: c.Blob.Tier})
	}
	a.changes = rest
	a.mu.Unlock()
	if err := feed.AppendChanges(ctx, events, emit); err != nil {
		return 0, fmt.Errorf("publishing %d changes: %w", len(events), err)
	}
	return len(events), nil
}

// Pending returns how many recorded changes are not published.
func (a *Account) Pending() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.changes)
}

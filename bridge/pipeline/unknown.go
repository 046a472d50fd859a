package pipeline

import (
	"log/slog"
	"sync"

	"blobfeed/internal/plain"
	"blobfeed/source"
)

// maxTypes bounds the event types that are remembered (I9). The schemas of the service have less than twenty.
const maxTypes = 100

// unknown warns of event types without a rule, once of each.
type unknown struct {
	mu     sync.Mutex
	warned map[string]bool
}

func (u *unknown) warn(log *slog.Logger, eventType string, seg source.Segment) {
	eventType = plain.Line(eventType) // a copy: a part of a block would keep all of it in memory
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.warned[eventType] || len(u.warned) == maxTypes {
		return
	}
	if u.warned == nil {
		u.warned = map[string]bool{}
	}
	u.warned[eventType] = true
	log.Warn("leaving out events of an unknown type; they may change blobs", "type", eventType, "segment", seg,
		"hint", "a bridge that delivers all events delivers them; look for a newer bridge")
}

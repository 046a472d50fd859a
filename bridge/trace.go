package bridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/offsets"
)

// traceEnd reports a transaction whose first record was written at began, and that ends now.
func (h *hold) traceEnd(t Transaction, began time.Time, err error) {
	if h.opts.Tracer == nil {
		return
	}
	now := time.Now()
	t.Err, t.Publishing = err, pipeline.Between(began, now)
	if acked := h.lease.Flushed(); acked.After(began) {
		t.Publishing, t.Committing = pipeline.Between(began, acked), pipeline.Between(acked, now)
	}
	h.opts.Tracer.Ended(t)
}

func cursorText(c *offsets.Cursor) string {
	var s strings.Builder
	for i, shard := range slices.Sorted(maps.Keys(c.Shards)) {
		if i > 0 {
			s.WriteByte(' ')
		}
		fmt.Fprintf(&s, "%s=%05d/%d", shard, c.Shards[shard].Chunk, c.Shards[shard].Offset)
	}
	return s.String()
}

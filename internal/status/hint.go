package status

import (
	"cmp"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
)

// unselected returns a hint if no event has become a record, although a segment is complete that begins at or after the
// start: mostly a filter has a typo. It returns "" otherwise.
func (s *Status) unselected(f *offsets.Frontier) string {
	n := s.Totals
	if n.Read == 0 || cmp.Or(n.Emitted, n.DeadLettered, n.Scanned) > 0 || s.Position.Completed == "" {
		return ""
	}
	start, err := envelope.ParseTimestamp(f.Start)
	if err == nil && f.Completed.Time().Before(time.Unix(0, start.Wall)) {
		return "" // these events are left out for their time
	}
	return "no event has become a record: " + plain.Number(n.Filtered) + " of " + plain.Count(n.Read, "event") +
		" read are left out by the settings; check BRIDGE_CONTAINERS, BRIDGE_PREFIXES, BRIDGE_SUFFIXES, " +
		"BRIDGE_EVENT_TYPES, BRIDGE_BLOB_TYPES and BRIDGE_EVENTS"
}

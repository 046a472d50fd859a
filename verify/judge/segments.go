package judge

import (
	"time"

	"blobfeed/envelope"
	"blobfeed/source"
)

// segmentSlack is how far outside its segment an event may be.
const segmentSlack = 15 * time.Minute

// finished is a segment that is finalized, and so has a marker after it.
type finished struct {
	segment source.Segment
	end     time.Time          // less segmentSlack
	says    envelope.Timestamp // time of the marker, by the segment's own times
}

package offsets

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"blobfeed/source"
)

// Version is the version of the documents this package writes. It reads this one and those before it.
const Version = 1

// Keys of the topic.
const (
	keyCursor   = "cursor"
	keyFrontier = "frontier"
	keyOwner    = "owner"
)

// Cursor is how far one lease has read. Every record of the events before it is in the same transaction as the cursor
// or in an earlier one (I1).
type Cursor struct {
	Version int            `json:"version"`
	Owner   string         `json:"owner"`
	Time    time.Time      `json:"timestamp"`
	Segment source.Segment `json:"segment"`
	// Shards is keyed by the shard's two digits. A shard that is at its end stays in it until the next segment.
	Shards map[string]source.ShardPosition `json:"shards,omitempty"`
	Done   bool                            `json:"done"`          // every shard of this lease is at its end, and the segment is finalized
	Gap    bool                            `json:"gap,omitempty"` // chunks of this segment were gone before they were read
	// Pins are of the topics that this lease found in the segment, and the frontier does not know yet, by name.
	Pins   map[string]Pin `json:"pins,omitempty"`
	Counts Counts         `json:"counts"`
}

// Pin is what must stay as it is while a topic is written to, lest its keys move (I5).
type Pin struct {
	Partitions int32 `json:"partitions"`
	KeySchema  int   `json:"key_schema,omitempty"` // id in the registry; 0 where keys have none
}

// Counts are events since the first start of the bridge, for operators; nothing is derived from them.
type Counts struct {
	Read    int64 `json:"read"`
	Emitted int64 `json:"emitted"`
	// Filtered are those that the settings leave out.
	Filtered int64 `json:"filtered"`
	Late     int64 `json:"late"`
	// DeadLettered are records of the dead-letter topic.
	DeadLettered int64 `json:"dead_lettered"`
}

// At returns the position in shard: its start if the cursor does not know it or is in another segment.
func (c *Cursor) At(seg source.Segment, shard int) source.ShardPosition {
	if c.Segment != seg {
		return source.ShardPosition{}
	}
	return c.Shards[shardKey(shard)]
}

// Advance moves shard to pos, after clearing what belongs to an earlier segment.
func (c *Cursor) Advance(seg source.Segment, shard int, pos source.ShardPosition) {
	if c.Segment != seg || c.Shards == nil {
		c.Segment, c.Done, c.Gap, c.Pins, c.Shards = seg, false, false, nil, map[string]source.ShardPosition{}
	}
	c.Shards[shardKey(shard)] = pos
}

// Pin adds pins. The cursor must be in their segment.
func (c *Cursor) Pin(pins map[string]Pin) {
	if c.Pins == nil && len(pins) > 0 {
		c.Pins = map[string]Pin{}
	}
	maps.Copy(c.Pins, pins)
}

// Finish says that every shard of seg is at its end, also where this lease saw no event of it.
func (c *Cursor) Finish(seg source.Segment) {
	if c.Segment != seg {
		c.Segment, c.Gap, c.Pins, c.Shards = seg, false, nil, nil
	}
	c.Done = true
}

// Finished reports whether the cursor says that all of seg is delivered.
func (c *Cursor) Finished(seg source.Segment) bool { return c.Segment == seg && c.Done }

func shardKey(shard int) string { return fmt.Sprintf("%02d", shard) }

// Frontier is what all instances agree on. It is written by the owner of lease 0 alone.
type Frontier struct {
	Version   int            `json:"version"`
	Owner     string         `json:"owner"`
	Time      time.Time      `json:"timestamp"`
	Completed source.Segment `json:"completed"`       // every event up to and with this segment is delivered
	Current   source.Segment `json:"current"`         // the one being delivered; none while the feed has no later one
	Resolved  string         `json:"resolved"`        // the last marker, "<ns>.<10 digits>", or "" before the first
	Feed      string         `json:"feed"`            // identity of the account or directory
	Start     string         `json:"start,omitempty"` // events before it are left out, "<ns>.<10 digits>"; "" is none
	Ended     bool           `json:"ended,omitempty"` // everything up to END_TIME is delivered
	Gap       *Gap           `json:"gap,omitempty"`   // lost history that no marker has told of yet
	Gaps      int            `json:"gaps,omitempty"`  // how often history was lost
	// Settings are those that must not change while records exist, as "NAME" -> value.
	Settings map[string]string `json:"settings"`
	// Topics holds the partition counts that keys are spread over until the next marker (I5).
	Topics map[string]int32 `json:"topics"`
	// KeySchemas holds the ids of the schemas that keys are written with: they are in the keys, and so choose the partition.
	KeySchemas map[string]int `json:"key_schemas,omitempty"`
}

// Gap is history that retention removed before it was read: from segment From up to To, which is there.
type Gap struct {
	From source.Segment `json:"from"`
	To   source.Segment `json:"to"`
}

// owner is the record that ends an acquisition.
type owner struct {
	Version int       `json:"version"`
	Owner   string    `json:"owner"`
	Time    time.Time `json:"timestamp"`
}

// VersionError says that a document was written by a newer bridge.
type VersionError struct {
	Key  string
	Have int
}

func (e *VersionError) Error() string {
	return "the " + e.Key + " in the offsets topic has version " + strconv.Itoa(e.Have) + ", this bridge reads up to " +
		strconv.Itoa(Version) + "; run the newer bridge that wrote it"
}

// decode fills doc from value and checks the version in it.
func decode(key string, value []byte, doc any) error {
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("reading the %s in the offsets topic: %w", key, err)
	}
	if v.Version < 1 || v.Version > Version {
		return &VersionError{Key: key, Have: v.Version}
	}
	if err := json.Unmarshal(value, doc); err != nil {
		return fmt.Errorf("reading the %s in the offsets topic: %w", key, err)
	}
	return nil
}

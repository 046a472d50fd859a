package feedsim

import "fmt"

// Expected is an event that a reader has to find, and where.
type Expected struct {
	ID                   string
	Container, Blob, Key string // Key is container/blob; all are empty in a Control event
	EventType, API       string
	EventTime, Sequencer string
	Snapshot             string
	Segment              string // 2026/01/01/0000
	Shard, Chunk         int
	BlockOffset          int64 // of the block in the chunk
	Index                int   // in the block
	State                bool  // it changes the blob's row: an upsert, or a delete
	Delete               bool
	Seq                  int64 // from 1 over the whole feed; it rises per blob, per shard and per segment
}

// Event is the same: most tests call it so.
type Event = Expected

// Position returns segment/shard/chunk/offset/index, as the bridge's header position has it.
func (e *Expected) Position() string {
	return fmt.Sprintf("%s/%02d/%05d/%d/%d", e.Segment, e.Shard, e.Chunk, e.BlockOffset, e.Index)
}

// Summary says what was written so far.
type Summary struct {
	Segments, Finalized int
	Chunks, Blocks      int
	Events              int64 // all
	States, Deletes     int64 // of them, those with State, with Delete
	Controls            int64 // of them, those of type Control
	Bytes               int64 // of chunks
}

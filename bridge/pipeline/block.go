package pipeline

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// Block is one block of a chunk, read and encoded. Blocks are reused: one is free again when the brokers have
// acknowledged its records, since the client keeps them until then (sent.go).
type Block struct {
	Shard             int
	Step              *inventory.Step // of a listing, in place of a shard
	Swept             bool            // deletions of a sweep; neither shard nor step
	Records           []kgo.Record
	New               []*Topic // of Records, those that the frontier does not have yet
	Gap               bool     // a chunk before it is gone
	Left              int64    // bytes of the shard's listing that come after it
	Memory            int64    // of the instance's memory
	Counts            Counts
	Reading, Encoding Span

	events  source.Batch
	whole   []byte // an array for what is encoded
	buf     []byte // the end of what is used of it, or of another one where it was too small
	headers []kgo.RecordHeader
	env     envelope.Record
	dead    []deadLetter // what could not become a record
	encoded int          // bytes of the records without dead letters, the last time it was used
}

// Next returns the position behind the block.
func (b *Block) Next() source.ShardPosition { return b.events.Next }

// FirstDead returns where the first dead letter of the block was, and why it is one.
func (b *Block) FirstDead() (position, reason string) {
	if len(b.dead) == 0 {
		return "", ""
	}
	return b.dead[0].position, b.dead[0].reason
}

// Counts say what became of events.
type Counts struct {
	Read     int       // events that the cursor passes
	Emitted  int       // records written of them
	Rows     int       // records of a scan, which are not of events
	Filtered int       // events left out by the settings
	Unknown  int       // of Filtered, events of an unknown type, which may change a blob
	Late     int       // records at or below a marker that was written before
	Dead     int       // records of the dead-letter topic
	Bytes    int       // keys, values and headers
	Last     time.Time // latest event time of the records
	Seen     time.Time // latest event time, also of events that are left out
}

// Add adds the counts of another block.
func (c *Counts) Add(o Counts) {
	c.Read += o.Read
	c.Emitted += o.Emitted
	c.Rows += o.Rows
	c.Filtered += o.Filtered
	c.Unknown += o.Unknown
	c.Late += o.Late
	c.Dead += o.Dead
	c.Bytes += o.Bytes
	if o.Last.After(c.Last) {
		c.Last = o.Last
	}
	if o.Seen.After(c.Seen) {
		c.Seen = o.Seen
	}
}

// Backlog is what a lease has listed in its segment and not delivered, in bytes by shard. The shards write it side by
// side.
type Backlog struct {
	mu     sync.Mutex
	bytes  map[int]int64
	listed map[int]int64
}

// Reset starts another segment, or another hold.
func (b *Backlog) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes, b.listed = map[int]int64{}, map[int]int64{}
}

// Set sets the bytes of a shard.
func (b *Backlog) Set(shard int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes[shard] = bytes
}

// List sets the bytes of a shard that are listed, those that are read included.
func (b *Backlog) List(shard int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed[shard] = bytes
}

// Total returns the bytes of all shards, and those that are listed.
func (b *Backlog) Total() (bytes, listed int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.bytes {
		bytes += n
	}
	for _, n := range b.listed {
		listed += n
	}
	return bytes, listed
}

// Span is a part of the work, from its first begin to its last end: a transaction can have hundreds of blocks.
type Span struct {
	Began, Ended time.Time
	Busy         time.Duration // spent in it; more than the time between where shards are side by side
}

// Add extends s by another part of the same work.
func (s *Span) Add(o Span) {
	if o.Began.IsZero() {
		return
	}
	if s.Began.IsZero() || o.Began.Before(s.Began) {
		s.Began = o.Began
	}
	if o.Ended.After(s.Ended) {
		s.Ended = o.Ended
	}
	s.Busy += o.Busy
}

// Between returns the step that took all of the time between two moments.
func Between(began, ended time.Time) Span {
	return Span{Began: began, Ended: ended, Busy: ended.Sub(began)}
}

// Topic is a topic as a lease writes to it during a segment.
type Topic struct {
	Name       string
	Encoder    *envelope.Encoder
	Partitions int32 // I5: the pinned number, not the broker's of this moment
	New        bool  // the frontier does not have all of it yet, so the cursor has to hold its pin
	Rejected   error // why it gets no records; its events are treated as if they were at fault
}

// deadLetter is something of the feed that could not become a record: a piece of a chunk, or of an event as JSON.
type deadLetter struct {
	position    string // segment/shard/chunk/offset/index; the index is 0 for a piece of a chunk
	content     string // "chunk" or "event"
	blob        string
	offset      int64 // of raw in the blob; for an event that of its block
	part, parts int   // from 1
	reason      string
	raw         []byte
}

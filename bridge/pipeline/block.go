package pipeline

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// Block is one block of a chunk, read and encoded. Blocks are reused: one is free again when the transaction that holds
// its records is committed, since the client keeps the records until then.
type Block struct {
	Shard             int
	Step              *inventory.Step // of a listing, in place of a shard
	Swept             bool            // deletions of a sweep; neither shard nor step
	Records           []kgo.Record
	New               []*Topic // of Records, those that the frontier does not have yet
	Gap               bool     // a chunk before it is gone
	Left              int64    // bytes of the shard's listing that come after it
	Held              int64    // of the instance's memory
	Counts            Counts
	Reading, Encoding Step

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

// takeEvents takes the array of events from b, whose records have copies of what they need. It returns no large one.
func (b *Block) takeEvents() (free []source.Event) {
	if cap(b.events.Events) <= maxKeptEvents {
		free = b.events.Events[:0]
	}
	b.events.Events, b.events.Memory = nil, 0
	return free
}

// Counts say what became of events.
type Counts struct {
	Read     int       // events that the cursor passes
	Emitted  int       // records written of them
	Rows     int       // records of a scan, which are not of events
	Filtered int       // events left out by the settings
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

// pool keeps free blocks. A sync.Pool would lose them at each garbage collection, and their buffers, which took many
// steps to grow, would grow again. All leases share it, so its size is bounded by what was in use at a time (I9). It is
// dropped when a worker has nothing to do.
type pool struct {
	mu   sync.Mutex
	free []*Block
	made int // since the start
}

// get returns a block for events of a shard.
func (p *pool) get(shard int) *Block {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		p.made++
		return &Block{Shard: shard}
	}
	b := p.free[n-1]
	p.free = p.free[:n-1]
	b.Shard, b.Step, b.Swept, b.Gap = shard, nil, false, false
	return b
}

// Reuse gives back blocks whose records are acknowledged, or that have none.
func (p *Pipeline) Reuse(blocks ...*Block) {
	p.memory.release(blocks...)
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	for _, b := range blocks {
		// I9: what is not used any more must not stay in memory. Several large blocks could make another one large.
		clear(b.Records)
		clear(b.headers)
		clear(b.env.Headers)
		b.env.Key, b.env.Value, b.buf, b.dead, b.New, b.Step = nil, nil, nil, nil, nil, nil
		if cap(b.whole) <= maxKeptBytes && cap(b.events.Events) <= maxKeptEvents {
			p.pool.free = append(p.pool.free, b)
		}
	}
}

// Abandon gives back the memory of blocks that were not committed. The garbage collector gets the blocks: a closed
// client may still hold their records.
func (p *Pipeline) Abandon(blocks ...*Block) { p.memory.release(blocks...) }

// DropBuffers empties the pool.
func (p *Pipeline) DropBuffers() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.pool.free = nil
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

// Step is a part of the work, from its first begin to its last end: a transaction can have hundreds of blocks.
type Step struct {
	Began, Ended time.Time
	Busy         time.Duration // spent in it; more than the time between where shards are side by side
}

// Add extends s by another part of the same work.
func (s *Step) Add(o Step) {
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
func Between(began, ended time.Time) Step {
	return Step{Began: began, Ended: ended, Busy: ended.Sub(began)}
}

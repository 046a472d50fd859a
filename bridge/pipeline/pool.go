package pipeline

import (
	"sync"

	"blobfeed/source"
)

// pool keeps free blocks. A sync.Pool would lose them at each garbage collection, and their buffers, which took many
// steps to grow, would grow again. All leases share it, so its size is bounded by what was in use at a time (I9). It is
// dropped when a worker has nothing to do.
type pool struct {
	mu     sync.Mutex
	free   []*Block
	events [][]source.Event // that hold nothing
	made   int              // since the start
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

// takeEvents returns an array for the events of a block; nil if none is free.
func (p *pool) takeEvents() (free []source.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.events); n > 0 {
		free, p.events = p.events[n-1], p.events[:n-1]
	}
	return free
}

// keepEvents takes an array whose events nobody needs any more.
func (p *pool) keepEvents(events []source.Event) {
	if cap(events) == 0 || cap(events) > maxKeptEvents {
		return
	}
	clear(events[:cap(events)]) // they hold the bytes that they were read from
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, events[:0])
}

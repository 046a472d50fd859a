package pipeline

import "blobfeed/source/inventory"

// Use returns whether memory of blocks is held, and how many blocks were made and are free.
func (p *Pipeline) Use() (held bool, made, free int) {
	p.memory.mu.Lock()
	held = p.memory.share.held > 0
	p.memory.mu.Unlock()
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return held, p.pool.made, len(p.pool.free)
}

// BlockBytes returns how many bytes the records of one block may take.
func (p *Pipeline) BlockBytes() int {
	if p.set.MemoryBytes == 0 {
		return maxBlockBytes
	}
	return max(minBlockBytes, min(p.set.MemoryBytes/8*3, maxBlockBytes))
}

// Reuse gives back blocks whose records nobody reads any more.
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

// DropBuffers empties the pool.
func (p *Pipeline) DropBuffers() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.pool.free, p.pool.events = nil, nil
}

// PageBlobs returns the maximum number of blobs on a page of a listing with a number of concurrent requests:
// their pages are in memory beside the blocks (I9). They may take half as much again, since each request costs money
// and a wait.
func (p *Pipeline) PageBlobs(requests int) int {
	if p.set.MemoryBytes == 0 {
		return inventory.MaxPage
	}
	return min(max(p.set.MemoryBytes/2*3/blobSize/max(1, requests), minPageBlobs), inventory.MaxPage)
}

package bridge

import "sync"

// backlog is what a lease has listed in its segment and not read, in bytes by shard. The shards write it side by side.
type backlog struct {
	mu sync.Mutex
	of map[int]int64
}

// reset begins another segment, or another hold.
func (b *backlog) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of = map[int]int64{}
}

func (b *backlog) set(shard int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of[shard] = bytes
}

func (b *backlog) total() (bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.of {
		bytes += n
	}
	return bytes
}

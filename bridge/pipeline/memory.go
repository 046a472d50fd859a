package pipeline

import (
	"context"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/source"
	"blobfeed/source/inventory"
)

// I9: every bound of the pipeline's memory is in this file. Type Budget says who gets it.
const (
	// prefetch is how many encoded blocks a shard may be ahead of the transaction.
	prefetch = 8
	// A block is encoded before it waits for memory, so its records have a bound of their own. Real ones take 300 KB.
	minBlockBytes, maxBlockBytes = 4 << 20, 64 << 20
	// A block that waits in the pool may be this large. Real ones have 120 events of 1 KB.
	maxKeptBytes, maxKeptEvents = 4 << 20, 2048
	// minPageBlobs keeps the number of requests reasonable.
	minPageBlobs = 200
	// recordSize is about what a record takes; a wrong guess costs a copy.
	recordSize = 1536
	// headersRoom is how many headers of a record a block has room for.
	headersRoom = 10
	// smallMemory is what the events of a small segment may take, beside four times the size of its chunks. Real ones
	// take two times that size.
	smallMemory = 256 << 10
	// minWindow is the smallest window of a reader: smaller reads cost more in requests than they save.
	minWindow = 64 << 10
	// minRequests and maxRequests are how many requests of a Lookahead there are at a time. With the most, storage
	// 60 ms away gives 150 segments a second; as many connections are kept.
	minRequests, maxRequests = 16, 64
)

// memory bounds the memory of the blocks that the leases of an instance hold together: read and encoded, and not
// acknowledged by the brokers. A reader waits for it before it sends a block. That wait ends: what is held is with the
// client, or on its way there, and the brokers acknowledge it, or its hold ends.
type memory struct {
	*Budget
	share *share // of this instance
}

func newMemory(b *Budget) *memory { return &memory{b, b.join()} }

// acquire waits for the memory of b. A block that is larger than the limit waits until nothing else is held.
func (m *memory) acquire(ctx context.Context, b *Block) (err error) {
	b.Memory, err = m.Budget.acquire(ctx, m.share, min(int64(b.footprint()), m.limit))
	return err
}

// reserve takes the memory that a segment of a bundle may need. Only the first one waits for it.
func (m *memory) reserve(ctx context.Context, size int64, first bool) (held int64, err error) {
	size = min(size, m.limit)
	if first {
		return m.Budget.acquire(ctx, m.share, size)
	}
	held, ok := m.Budget.try(m.share, size)
	if !ok {
		return 0, ErrFull
	}
	return held, nil
}

// guess is what a segment takes while it is read: the windows of its readers, and its events, which of real ones take
// two times the size of the chunks.
func (s *Small) guess() int64 { return segmentSize + 3*s.Size + int64(len(s.readers))*minWindow/2 }

// room is what the records of a segment take, as far as its events show: most have what a Block has room for.
func (s *Small) room() (size int64) {
	for i := range s.ahead {
		size += int64(len(s.ahead[i].events.Events)) * int64(recordSize+kafkaSize+headersRoom*headerSize)
	}
	return size
}

// window returns how many bytes of a chunk a shard may keep: all that read share half of what blocks may take.
func (m *memory) window() int64 { return max(minWindow, m.limit/2/max(1, m.readers.Load())) }

func (m *memory) release(blocks ...*Block) {
	for _, b := range blocks {
		m.Budget.release(m.share, b.Memory)
		b.Memory = 0
	}
}

// Sizes of what a block keeps arrays of.
const (
	eventSize  = int(unsafe.Sizeof(source.Event{}))
	kafkaSize  = int(unsafe.Sizeof(kgo.Record{}))
	headerSize = int(unsafe.Sizeof(kgo.RecordHeader{}))
	blockSize  = int(unsafe.Sizeof(Block{}))
	// A segment that is read ahead, without its events, takes some KiB: manifest, listings, and a few small objects.
	segmentSize = 4 << 10
	// A line of a listing, with the text that it is taken from.
	blobSize = int(unsafe.Sizeof(inventory.Blob{})) + 1024
)

// footprint is the memory that b takes until its records are acknowledged: not only its records, of which a filter may
// leave none, but all that was read and made room for.
func (b *Block) footprint() int {
	size := blockSize + readSize(&b.events) + max(cap(b.whole), b.Counts.Bytes) +
		cap(b.Records)*kafkaSize + cap(b.headers)*headerSize
	for i := range b.dead {
		size += len(b.dead[i].raw)
	}
	if b.Step != nil && b.Step.Listed != nil {
		size += len(b.Step.Listed.Blobs) * blobSize
	}
	return size
}

// readSize is the memory that a block takes before it is encoded: with room for more events than it has.
func readSize(read *source.Batch) int {
	return read.Memory + (cap(read.Events)-len(read.Events))*eventSize
}

// dropEvents takes from b what was read, of which its records have copies.
func (b *Block) dropEvents() { b.events.Events, b.events.Memory = nil, 0 }

// takeEvents takes the array of events from b, whose records have copies of what they need. It returns no large one.
func (b *Block) takeEvents() (free []source.Event) {
	if cap(b.events.Events) <= maxKeptEvents {
		free = b.events.Events[:0]
	}
	b.dropEvents()
	return free
}

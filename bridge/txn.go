package bridge

import (
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/offsets"
	"blobfeed/source"
)

// minTxnInterval keeps transactions from following each other so fast that the broker's wait for the markers of the
// one before (20 ms a broker) is all that happens.
const minTxnInterval = 100 * time.Millisecond

// txn is what the open transaction of a lease holds.
type txn struct {
	segment source.Segment
	began   time.Time // zero: nothing to commit
	blocks  []*pipeline.Block
	counts  pipeline.Counts
	held    int64 // of the instance's memory

	firstDead struct{ position, reason string }
	drained   bool
	published time.Time

	reading, encoding pipeline.Step
	segments, markers int // of a bundle
}

func (t *txn) start() {
	if t.began.IsZero() {
		t.began = time.Now()
	}
}

func (t *txn) include(b *pipeline.Block) {
	t.start()
	t.blocks = append(t.blocks, b)
	if t.counts.Dead == 0 {
		t.firstDead.position, t.firstDead.reason = b.FirstDead()
	}
	t.counts.Add(b.Counts)
	t.held += b.Held
	t.reading.Add(b.Reading)
	t.encoding.Add(b.Encoding)
}

// removeLast takes the block that was added last out of the transaction. Its counts stay.
func (t *txn) removeLast(b *pipeline.Block) {
	t.held -= b.Held
	t.blocks = t.blocks[:len(t.blocks)-1]
}

func (t *txn) summary(lease int32) Commit {
	c := &t.counts
	return Commit{
		Lease: lease, Segment: t.segment, Read: c.Read, Emitted: c.Emitted, Filtered: c.Filtered, Dead: c.Dead,
		Late: c.Late, Bytes: c.Bytes, Last: c.Seen, Drained: t.drained, Published: t.published,
		Took: time.Since(t.began),
	}
}

// countInto adds what is in the transaction to a cursor.
func (t *txn) countInto(c *offsets.Cursor) {
	c.Counts.Add(offsets.Counts{
		Read: int64(t.counts.Read), Emitted: int64(t.counts.Emitted), Filtered: int64(t.counts.Filtered),
		Late: int64(t.counts.Late), DeadLettered: int64(t.counts.Dead),
	})
	if t.counts.Last.After(c.Event) {
		c.Event = t.counts.Last.UTC()
	}
}

// full bounds a transaction by its bytes and its memory; the number of records only where enough time has passed.
func (t *txn) full(records, bytes int, memory int64) bool {
	return t.counts.Bytes >= bytes || t.held >= memory ||
		t.counts.Emitted >= records && time.Since(t.began) >= minTxnInterval
}

// reset starts the account of the next transaction. The array of blocks is kept, but not the blocks: a large
// transaction would hold its memory until there is a larger one.
func (t *txn) reset(seg source.Segment) {
	clear(t.blocks)
	*t = txn{segment: seg, blocks: t.blocks[:0]}
}

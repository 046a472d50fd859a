package pipeline

import "sync/atomic"

// Sent is a block whose records are with the client. The block can be used again when the brokers have acknowledged all
// of them, which is long before their transaction is committed: memory bounds what is on its way to the brokers, and
// not the size of a transaction (I9).
//
// Done and Abandon may run at the same time: a tenure that ends gives its blocks up while the brokers answer. The first
// of them frees the block. The second does nothing, because the block may already be in use again.
type Sent struct {
	p     *Pipeline
	block *Block
	left  atomic.Int64
	over  atomic.Bool
}

// Unsent returns how much memory the blocks of a lease may hold that the client sends only when it is flushed: those of
// all leases fit, and as much is on its way to them.
func (p *Pipeline) Unsent() int64 { return max(1, p.memory.limit/2/max(1, p.memory.passing.Load())) }

// Send returns the account of a block. Done must be called once for each of its records. The sender calls it once more
// after its last use of the block.
func (p *Pipeline) Send(b *Block) *Sent {
	s := &Sent{p: p, block: b}
	s.left.Store(int64(len(b.Records)) + 1)
	return s
}

// Done counts a record that is acknowledged, or the sender.
func (s *Sent) Done() {
	if s.left.Add(-1) == 0 {
		if b := s.take(); b != nil {
			s.p.Reuse(b)
		}
	}
}

// Abandon gives up the block, if its records are not acknowledged. The garbage collector gets it: a closed client may
// still hold the records.
func (s *Sent) Abandon() {
	if b := s.take(); b != nil {
		s.p.memory.release(b)
	}
}

// take returns the block to the first caller.
func (s *Sent) take() (b *Block) {
	if s.over.CompareAndSwap(false, true) {
		b, s.block = s.block, nil
	}
	return b
}

package pipeline

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"blobfeed/internal/pause"
)

// Budget is memory that one pipeline has for itself, or that several share (I9).
//
// Of what they share, one half is divided: each pipeline is sure of its part. The other half is for those who come
// first. So one pipeline whose transactions do not end, because a broker is away or the account is large, cannot stop
// the others. There is no deadlock: a pipeline that holds nothing gets its next block at once, whatever its size and
// whatever the others hold; and what a pipeline holds is free when the brokers have its records or its transaction is
// dropped, which does not depend on the others.
type Budget struct {
	limit   int64
	ahead   *Budget      // three quarters as much, for what is read before its turn
	passing atomic.Int64 // leases that read and write
	readers atomic.Int64 // shards that read
	// sweeping is taken while a sweep of one of the pipelines has keys in memory. They do not count for the limit:
	// a sweep gives them back only when rounds of its scan have passed, which need memory of this budget.
	sweeping pause.Turn

	mu      sync.Mutex
	shares  []*share
	beyond  int64    // what the shares hold beyond their parts
	waiting []*claim // in the order of their coming
	round   int      // number of the last grant
}

// share is what one pipeline holds of a budget. The budget's lock guards it.
type share struct {
	held  int64
	left  bool // its memory no longer counts
	stays int  // round in which an earlier claim of it stays waiting
}

// claim waits for memory.
type claim struct {
	share   *share
	size    int64
	granted chan int64 // capacity 1
}

// NewBudget returns a budget of bytes; 0 is no bound.
func NewBudget(bytes int) *Budget {
	limit := int64(bytes)
	if bytes == 0 {
		limit = math.MaxInt64
	}
	return &Budget{limit: limit, ahead: &Budget{limit: limit / 4 * 3}, sweeping: pause.NewTurn()}
}

// Sweep waits until no other sweep has keys in memory, for all pipelines that share the budget. The caller calls leave
// when it has none anymore.
func (p *Pipeline) Sweep(ctx context.Context) (leave func(), err error) {
	turn := p.memory.sweeping
	return turn.Leave, turn.Take(ctx)
}

// join returns a new share of the budget.
func (b *Budget) join() *share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &share{}
	b.shares = append(b.shares, s)
	b.recount()
	return s
}

// leave ends a share, whose pipeline has ended.
func (b *Budget) leave(s *share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.left = true // a client may acknowledge its last records later
	b.shares = slices.DeleteFunc(b.shares, func(other *share) bool { return other == s })
	b.recount()
	b.grant()
}

// recount follows a change of the number of shares, and so of their parts.
func (b *Budget) recount() {
	b.beyond = 0
	for _, s := range b.shares {
		b.beyond += b.over(s.held)
	}
}

// part is what each share is sure of. A single one needs no part.
func (b *Budget) part() int64 {
	if len(b.shares) < 2 {
		return 0
	}
	return b.limit / 2 / int64(len(b.shares))
}

// over returns how much of what a share holds is beyond its part.
func (b *Budget) over(held int64) int64 { return max(0, held-b.part()) }

// take gives a share more memory, if it may have it now: it holds nothing, the memory is within its part, or, with
// common, there is enough of what is for all. A block that is larger than all of that counts as less.
func (b *Budget) take(s *share, size int64, common bool) (held int64, ok bool) {
	part := b.part()
	free := max(0, b.limit-part*int64(len(b.shares))-b.beyond)
	if s.held == 0 {
		size = min(size, part+free)
	}
	more := b.over(s.held+size) - b.over(s.held)
	if s.held > 0 && more > 0 && (!common || more > free) {
		return 0, false
	}
	s.held += size
	b.beyond += more
	return size, true
}

// acquire waits for memory, which is at most the limit, and returns how much of it is held.
func (b *Budget) acquire(ctx context.Context, s *share, size int64) (held int64, err error) {
	b.mu.Lock()
	if len(b.waiting) == 0 {
		if held, ok := b.take(s, size, true); ok {
			b.mu.Unlock()
			return held, nil
		}
	}
	c := &claim{s, size, make(chan int64, 1)}
	b.waiting = append(b.waiting, c)
	b.grant()
	b.mu.Unlock()
	select {
	case held = <-c.granted:
		return held, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case held = <-c.granted: // at the same time
		b.giveBack(s, held)
	default:
		b.waiting = slices.DeleteFunc(b.waiting, func(other *claim) bool { return other == c })
	}
	b.grant()
	return 0, context.Cause(ctx)
}

// try takes memory, if a share may have it now.
func (b *Budget) try(s *share, size int64) (held int64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.held > 0 && len(b.waiting) > 0 {
		return 0, false
	}
	return b.take(s, size, true)
}

// resize corrects what was acquired to what it is, which may be more than there is.
func (b *Budget) resize(s *share, held, is int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.giveBack(s, held-is)
	b.grant()
}

// release gives memory back.
func (b *Budget) release(s *share, held int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.giveBack(s, held)
	b.grant()
}

func (b *Budget) giveBack(s *share, held int64) {
	if !s.left {
		b.beyond -= b.over(s.held) - b.over(s.held-held)
	}
	s.held -= held
}

// grant gives memory to those that wait. Nobody overtakes an earlier claim of the same share, nor, for what is for all,
// an earlier one of any: else small blocks would keep a large one waiting.
func (b *Budget) grant() {
	b.round++
	common := true
	b.waiting = slices.DeleteFunc(b.waiting, func(c *claim) bool {
		if c.share.stays != b.round {
			if held, ok := b.take(c.share, c.size, common); ok {
				c.granted <- held
				return true
			}
		}
		c.share.stays, common = b.round, false
		return false
	})
}

package pause

import (
	"context"
	"sync"
)

// Gate limits requests. It halves the limit when the service is overloaded, and raises it by one after many good
// answers. It is safe for concurrent use.
type Gate struct {
	tokens chan struct{}

	mu    sync.Mutex
	limit int // at least 1
	debt  int // tokens to withdraw
	good  int // answers since the limit changed
	cuts  int // how often the limit was halved
	waits bool
}

// raiseAfter is how many good answers for each request at a time raise the limit by one.
const raiseAfter = 8

// NewGate returns a gate for a number of requests, which may become most.
func NewGate(limit, most int) *Gate {
	g := &Gate{tokens: make(chan struct{}, most), limit: limit}
	for range limit {
		g.tokens <- struct{}{}
	}
	return g
}

// Waits says whether somebody has to wait for answers. Meanwhile each good answer raises the limit, so that it follows
// the distance of the service, until that is overloaded for the first time.
func (g *Gate) Waits(waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waits = waits
}

// Enter waits for a token.
func (g *Gate) Enter(ctx context.Context) (turn int, err error) {
	select {
	case <-g.tokens:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cuts, nil
}

// Leave returns the token. Of the requests that were under way together, only the first busy one halves the limit.
func (g *Gate) Leave(turn int, busy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case busy && turn == g.cuts:
		less := max(1, g.limit/2)
		g.debt += g.limit - less
		g.limit, g.good = less, 0
		g.cuts++
	case !busy && g.limit < cap(g.tokens):
		if g.good++; g.good >= raiseAfter*g.limit || g.waits && g.cuts == 0 {
			g.limit, g.good = g.limit+1, 0
			g.debt--
		}
	}
	if g.debt > 0 {
		g.debt--
		return
	}
	for ; g.debt < 0; g.debt++ {
		g.tokens <- struct{}{}
	}
	g.tokens <- struct{}{}
}

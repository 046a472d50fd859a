package inventory

import (
	"context"
	"sync"
)

// gate limits the requests at a time. It halves the limit when the service is overloaded, and raises it by one after
// many good answers.
type gate struct {
	tokens chan struct{}

	mu    sync.Mutex
	limit int // at least 1
	debt  int // tokens to withdraw
	good  int // answers since the limit changed
	cuts  int // how often the limit was halved
}

// raiseAfter is how many good answers for each request at a time raise the limit by one.
const raiseAfter = 8

func newGate(limit int) *gate {
	g := &gate{tokens: make(chan struct{}, limit), limit: limit}
	for range limit {
		g.tokens <- struct{}{}
	}
	return g
}

// enter waits for a token.
func (g *gate) enter(ctx context.Context) (turn int, err error) {
	select {
	case <-g.tokens:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cuts, nil
}

// leave returns the token. Of the requests that were under way together, only the first busy one halves the limit.
func (g *gate) leave(turn int, busy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case busy && turn == g.cuts:
		less := max(1, g.limit/2)
		g.debt += g.limit - less
		g.limit, g.good = less, 0
		g.cuts++
	case !busy && g.limit < cap(g.tokens):
		if g.good++; g.good >= raiseAfter*g.limit {
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

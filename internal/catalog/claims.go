package catalog

import (
	"context"
	"slices"
	"time"

	"blobfeed/internal/pause"
	"blobfeed/offsets"
)

// Claims are the claims of all bridges on the brokers, as the bridges of a process read them. A read takes time for
// each bridge there is. So one read serves all that wait for it: else the first starts of n bridges that share a topic
// would read n² states.
type Claims struct {
	// Guarded by turn, which is taken while claims are read.
	turn   pause.Turn
	began  time.Time // of the last read
	all    []offsets.Claim
	hidden []error
	err    error
}

// NewClaims returns claims that are not read yet.
func NewClaims() *Claims { return &Claims{turn: pause.NewTurn()} }

// of returns what offsets.Claims does for the bridge of a name, by a read that began after this call: a claim that was
// committed before is in it.
func (c *Claims) of(
	ctx context.Context, name string, read func(context.Context) ([]offsets.Claim, []error, error),
) (claims []offsets.Claim, hidden []error, err error) {
	asked := time.Now()
	if err := c.turn.Take(ctx); err != nil {
		return nil, nil, err
	}
	defer c.turn.Leave()
	if !c.began.After(asked) {
		began := time.Now()
		all, hidden, err := read(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, nil, err // the caller's end is not the others'
		}
		c.began, c.all, c.hidden, c.err = began, all, hidden, err
	}
	others := func(claim offsets.Claim) bool { return claim.Name == name }
	return slices.DeleteFunc(slices.Clone(c.all), others), c.hidden, c.err
}

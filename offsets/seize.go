package offsets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Seized is lease 0 of a bridge, taken to move the frontier outside the barrier: a seek or a reset.
//
// A move has two phases (R2f). The first is here and is one record, the intent: a frontier of the next epoch
// that names no segment and says Moving. A cursor of an earlier epoch has no position, for every reader. The
// second phase is for the owner of lease 0, now or at the next start: it fences every other lease, and only
// then writes a frontier that does not move, from which segments are named again.
//
// The order matters. A fence before the intent would not hold: the owner takes its lease back under the old
// frontier, and commits an event behind the first record of the new place. After the intent every acquisition
// sees it (I10).
//
//	crash after      the next start
//	the fence        continues where it was
//	the intent       fences the others, and continues at the new place, or is a first start after a reset
type Seized struct {
	State *State // its frontier is the last one, since lease 0 is fenced

	view  *View
	lease *Lease
	end   func() error       // of the view
	after func(string) error // for tests: fails where a crash is to be tried
}

// Seize takes lease 0, which fences its owner (I3). The caller closes what it returns.
func Seize(ctx context.Context, cfg *Config, partitions int) (*Seized, error) {
	viewing, cancel := context.WithCancel(context.WithoutCancel(ctx)) // until Close
	s := &Seized{view: NewView(cfg.Topic, partitions), after: func(string) error { return nil }}
	ended := make(chan error, 1)
	go func() { ended <- s.view.Run(viewing, cfg.Client...) }()
	s.end = func() error { cancel(); return <-ended }
	var err error
	s.lease, err = Acquire(ctx, cfg, s.view, 0)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		// Brokers left out the end of the owner record (torn.go). Until another one ends it, no view passes it, and the
		// owner of lease 0 may have nothing to write.
		s.lease, err = Acquire(ctx, cfg, s.view, 0)
	}
	if err == nil {
		s.State, _, err = s.view.Get()
	}
	if err != nil {
		s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// Close gives the lease back.
func (s *Seized) Close(ctx context.Context) {
	if s.lease != nil {
		s.lease.Close(ctx)
	}
	_ = s.end() // a failed view has failed the call that needed it
}

// Seek moves the frontier, and voids the positions of all cursors.
func (s *Seized) Seek(ctx context.Context, move func(*Frontier)) error {
	f := *s.State.Frontier
	move(&f)
	f.Shards, f.Ends = nil, time.Time{} // of another place
	return s.intend(ctx, &f)
}

// Reset takes the frontier away. Positions and counts of all cursors are void. What remains are the topics, where brokers
// may have left transactions open: see State.Torn.
func (s *Seized) Reset(ctx context.Context) error {
	return s.intend(ctx, &Frontier{Reset: true, Seen: slices.Clone(s.State.next), Topics: s.State.topics})
}

// intend commits the frontier that decides.
func (s *Seized) intend(ctx context.Context, f *Frontier) error {
	if err := s.after("fence"); err != nil {
		return err
	}
	f.Epoch, f.Moving = s.State.Epoch+1, true
	if err := s.lease.Commit(ctx, nil, f); err != nil {
		return fmt.Errorf("writing the frontier: %w", err)
	}
	return s.after("intent")
}

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
//
// Without transactions an instance can take lease 0 back before the intent. Then the intent does not count, and Seek
// and Reset return ErrFenced.
type Seized struct {
	State *State // its frontier is the last one, since lease 0 is fenced

	cfg   *Config
	view  *View
	lease *Lease             // nil if it could not be acquired
	end   func() error       // of the view
	after func(string) error // for tests: fails where a crash is to be tried
}

// Seize takes lease 0, which fences its owner (I3). The caller closes what it returns.
func Seize(ctx context.Context, cfg *Config, partitions int) (*Seized, error) {
	viewing, cancel := context.WithCancel(context.WithoutCancel(ctx)) // until Close
	s := &Seized{cfg: cfg, view: NewView(cfg.Topic, partitions), after: func(string) error { return nil }}
	ended := make(chan error, 1)
	go func() { ended <- s.view.Run(viewing, cfg.Client...) }()
	s.end = func() error { cancel(); return <-ended }
	err := s.acquire(ctx)
	if err == nil {
		s.State, _, err = s.view.Get()
	}
	if err != nil {
		s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// acquire tries again if brokers leave out the end of the owner record (torn.go). Until another one ends it, no view
// passes it, and the owner of lease 0 may have nothing to write.
func (s *Seized) acquire(ctx context.Context) (err error) {
	s.lease, err = Acquire(ctx, s.cfg, s.view, 0)
	if unread(ctx, err) {
		s.lease, err = Acquire(ctx, s.cfg, s.view, 0)
	}
	return err
}

// unread reports whether err says that a commit could not be read back.
func unread(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

// Close gives the lease back.
func (s *Seized) Close(ctx context.Context) {
	if s.lease != nil {
		s.lease.Close(ctx)
	}
	_ = s.end() // a failed view has failed the call that needed it
}

// Seek moves the frontier, and voids the positions of all cursors. If there is none, it says where the first one is to
// be.
func (s *Seized) Seek(ctx context.Context, move func(*Frontier)) error {
	f := s.noFrontier()
	if s.State.Frontier != nil {
		f = *s.State.Frontier
	}
	move(&f)
	f.Shards, f.Ends, f.OpenSince = nil, time.Time{}, time.Time{} // of another place
	return s.intend(ctx, &f)
}

// Reset takes the frontier away. Positions and counts of all cursors are void. What remains are the topics,
// where brokers may have left transactions open: see State.Torn.
func (s *Seized) Reset(ctx context.Context) error {
	f := s.noFrontier()
	return s.intend(ctx, &f)
}

func (s *Seized) noFrontier() Frontier {
	return Frontier{Reset: true, Seen: slices.Clone(s.State.next), Topics: s.State.topics}
}

// intend commits the frontier that decides.
func (s *Seized) intend(ctx context.Context, f *Frontier) error {
	if err := s.after("fence"); err != nil {
		return err
	}
	f.Epoch, f.Moving = s.State.Epoch+1, true
	if last := s.State.Frontier; last != nil && !s.cfg.Transactional {
		f.Base = last.Completed // a verb writes no records: little has to come again if its intent is stale
	}
	err := s.lease.Commit(ctx, nil, f)
	switch {
	case unread(ctx, err):
		err = s.endIntent(ctx)
	case errors.Is(err, ErrFenced):
		err = s.overtaken(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("writing the frontier: %w", err)
	}
	return s.after("intent")
}

// endIntent ends an intent that brokers have left without an end, for the reason of acquire. It returns nil if the
// intent counts: it was only late.
func (s *Seized) endIntent(ctx context.Context) error {
	term := s.lease.Term()
	s.lease.Close(ctx)
	if err := s.acquire(ctx); err != nil {
		return err
	}
	if s.lease.State().mover != term {
		return errors.New("the brokers did not complete the commit that they acknowledged: run the command again")
	}
	return nil
}

// overtaken returns nil if an intent counts although an instance has taken the lease back, else fenced. The instance
// may have done so before the commit or, while this was reading it back, after it. A fenced producer commits nothing
// later. The epoch does not tell: the instance, or another verb, may have begun a move of its own from the same one.
func (s *Seized) overtaken(ctx context.Context, fenced error) error {
	now, err := s.view.Known(ctx, s.cfg, s.lease.cl, 0)
	switch {
	case err != nil:
		return fmt.Errorf("looking whether the frontier was written: %w", err)
	case now.mover != s.lease.Term():
		return fenced
	}
	return nil
}

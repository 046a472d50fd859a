package offsets

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Seized are all leases of a bridge, taken to change where it goes on.
//
// Both changes are decided by one record, the frontier: it begins a new epoch, and a cursor of an earlier epoch has no
// position, whoever reads it. So there is no moment in which some leases stand at the new place and others at the old one.
// What is written before that is the fences, what is written after it only tidies up:
//
//	crash after                  the next start
//	some or all fences           goes on where it was
//	the frontier                 goes on at the new place, or is a first start after a reset
//	some of the cursors          the same: those that are left are void
//
// The cursors are written nevertheless. A former owner that wakes up late may take its lease back before its view has the
// new frontier; a cursor of the new epoch tells it to wait for that (Cursor.Beyond).
type Seized struct {
	State *State // after the fences: nobody else changes it

	view   *View
	leases []*Lease
	end    func() error       // of the view
	after  func(string) error // for tests: fails where a crash is to be tried
}

// Seize takes every lease of the topic, which fences the owners (I3), from the last to lease 0: whoever holds that one goes on
// moving the frontier until then.
func Seize(ctx context.Context, cfg *Config, partitions int) (*Seized, error) {
	viewing, cancel := context.WithCancel(ctx)
	s := &Seized{view: NewView(cfg.Topic, partitions), after: func(string) error { return nil }}
	ended := make(chan error, 1)
	go func() { ended <- s.view.Run(viewing, cfg.Client...) }()
	s.end = func() error { cancel(); return <-ended }
	s.leases = make([]*Lease, partitions)
	for p := range slices.Backward(s.leases) {
		l, err := Acquire(ctx, cfg, s.view, int32(p))
		if err != nil {
			s.Close(ctx)
			return nil, err
		}
		s.leases[p] = l
	}
	var err error
	if s.State, _, err = s.view.Get(); err != nil {
		s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// Close gives the leases back.
func (s *Seized) Close(ctx context.Context) {
	for _, l := range s.leases {
		if l != nil {
			l.Close(ctx)
		}
	}
	_ = s.end() // whoever needed the view has its error
}

// Seek moves the frontier and takes the positions of all cursors away.
func (s *Seized) Seek(ctx context.Context, move func(*Frontier)) error {
	f := *s.State.Frontier
	for _, c := range s.State.Cursors {
		if c != nil {
			f.Adopt(c.Pins) // I5, I6: what they know of topics must not go with them
		}
	}
	move(&f)
	f.Epoch = s.State.Epoch + 1
	if err := s.begin(ctx, &f); err != nil {
		return err
	}
	for p, l := range slices.Backward(s.leases) {
		if s.State.Cursors[p] == nil {
			continue
		}
		if err := s.tidied(p, l.Commit(ctx, s.State.Cursor(int32(p)).void(f.Epoch), nil)); err != nil {
			return err
		}
	}
	return nil
}

// Reset removes the state of all leases. The frontier goes last, for it voids the cursors.
func (s *Seized) Reset(ctx context.Context) error {
	if err := s.begin(ctx, &Frontier{Epoch: s.State.Epoch + 1, Reset: true}); err != nil {
		return err
	}
	for p, l := range slices.Backward(s.leases) {
		keys := []string{keyCursor, keyOwner}
		if p == 0 {
			keys = append(keys, keyFrontier)
		}
		var docs []*kgo.Record
		for _, key := range keys {
			docs = append(docs, &kgo.Record{Topic: l.cfg.Topic, Partition: l.Partition, Key: []byte(key)})
		}
		if err := s.tidied(p, classify(l.end(ctx, "reset", docs...))); err != nil {
			return err
		}
	}
	return nil
}

// begin commits the frontier that decides.
func (s *Seized) begin(ctx context.Context, f *Frontier) error {
	if err := s.after("fences"); err != nil {
		return err
	}
	if err := s.leases[0].Commit(ctx, nil, f); err != nil {
		return fmt.Errorf("writing the frontier: %w", err)
	}
	return s.after("frontier")
}

func (s *Seized) tidied(p int, err error) error {
	if err != nil {
		return fmt.Errorf("tidying lease %d up, after the change was made: %w", p, err)
	}
	return s.after(fmt.Sprint("cursor ", p))
}

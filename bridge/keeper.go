package bridge

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/resolved"
	"blobfeed/source"
)

// keeper looks after the frontier, while a hold has lease 0. It belongs to the worker's goroutine.
type keeper struct {
	h         *hold
	basis     *basis
	w         *writer
	lookahead *pipeline.Lookahead // nil: nothing is read ahead
	counting  bool                // the speed of a catch-up is measured from an earlier frontier of this hold
}

// recount reads the partitions of the topics of f, and of those that leases found since it was written (I6: none misses
// its marker), and puts them into f. Between two segments nothing is in flight, so they may change here (I5). S is nil
// at a first start.
func (k *keeper) recount(f *offsets.Frontier, s *offsets.State) error {
	if s != nil {
		k.adopt(f, s)
	}
	if k.h.opts.marks() && k.barred(f) {
		return nil // I5: no marker stands between the rows of the scan and the events after them yet
	}
	had := maps.Clone(f.Topics)
	if len(had) == 0 {
		had = map[string]int32{}
		for _, topic := range k.h.opts.constant() {
			had[topic] = 0
		}
	}
	return k.h.retryOpen(k.h.work, func(ctx context.Context) error {
		counts, err := k.h.shared.topics.Recount(ctx, had)
		if err == nil {
			f.Topics = counts
		}
		return err
	})
}

// adopt takes over the topics that leases have found (I5, I6): their cursors forget them in the next segment.
func (k *keeper) adopt(f *offsets.Frontier, s *offsets.State) {
	for _, c := range s.Cursors {
		if c != nil {
			f.Adopt(c.Pins)
		}
	}
}

// promise puts into f that the segment of m is complete, and writes the markers that say so, which commitPromise
// commits. Final, if not zero, is what the last of all says.
func (k *keeper) promise(f *offsets.Frontier, m source.Manifest, final envelope.Timestamp) (Completion, error) {
	f.Completed, f.Ends, f.Seek = m.Segment, m.Begin.Add(m.Interval), nil
	done := Completion{Segment: m.Segment}
	at := resolved.After(m, k.h.opts.ResolvedSlack, k.basis.promised)
	if final.Compare(k.basis.promised) > 0 {
		at = final
	}
	if !k.h.opts.marks() || resolved.Barred(at, f.Scan, k.h.opts.ResolvedSlack) { // I6: no marker before the scan ended
		return done, nil
	}
	done.Resolved, done.Markers = at, resolved.Count(f.Topics)
	return done, k.resolve(f, at)
}

// resolve puts the time of a marker into f, and writes the marker. Without transactions, commitPromise writes it.
func (k *keeper) resolve(f *offsets.Frontier, at envelope.Timestamp) error {
	f.Resolved = at.String()
	if !k.h.opts.Transactional {
		return nil
	}
	return k.mark(f, at)
}

// barred reports whether f has an initial scan, and no marker behind it.
func (k *keeper) barred(f *offsets.Frontier) bool {
	at, err := parseTime(f.Resolved)
	return err == nil && resolved.Barred(at, f.Scan, k.h.opts.ResolvedSlack)
}

// commitPromise commits f, and the cursor if there is one, with the markers of its promise. Name adds to f what readers
// may see only after the markers.
//
// Without transactions the order of writes keeps I6. The records are flushed and checked before the frontier is
// written, so no first delivery comes below a marker. The frontier is written before its markers. So a crash between
// them leaves markers that the next owner writes, never a marker that no frontier knows, and markers never fall. The
// next segment is named after the markers, so a key moves to another partition only across a marker (I5).
func (k *keeper) commitPromise(c *offsets.Cursor, f *offsets.Frontier, name func() error) error {
	h := k.h
	if h.opts.Transactional {
		if err := name(); err != nil {
			return err
		}
		return h.lease.Commit(h.held, c, f)
	}
	f.Base, f.Owed = k.basis.frontier.Completed, h.opts.marks() && !k.barred(f)
	if c != nil {
		c.Resolved = f.Resolved
	}
	if err := h.lease.Commit(h.held, c, f); err != nil {
		return err
	}
	s, _, err := h.shared.view.Get() // which has read that frontier
	if err == nil {
		err = h.endedBy(s)
	}
	if err != nil {
		return err
	}
	return k.pay(f, name)
}

// pay writes the markers that f owes, and then f without the debt.
func (k *keeper) pay(f *offsets.Frontier, name func() error) error {
	if f.Owed {
		ts, err := parseTime(f.Resolved)
		if err != nil {
			return err
		}
		if err := k.mark(f, ts); err != nil {
			return err
		}
		f.Owed = false
	}
	if err := name(); err != nil {
		return err
	}
	return k.h.lease.Commit(k.h.held, nil, f) // flushes the markers first
}

// nothing is for commitPromise and pay where no segment is to be named.
func nothing() error { return nil }

// mark writes a marker to each partition of each topic of f, with the gap and the seek that it announces.
func (k *keeper) mark(f *offsets.Frontier, at envelope.Timestamp) error {
	opts := k.h.opts
	marker := resolved.Marker{At: at, Seek: f.Seek, Gap: f.Gap, Extra: k.basis.epochHeader}
	if opts.Shared {
		marker.Feed = opts.FeedID
	}
	if f.Scan != nil && f.Scan.Only {
		marker.Scan = f.Scan.ID
	}
	if opts.Markers == envelope.MarkersTopic {
		// I6: the barrier is behind us, so every record of the segment is written and below the end of its partition:
		// by others and committed, or, in a bundle, by this transaction. Not below the last stable offset: the ends of
		// transactions are written some moments after the commit was acknowledged.
		//
		// A failed flush is final, as after any failed record only another producer can continue.
		if err := k.h.lease.Flush(k.h.held); err != nil {
			return err
		}
	}
	encoders := map[string]*envelope.Encoder{}
	err := k.h.retryOpen(k.h.work, func(ctx context.Context) (err error) {
		for topic := range f.Topics {
			if encoders[topic], err = k.h.shared.encoders.get(ctx, topic); err != nil {
				return err
			}
		}
		if opts.Markers == envelope.MarkersTopic {
			marker.End, err = endOffsets(ctx, k.h.shared.client, slices.Collect(maps.Keys(f.Topics)))
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range marker.Records(f.Topics, encoders) {
		if err := k.h.lease.Produce(k.h.held, r); err != nil {
			return err
		}
	}
	f.Gap = nil
	return nil
}

// endOffsets reads where the partitions of topics end.
func endOffsets(
	ctx context.Context, cl *kgo.Client, names []string,
) (func(topic string, partition int32) int64, error) {
	var ends kadm.ListedOffsets
	if len(names) > 0 { // else the request is for all
		var err error
		if ends, err = topics.Offsets(ctx, kadm.NewClient(cl).ListEndOffsets, names...); err != nil {
			return nil, fmt.Errorf("reading the ends of the topics: %w", err)
		}
	}
	return func(topic string, partition int32) int64 {
		end, _ := ends.Lookup(topic, partition)
		return end.Offset
	}, nil
}

package bridge

import (
	"context"
	"errors"

	"blobfeed/offsets"
	"blobfeed/source"
)

// doubt returns gap if an earlier hold found it, too. Else it ends the hold, so that the next one looks behind its own
// fence.
func (h *hold) doubt(gap *GapError) error {
	place := gap.At.String() + " " + gap.Chunk
	if h.findings.doubted != place {
		h.findings.doubted = place
		return errDoubt
	}
	return gap
}

func (h *hold) reportLoss(gap *GapError) {
	hint := "bridge scan --sweep repairs the topics; BRIDGE_ON_GAP=rescan does so by itself"
	if h.opts.Inventory == nil { // there is no account to list
		hint = "if there is a copy of what is missing, add it to the feed, and go back to it with bridge seek"
	}
	h.opts.Log.Warn("history is lost; continuing with what is left", "lease", h.p, "lost", gap.At, "oldest", gap.Oldest,
		"hint", hint)
	recorded := *gap
	recorded.Recorded = true
	h.opts.Observer.Failed(h.p, &recorded)
}

// recordGap puts lost history into f, for the next marker.
func recordGap(f *offsets.Frontier, from, to source.Segment) {
	gap := offsets.Gap{From: from, To: to}
	if f.Gap != nil {
		gap.From = f.Gap.From
	} else {
		f.Gaps++
	}
	f.Gap = &gap // the one before may be of a state that others read
}

// lostSince looks, between two segments, whether the last complete one is gone by now: then those between it and the
// oldest there is may be gone, too, unread. With ON_GAP=continue it records that in f.
func (k *keeper) lostSince(f *offsets.Frontier) error {
	if f.Scan != nil && f.Scan.Begin != (source.Segment{}) && f.Completed == source.Before(f.Scan.Begin) {
		return k.lostWhileScanning(f)
	}
	err := k.h.retryOpen(k.h.work, func(ctx context.Context) error {
		return k.h.shared.history.lostBehind(ctx, f, k.basis.filter.From)
	})
	var gap *GapError
	if !errors.As(err, &gap) {
		return err
	}
	return k.lose(f, gap)
}

// lose records lost history in f, if the settings allow it.
func (k *keeper) lose(f *offsets.Frontier, gap *GapError) error {
	if !k.h.opts.SkipGaps {
		return k.h.doubt(gap)
	}
	k.h.reportLoss(gap)
	recordGap(f, gap.At, gap.Oldest)
	k.repair(f)
	return nil
}

// lostWhileScanning is lostSince before the first segment behind an initial scan: retention may have reached it.
func (k *keeper) lostWhileScanning(f *offsets.Frontier) error {
	oldest, ok, err := k.h.nextSegment(source.Segment{})
	if err != nil || !ok || oldest.Compare(f.Scan.Begin) <= 0 || f.Gap != nil && f.Gap.To == oldest {
		return err
	}
	return k.lose(f, &GapError{At: f.Scan.Begin, Oldest: oldest})
}

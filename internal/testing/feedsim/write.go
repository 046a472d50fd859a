package feedsim

import "context"

// Write writes the feed of spec and calls emit, unless it is nil, for every event, in an order in which each blob's
// events are right. Memory does not grow with the number of events.
func Write(ctx context.Context, sink Sink, spec Spec, emit func(Expected)) error {
	f, err := New(sink, spec)
	if err != nil {
		return err
	}
	return f.WriteAll(ctx, emit)
}

// WriteAll writes the feed of the spec, as Write does. Summary tells afterwards what it was.
func (f *Feed) WriteAll(ctx context.Context, emit func(Expected)) error {
	for i := range f.spec.Segments {
		if i == 0 {
			if err := f.Open(ctx); err != nil {
				return err
			}
		} else if err := f.Next(ctx); err != nil {
			return err
		}
		if err := f.fillSegment(ctx, emit); err != nil {
			return err
		}
	}
	if f.spec.LeaveOpen {
		return nil
	}
	return f.Finalize(ctx)
}

// fillSegment writes all events of the open segment.
func (f *Feed) fillSegment(ctx context.Context, emit func(Expected)) error {
	if len(f.current.shards) == 0 {
		return nil
	}
	chunks := f.spec.ChunksPerShard
	for c := range chunks {
		if c > 0 {
			f.Roll()
		}
		n := f.spec.EventsPerSegment / chunks
		if c == 0 {
			n += f.spec.EventsPerSegment % chunks
		}
		if err := f.Append(ctx, n, emit); err != nil {
			return err
		}
	}
	return nil
}

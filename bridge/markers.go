package bridge

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/topicname"
	"blobfeed/offsets"
	"blobfeed/resolved"
)

// mark writes a marker to each partition of each topic of f, with the gap that is to be told.
func (w *worker) mark(f *offsets.Frontier, ts envelope.Timestamp) (markers int, _ error) {
	records, err := w.markers(f, ts)
	if err != nil {
		return 0, err
	}
	for _, r := range records {
		if err := w.lease.Produce(w.held, r); err != nil {
			return 0, err
		}
	}
	f.Gap = nil
	return len(records), nil
}

// markers returns the records of mark. With RESOLVED_TO=topic they tell where the records end that they speak of.
func (w *worker) markers(f *offsets.Frontier, ts envelope.Timestamp) ([]*kgo.Record, error) {
	encs := map[string]*envelope.Encoder{}
	var ends kadm.ListedOffsets
	if w.Markers == envelope.MarkersTopic {
		// I6: the barrier is behind us, so every record of the segment is written and below the end of its partition: by
		// others and committed, or, in a bundle, by this transaction. Not below the last stable offset: the ends of
		// transactions are written some moments after the commit was acknowledged.
		//
		// A failed flush is final, as after any failed record only another producer can go on.
		if err := w.lease.Flush(w.held); err != nil {
			return nil, err
		}
	}
	err := w.retry(w.work, w.p, func(ctx context.Context) (err error) {
		for topic := range f.Topics {
			if encs[topic], err = w.encoders.get(ctx, topic); err != nil {
				return err
			}
		}
		if w.Markers != envelope.MarkersTopic || len(f.Topics) == 0 {
			return nil
		}
		if ends, err = w.admin.ListEndOffsets(ctx, slices.Collect(maps.Keys(f.Topics))...); err == nil {
			err = ends.Error()
		}
		if err != nil {
			return fmt.Errorf("reading the ends of the topics: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	records := resolved.Markers(f.Topics, func(topic string, partition int32) envelope.Record {
		r := encs[topic].Resolved(ts)
		if w.Markers == envelope.MarkersTopic {
			end, _ := ends.Lookup(topic, partition)
			r = encs[topic].ResolvedUpTo(ts, partition, end.Offset)
		}
		if w.Shared { // the other bridges' markers promise nothing about this feed
			r.Headers = append(r.Headers, envelope.Header{Key: "feed", Value: []byte(w.FeedID)})
		}
		if f.Seek != nil && !f.Seek.Told {
			r.Headers = append(r.Headers, envelope.Header{Key: "seek", Value: []byte(cmp.Or(f.Seek.From.String(), "-") + " " + f.Seek.To)})
		}
		if f.Gap != nil {
			r.Headers = append(r.Headers, envelope.Header{Key: "gap", Value: []byte(f.Gap.From.String() + " " + f.Gap.To.String())})
		}
		return r
	})
	for _, r := range records {
		r.Headers = append(r.Headers, w.epochHeader...)
		if w.Markers == envelope.MarkersTopic {
			r.Topic = topicname.Markers(r.Topic)
		}
	}
	return records, nil
}

package offsets

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/topics"
)

// ReadTo returns what the topic says up to the given end offsets, one for each partition: for those who look on and
// hold no lease.
func ReadTo(ctx context.Context, topic string, ends []int64, opts ...kgo.Opt) (*State, error) {
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("creating the reader of %s: %w", topic, err)
	}
	defer cl.Close()
	starts, err := topics.Offsets(ctx, kadm.NewClient(cl).ListStartOffsets, topic)
	if err != nil {
		return nil, fmt.Errorf("reading the starts of %s: %w", topic, err)
	}
	begin := map[int32]int64{}
	for p, end := range ends {
		if start, _ := starts.Lookup(topic, int32(p)); start.Offset < end { // else all is deleted: no record will come
			begin[int32(p)] = start.Offset
		}
	}
	return readFrom(ctx, topic, begin, ends, 0, opts...)
}

// documentError is a document that this version can't read.
type documentError struct{ error }

func (e *documentError) Unwrap() error { return e.error }

// readFrom is ReadTo for some partitions, each from an offset. With an error from the brokers it returns what it has
// read. Patience is that of topics.Reading.
func readFrom(
	ctx context.Context, topic string, begin map[int32]int64, ends []int64, patience time.Duration, opts ...kgo.Opt,
) (*State, error) {
	v := NewView(topic, len(ends))
	reading := topics.Reading{Client: opts, Topic: topic, From: begin, To: map[int32]int64{}, Control: true,
		Patience: patience}
	for p := range begin {
		reading.To[p] = ends[p]
	}
	var unreadable error
	err := reading.Each(ctx, func(r *kgo.Record) (more bool) {
		if unreadable == nil {
			unreadable = v.apply(r)
		}
		return unreadable == nil
	})
	s, _, _ := v.Get()
	if unreadable != nil {
		err = &documentError{unreadable}
	}
	return s, err
}

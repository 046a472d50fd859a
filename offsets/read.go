package offsets

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	return readFrom(ctx, topic, begin, ends, opts...)
}

// silence is how long a reader waits for the next records. How long all of them take depends on how many there are.
const silence = 15 * time.Second

var errSilent = errors.New("the brokers did not answer in time")

// documentError is a document that this version can't read.
type documentError struct{ error }

func (e *documentError) Unwrap() error { return e.error }

// readFrom is ReadTo for some partitions, each from an offset. With an error from the brokers it returns what it has
// read.
func readFrom(ctx context.Context, topic string, begin map[int32]int64, ends []int64, opts ...kgo.Opt) (*State, error) {
	v := NewView(topic, len(ends))
	from := map[int32]kgo.Offset{}
	for p, at := range begin {
		from[p] = kgo.NewOffset().At(at)
	}
	if len(from) == 0 {
		s, _, err := v.Get()
		return s, err
	}
	cl, err := kgo.NewClient(append(slices.Clone(opts),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords())...) // the last record is often the end of a transaction
	if err != nil {
		return nil, fmt.Errorf("creating the reader of %s: %w", topic, err)
	}
	defer cl.Close()
	for len(from) > 0 {
		polling, cancel := context.WithTimeout(ctx, silence)
		fs := cl.PollFetches(polling)
		cancel()
		if err := fs.Err0(); err != nil {
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				err = errSilent
			}
			s, _, _ := v.Get()
			return s, fmt.Errorf("reading %s: %w", topic, err)
		}
		var failed error
		fs.EachRecord(func(r *kgo.Record) {
			if failed == nil {
				if err := v.apply(r); err != nil {
					failed = &documentError{err}
				}
			}
			if r.Offset+1 >= ends[r.Partition] {
				delete(from, r.Partition)
			}
		})
		fs.EachError(func(_ string, p int32, err error) {
			if failed == nil {
				failed = fmt.Errorf("reading partition %d of %s: %w", p, topic, err)
			}
		})
		if failed != nil {
			s, _, _ := v.Get()
			return s, failed
		}
	}
	s, _, err := v.Get()
	return s, err
}

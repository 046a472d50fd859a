package offsets

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ReadTo returns what the topic says up to the given end offsets, one for each partition: for those who look on and hold
// no lease.
func ReadTo(ctx context.Context, topic string, ends []int64, opts ...kgo.Opt) (*State, error) {
	v := NewView(topic, len(ends))
	from := map[int32]kgo.Offset{}
	for p, end := range ends {
		if end > 0 {
			from[int32(p)] = kgo.NewOffset().AtStart()
		}
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
		fs := cl.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			return nil, fmt.Errorf("reading %s: %w", topic, err)
		}
		var failed error
		fs.EachRecord(func(r *kgo.Record) {
			if failed == nil {
				failed = v.apply(r)
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
			return nil, failed
		}
	}
	s, _, err := v.Get()
	return s, err
}

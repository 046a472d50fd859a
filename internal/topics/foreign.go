package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Foreign returns the error for a topic that holds records of others.
func Foreign(topic string) error {
	return &RejectedError{topic, "it holds records, and not of this bridge: begin BRIDGE_TOPIC with a literal " +
		"text, or, if the records may be mixed or are this bridge's own from before a reset, " +
		"set BRIDGE_TOPIC_ADOPT=true"}
}

// Offsets lists offsets of topics by a function of kadm, and fails if a partition has none.
func Offsets(
	ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topics ...string,
) (kadm.ListedOffsets, error) {
	listed, err := list(ctx, topics...)
	if err == nil {
		err = listed.Error()
	}
	return listed, err
}

// Ends returns the end of what is committed, by partition.
func (a *Admin) Ends(ctx context.Context, topic string) ([]int64, error) {
	listed, err := Offsets(ctx, a.admin().ListCommittedOffsets, topic)
	if err != nil {
		return nil, fmt.Errorf("reading the ends of topic %s: %w", topic, err)
	}
	ends := make([]int64, len(listed[topic]))
	for p, o := range listed[topic] {
		ends[p] = o.Offset
	}
	return ends, nil
}

// Used reports whether a topic exists and holds a committed record, or has held one. Records of aborted transactions do
// not count: an instance may have created the topic, and ended before its first commit. Opts are those of a client.
func (a *Admin) Used(ctx context.Context, topic string, opts []kgo.Opt) (bool, error) {
	var none *MissingError
	if _, err := Count(ctx, a.admin(), topic); errors.As(err, &none) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	starts, err := Offsets(ctx, a.admin().ListStartOffsets, topic)
	if err != nil {
		return false, fmt.Errorf("reading the starts of topic %s: %w", topic, err)
	}
	ends, err := a.Ends(ctx, topic)
	if err != nil {
		return false, err
	}
	from := map[int32]kgo.Offset{}
	for p, end := range ends {
		if starts[topic][int32(p)].Offset > 0 {
			return true, nil
		}
		if end > 0 {
			from[int32(p)] = kgo.NewOffset().AtStart()
		}
	}
	if len(from) == 0 {
		return false, nil
	}
	cl, err := kgo.NewClient(append(slices.Clone(opts),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords())...) // they show where a partition ends that holds nothing else
	if err != nil {
		return false, fmt.Errorf("creating the reader of topic %s: %w", topic, err)
	}
	defer cl.Close()
	used := false
	for len(from) > 0 && !used {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); errors.Is(err, kgo.ErrMaxDecompress) {
			return true, nil // a batch with records
		} else if err != nil {
			return false, fmt.Errorf("reading topic %s, to see whether it holds records of others (that takes Read "+
				"on it, unless BRIDGE_TOPIC begins with a literal text or BRIDGE_TOPIC_ADOPT=true): %w", topic, err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			used = used || !r.Attrs.IsControl()
			if r.Offset+1 >= ends[r.Partition] {
				delete(from, r.Partition)
			}
		})
	}
	return used, nil
}

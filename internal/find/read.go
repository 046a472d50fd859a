package find

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// span is a part of a partition.
type span struct{ from, to int64 }

// spans are what is still to be read, by partition.
type spans map[int32]span

// only leaves one partition.
func (s spans) only(partition int32) {
	for p := range s {
		if p != partition {
			delete(s, p)
		}
	}
}

// spansOf returns the partitions of a topic from the first record at or after a time to what is committed now. There
// are none if the topic does not exist. A record has the time of its event, so it is not before the first of that time.
func spansOf(ctx context.Context, client []kgo.Opt, topic string, from time.Time) (spans, error) {
	cl, err := kgo.NewClient(client...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	ends, err := admin.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return spans{}, nil
	}
	if err != nil {
		return nil, err
	}
	begins := admin.ListStartOffsets
	if !from.IsZero() {
		begins = func(ctx context.Context, names ...string) (kadm.ListedOffsets, error) {
			return admin.ListOffsetsAfterMilli(ctx, from.UnixMilli(), names...)
		}
	}
	starts, err := begins(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, err
	}
	all := spans{}
	starts.Each(func(o kadm.ListedOffset) {
		if end, ok := ends.Lookup(topic, o.Partition); ok && o.Offset >= 0 && o.Offset < end.Offset {
			all[o.Partition] = span{o.Offset, end.Offset}
		}
	})
	return all, nil
}

// read shows the committed records of the spans until show says that it is over.
func read(
	ctx context.Context, client []kgo.Opt, topic string, all spans, show func(*kgo.Record) (over bool),
) error {
	if len(all) == 0 {
		return nil
	}
	at := map[int32]kgo.Offset{}
	for p, s := range all {
		at[p] = kgo.NewOffset().At(s.from)
	}
	cl, err := kgo.NewClient(append(client[:len(client):len(client)],
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: at}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), // else an end of markers never comes
		kgo.FetchMaxWait(500*time.Millisecond))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(all) > 0 {
		fetched := cl.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return err
		}
		over := false
		fetched.EachRecord(func(r *kgo.Record) {
			s, open := all[r.Partition]
			if over || !open || r.Offset >= s.to {
				return
			}
			if !r.Attrs.IsControl() {
				over = show(r)
			}
			if r.Offset >= s.to-1 {
				delete(all, r.Partition)
			}
		})
		if over {
			return nil
		}
	}
	return nil
}

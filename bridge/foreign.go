package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/offsets"
)

// foreign refuses a topic that holds records which this bridge did not write. With a literal prefix the operator has
// said which topics are the bridge's. Without transactions, records of an owner that crashed before its first cursor
// look like somebody else's, too: the operator decides.
func (w *worker) foreign(ctx context.Context, topic string) error {
	if w.AdoptTopics || w.Topics.Prefixed() {
		return nil
	}
	_, err := w.partitions(ctx, topic)
	var none *MissingTopicError
	if errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	if used, err := w.used(ctx, topic); !used || err != nil {
		return err
	}
	// Another instance may have found the topic, and committed its first records, since the view was read.
	ends, err := w.ends(ctx, w.offsetsTopic())
	if err != nil {
		return err
	}
	s, err := w.view.Await(ctx, func(s *offsets.State) bool { return s.Reached(ends) })
	if err != nil {
		return err
	}
	if _, ok := w.pinned(s)[topic]; ok {
		return nil
	}
	if s.Frontier != nil && s.Frontier.Topics[topic] > 0 {
		return nil
	}
	return &RefusedTopicError{topic, "it holds records, and not of this bridge: begin BRIDGE_TOPIC with a literal " +
		"text, or, if the records may be mixed or are this bridge's own from before a reset, " +
		"set BRIDGE_TOPIC_ADOPT=true"}
}

// ends returns the end of what is committed, by partition.
func (b *Bridge) ends(ctx context.Context, topic string) ([]int64, error) {
	listed, err := b.admin.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ends of topic %s: %w", topic, err)
	}
	ends := make([]int64, len(listed[topic]))
	for p, o := range listed[topic] {
		ends[p] = o.Offset
	}
	return ends, nil
}

// used reports whether a topic holds a record that is committed, or has held some. Records of aborted transactions do
// not count: an instance may have created the topic, and ended before its first commit.
func (b *Bridge) used(ctx context.Context, topic string) (bool, error) {
	starts, err := b.admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return false, fmt.Errorf("reading the starts of topic %s: %w", topic, err)
	}
	ends, err := b.ends(ctx, topic)
	if err != nil {
		return false, err
	}
	from := map[int32]kgo.Offset{}
	for p, end := range ends {
		start := starts[topic][int32(p)].Offset
		if start > 0 {
			return true, nil
		}
		if end > 0 {
			from[int32(p)] = kgo.NewOffset().AtStart()
		}
	}
	if len(from) == 0 {
		return false, nil
	}
	cl, err := kgo.NewClient(append(slices.Clone(b.Client),
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
		if err := fs.Err(); err != nil {
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

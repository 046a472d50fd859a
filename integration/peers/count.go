package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 12

func createTopic(ctx context.Context, brokers []string, topic string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer cl.Close()
	forever := "-1" // the events are older than the default retention
	_, err = kadm.NewClient(cl).CreateTopic(ctx, partitions, -1, map[string]*string{"retention.ms": &forever}, topic)
	return err
}

var eventID = regexp.MustCompile(`"id": ?"([^"]+)"`)

// idOf returns the id of the event in a record of any of the readers. A marker of the bridge has none, and a deletion
// of the bridge has it only in a header.
func idOf(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == "ce_id" {
			return string(h.Value)
		}
	}
	if m := eventID.FindSubmatch(r.Value); m != nil {
		return string(m[1])
	}
	return ""
}

// count reads a topic to its end. Each event of the first segments should be in it once, and no other.
func count(ctx context.Context, brokers []string, topic string, f feed, segments int) (delivered, twice int,
	err error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics(topic), kgo.KeepControlRecords())
	if err != nil {
		return 0, 0, err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, 0, err
	}
	left := map[int32]int64{} // the end of each partition that is not read
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	seen := make(map[string]bool, len(f.ids))
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return 0, 0, fmt.Errorf("reading %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if end, ok := left[r.Partition]; ok && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
			if r.Attrs.IsControl() {
				return
			}
			id := idOf(r)
			if id == "" {
				return
			}
			switch segment, known := f.ids[id]; {
			case !known || segment >= segments:
				err = errors.Join(err, fmt.Errorf("reading %s: event %s is not in the feed's first %d segments", topic,
					id, segments))
			case seen[id]:
				twice++
			default:
				seen[id] = true
			}
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return len(seen), twice, nil
}

package offsets

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/kafka"
)

// Ensure creates the offsets topic if it is missing and returns its number of partitions, which is the number of leases
// and never changes. Replication -1 is the broker's default.
func Ensure(ctx context.Context, adm *kadm.Client, topic string, partitions int32, replication int16) (int, error) {
	text := func(s string) *string { return &s }
	err := kafka.Create(ctx, adm, topic, partitions, replication, map[string]*string{
		"cleanup.policy": text("compact"),
		// A new instance reads the topic from its start. Small segments and eager compaction keep that short:
		// a commit a second writes some 25 MB a day and partition.
		"segment.bytes":             text("16777216"),
		"min.cleanable.dirty.ratio": text("0.1"),
	})
	if err != nil {
		return 0, err
	}
	configs, err := adm.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("reading the settings of %s: %w", topic, err)
	}
	rc, err := configs.On(topic, nil)
	if err != nil {
		return 0, fmt.Errorf("reading the settings of %s: %w", topic, err)
	}
	for _, c := range rc.Configs {
		if c.Key == "cleanup.policy" && strings.TrimSpace(c.MaybeValue()) != "compact" {
			return 0, fmt.Errorf("the offsets topic %s has cleanup.policy=%s, which deletes cursors: set it to compact", topic, c.MaybeValue())
		}
	}
	topics, err := adm.ListTopics(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("reading the metadata of %s: %w", topic, err)
	}
	t := topics[topic]
	if t.Err != nil {
		return 0, fmt.Errorf("reading the metadata of %s: %w", topic, t.Err)
	}
	return len(t.Partitions), nil
}

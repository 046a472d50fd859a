package bridge

import (
	"context"
	"fmt"
	"strings"

	"blobfeed/kafka"
)

// SettingsError says that the settings do not fit each other, the stored state or the broker. Trying again does not help.
type SettingsError struct{ Problem string }

func (e *SettingsError) Error() string { return e.Problem }

// prepareTopic creates the topic if it may, and refuses one that can't hold what is to be written.
func (b *Bridge) prepareTopic(ctx context.Context) error {
	adm := b.admin
	topics, err := adm.ListTopics(ctx, b.Topic)
	if err != nil {
		return fmt.Errorf("reading the metadata of topic %s: %w", b.Topic, err)
	}
	if !topics.Has(b.Topic) {
		if b.TopicPartitions == 0 {
			return fmt.Errorf("topic %s does not exist: create it, or set BRIDGE_TOPIC_CREATE=explicit", b.Topic)
		}
		if err := kafka.Create(ctx, adm, b.Topic, b.TopicPartitions, b.TopicReplication, nil); err != nil {
			return err
		}
		b.Log.Info("topic created", "topic", b.Topic, "partitions", b.TopicPartitions)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, b.Topic)
	if err != nil {
		return fmt.Errorf("reading the settings of topic %s: %w", b.Topic, err)
	}
	rc, err := configs.On(b.Topic, nil)
	if err != nil {
		return fmt.Errorf("reading the settings of topic %s: %w", b.Topic, err)
	}
	for _, c := range rc.Configs {
		if c.Key == "cleanup.policy" && strings.Contains(c.MaybeValue(), "compact") && b.Markers {
			return &SettingsError{Problem: fmt.Sprintf("topic %s has cleanup.policy=%s and would refuse resolved markers, which have no key, "+
				"together with the records beside them: set BRIDGE_RESOLVED_TO=off, or use a topic with cleanup.policy=delete", b.Topic, c.MaybeValue())}
		}
	}
	return nil
}

// partitions reads the number of partitions of the topic. A topic that is gone is an error that names it.
func (b *Bridge) partitions(ctx context.Context) (map[string]int32, error) {
	topics, err := b.admin.ListTopics(ctx, b.Topic)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of topic %s: %w", b.Topic, err)
	}
	t := topics[b.Topic]
	if t.Err != nil {
		return nil, fmt.Errorf("reading the metadata of topic %s: %w", b.Topic, t.Err)
	}
	return map[string]int32{b.Topic: int32(len(t.Partitions))}, nil
}

// compatible refuses a state that other settings, or another feed, have written.
func (b *Bridge) compatible(feed string, frozen map[string]string) error {
	reset := fmt.Sprintf("use another BRIDGE_NAME to start over, or set it back (the state is in topic %s)", b.cfg.Topic)
	if feed != b.FeedID {
		return &SettingsError{Problem: fmt.Sprintf("BRIDGE_SOURCE_URL names feed %s, but %s has progress on feed %s: %s", b.FeedID, b.Name, feed, reset)}
	}
	for name, have := range frozen {
		if want, ok := b.Frozen[name]; ok && want != have {
			return &SettingsError{Problem: fmt.Sprintf("%s=%s, but records were written with %s: %s", name, want, have, reset)}
		}
	}
	return nil
}

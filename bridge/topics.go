package bridge

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"blobfeed/kafka"
)

// SettingsError says that the settings do not fit each other, the stored state or the broker. Trying again does not help.
type SettingsError struct{ Problem string }

func (e *SettingsError) Error() string { return e.Problem }

// prepareTopics creates the topics if it may, and refuses one that can't hold what is to be written.
func (b *Bridge) prepareTopics(ctx context.Context) error {
	if err := b.ensure(ctx, b.Topic, b.TopicPartitions, nil); err != nil {
		return err
	}
	if b.DeadLetter != "" {
		forever := "-1"
		if err := b.ensure(ctx, b.DeadLetter, min(b.TopicPartitions, 1), map[string]*string{"retention.ms": &forever}); err != nil {
			return err
		}
	}
	configs, err := b.settings(ctx, b.Topic)
	if err != nil {
		return err
	}
	if policy := configs["cleanup.policy"]; strings.Contains(policy, "compact") && b.Markers {
		return &SettingsError{Problem: fmt.Sprintf("topic %s has cleanup.policy=%s and would refuse resolved markers, which have no key, "+
			"together with the records beside them: set BRIDGE_RESOLVED_TO=off, or use a topic with cleanup.policy=delete", b.Topic, policy)}
	}
	return nil
}

// ensure makes sure that a topic exists. Partitions 0 never creates it.
func (b *Bridge) ensure(ctx context.Context, topic string, partitions int32, configs map[string]*string) error {
	topics, err := b.admin.ListTopics(ctx, topic)
	if err != nil {
		return fmt.Errorf("reading the metadata of topic %s: %w", topic, err)
	}
	if topics.Has(topic) {
		return nil
	}
	if partitions == 0 {
		return fmt.Errorf("topic %s does not exist: create it, or set BRIDGE_TOPIC_CREATE=explicit", topic)
	}
	if err := kafka.Create(ctx, b.admin, topic, partitions, b.TopicReplication, configs); err != nil {
		return err
	}
	b.Log.Info("topic created", "topic", topic, "partitions", partitions)
	return nil
}

// settings reads the settings of a topic.
func (b *Bridge) settings(ctx context.Context, topic string) (map[string]string, error) {
	configs, err := b.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("reading the settings of topic %s: %w", topic, err)
	}
	rc, err := configs.On(topic, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the settings of topic %s: %w", topic, err)
	}
	all := map[string]string{}
	for _, c := range rc.Configs {
		all[c.Key] = c.MaybeValue()
	}
	return all, nil
}

// defaultLimit is what a broker takes where a topic does not say: Kafka's default, less what its client reserves.
const (
	defaultLimit = 1_000_012
	maxLimit     = 64 << 20 // larger requests no client sends
)

// messageLimit returns how large a batch all topics take: kgo never makes a larger one, and refuses a record that is
// larger by itself, uncompressed, so no transaction fails for it.
func (b *Bridge) messageLimit(ctx context.Context) (int32, error) {
	limit := int32(math.MaxInt32)
	for _, topic := range []string{b.Topic, b.DeadLetter} {
		if topic == "" {
			continue
		}
		configs, err := b.settings(ctx, topic)
		if err != nil {
			return 0, err
		}
		bytes, err := strconv.ParseInt(configs["max.message.bytes"], 10, 32)
		if err != nil {
			bytes = defaultLimit
		}
		limit = min(limit, int32(bytes), maxLimit)
	}
	return limit, nil
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

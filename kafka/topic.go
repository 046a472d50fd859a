package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Create creates a topic unless it exists, and returns when the brokers answer for it: they say "unknown" for some
// moments after they have said "created". Replication -1 is their default.
func Create(ctx context.Context, adm *kadm.Client, topic string, partitions int32, replication int16, configs map[string]*string) error {
	// Looked for first: who has no right to create a topic has none to be told that it exists, when they try.
	if topics, err := adm.ListTopics(ctx, topic); err == nil && topics[topic].Err == nil && topics.Has(topic) {
		return nil
	}
	_, err := adm.CreateTopic(ctx, partitions, replication, configs, topic)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("creating topic %s: %w", topic, err)
	}
	for {
		topics, err := adm.ListTopics(ctx, topic)
		if err == nil {
			err = topics[topic].Err
		}
		if !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

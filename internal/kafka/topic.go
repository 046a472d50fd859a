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
// moments after they have said "created". It reports whether it was us who created it. Replication -1 is their default.
func Create(ctx context.Context, adm *kadm.Client, topic string, partitions int32, replication int16, configs map[string]*string) (created bool, err error) {
	_, err = adm.CreateTopic(ctx, partitions, replication, configs, topic)
	if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
		// Who may not create a topic is not told that it exists.
		if topics, lerr := adm.ListTopics(ctx, topic); lerr == nil && topics.Has(topic) {
			return false, nil
		}
	}
	created = err == nil
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return false, fmt.Errorf("creating topic %s: %w", topic, err)
	}
	for {
		topics, err := adm.ListTopics(ctx, topic)
		if err == nil {
			err = topics[topic].Err
		}
		if !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return created, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"blobfeed/envelope"
)

// fit refuses topics that can't hold what is to be written.
func (b *Bridge) fit(ctx context.Context, topics ...string) error {
	all, err := b.settings(ctx, topics...)
	if err != nil {
		return err
	}
	for topic, configs := range all {
		if policy := configs["cleanup.policy"]; strings.Contains(policy, "compact") && b.Markers == envelope.MarkersInline {
			return &SettingsError{Problem: fmt.Sprintf("topic %s has cleanup.policy=%s and would refuse resolved markers, which have no key, "+
				"together with the records beside them: set BRIDGE_RESOLVED_TO=topic (or off), or use a topic with cleanup.policy=delete", topic, policy)}
		}
	}
	return nil
}

// settings reads the settings of topics.
func (b *Bridge) settings(ctx context.Context, topics ...string) (map[string]map[string]string, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	configs, err := b.admin.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("reading the settings of topics %s: %w", strings.Join(topics, ", "), err)
	}
	all := map[string]map[string]string{}
	for _, topic := range topics {
		rc, err := configs.On(topic, nil)
		if err == nil {
			err = rc.Err
		}
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			return nil, &MissingTopicError{topic}
		}
		if err != nil {
			return nil, fmt.Errorf("reading the settings of topic %s: %w", topic, err)
		}
		all[topic] = map[string]string{}
		for _, c := range rc.Configs {
			all[topic][c.Key] = c.MaybeValue()
		}
	}
	return all, nil
}

// defaultLimit is what a broker takes where a topic does not say: Kafka's default, less what its client reserves.
const (
	defaultLimit = 1_000_012
	maxLimit     = 64 << 20 // larger requests no client sends
)

// messageLimit returns how large a batch all topics take that are known, and those given: kgo never makes a larger one,
// and refuses a record that is larger by itself, uncompressed, so no transaction fails for it.
func (b *Bridge) messageLimit(ctx context.Context, more ...string) (int32, error) {
	all, err := b.settings(ctx, b.known(more)...)
	if err != nil {
		return 0, err
	}
	limit := int32(maxLimit)
	if len(all) == 0 {
		limit = defaultLimit
	}
	for _, configs := range all {
		bytes, err := strconv.ParseInt(configs["max.message.bytes"], 10, 32)
		if err != nil {
			bytes = defaultLimit
		}
		limit = min(limit, int32(bytes))
	}
	return limit, nil
}

// known returns the topics that are written to, and remembers those that are new: the next producer must not be made for
// larger records than they take.
func (b *Bridge) known(more []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, topic := range more {
		b.met[topic] = true
	}
	names := maps.Clone(b.met)
	if topic, ok := b.Topics.Constant(); ok {
		names[topic] = true
	}
	if b.DeadLetter != "" {
		names[b.DeadLetter] = true
	}
	if s, _, err := b.view.Get(); err == nil && s.Frontier != nil {
		for topic := range s.Frontier.Topics {
			names[topic] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

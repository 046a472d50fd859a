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
	"github.com/twmb/franz-go/pkg/kgo"

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
		limit = min(limit, maxMessage(configs))
	}
	return limit, nil
}

// stateLimit returns how large a document of the state may be.
func (b *Bridge) stateLimit(ctx context.Context) (int32, error) {
	all, err := b.settings(ctx, b.offsetsTopic())
	return min(maxLimit, maxMessage(all[b.offsetsTopic()])), err
}

// batchLimits keeps the producer's batches within what their topics take.
func (w *worker) batchLimits() kgo.Opt {
	state, limit, most := w.offsetsTopic(), w.limit, w.most
	return kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
		if topic == state {
			return most
		}
		return limit
	})
}

// maxMessage returns how large a batch a topic with these settings takes.
func maxMessage(configs map[string]string) int32 {
	bytes, err := strconv.ParseInt(configs["max.message.bytes"], 10, 32)
	if err != nil {
		return defaultLimit
	}
	return int32(bytes)
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

package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// TopicPlan says what the topics of the bridge hold.
func (o *Options) TopicPlan() topics.Plan {
	return topics.Plan{
		Partitions: o.TopicPartitions, Replication: o.TopicReplication, ByBroker: o.BrokerCreates,
		Table: o.Table, Markers: o.Markers, Limit: o.TopicLimit, Tool: o.TopicTool,
	}
}

// topicAdmin returns what looks after the topics.
func (b *Bridge) topicAdmin(cl *kgo.Client) *topics.Admin {
	return &topics.Admin{Plan: b.TopicPlan(), Client: cl, Oldest: b.oldest, Now: b.Now, Log: b.Log}
}

// prepareTopics creates the topics if it may, and rejects those that can't hold what is to be written. Once there is a
// frontier, it creates none in place of a topic of records that is gone: its records are.
func (b *Bridge) prepareTopics(ctx context.Context, f *offsets.Frontier) error {
	for _, own := range []string{b.offsetsTopic(), b.DeadLetter} {
		if own != "" && b.Topics.Meets(own) {
			return &SettingsError{Problem: fmt.Sprintf("records could go to %s, a topic of the bridge's own: "+
				"change BRIDGE_TOPIC or BRIDGE_NAME", own)}
		}
	}
	if b.DeadLetter != "" {
		if err := b.topics.OpenDeadLetters(ctx, b.DeadLetter); err != nil {
			return err
		}
	}
	if f != nil {
		return asSettings(b.topics.Fit(ctx, f.Topics))
	}
	for _, topic := range b.constant() {
		if _, err := b.openTopic(ctx, topic); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bridge) openTopic(ctx context.Context, topic string) (partitions int32, err error) {
	partitions, err = b.topics.Open(ctx, topic)
	return partitions, asSettings(err)
}

// asSettings returns a lasting problem of a topic as an error of the settings.
func asSettings(err error) error {
	var problem *topics.Problem
	if errors.As(err, &problem) {
		return &SettingsError{Problem: problem.Error()}
	}
	return err
}

// oldest returns the time of the first event that a first start would read.
func (b *Bridge) oldest(ctx context.Context) (at time.Time, ok bool, err error) {
	start, after := b.Start.resolve(b.Now())
	seg, ok, err := b.next(ctx, after)
	if err != nil || !ok {
		return time.Time{}, false, err
	}
	ts, err := parseTime(start)
	return time.Unix(0, max(ts.Wall, seg.Time().UnixNano())), true, err
}

// recount reads the partitions of the topics of f, and of those that leases found since it was written (I6: none misses
// its marker), and puts them into f. Between two segments nothing is in flight, so they may change here (I5). S is nil
// at a first start.
func (w *worker) recount(f *offsets.Frontier, s *offsets.State) error {
	if s != nil {
		for _, c := range s.Cursors {
			if c != nil {
				f.Adopt(c.Pins)
			}
		}
	}
	had := maps.Clone(f.Topics)
	if len(had) == 0 {
		had = map[string]int32{}
		for _, topic := range w.constant() {
			had[topic] = 0
		}
	}
	return w.retry(w.work, w.p, func(ctx context.Context) error {
		counts, err := w.topics.Recount(ctx, had)
		if err == nil {
			f.Topics = counts
		}
		return err
	})
}

// messageLimit returns how large a batch all topics take that are known, and those given.
func (b *Bridge) messageLimit(ctx context.Context, more ...string) (int32, error) {
	return b.topics.MaxMessage(ctx, b.known(more)...)
}

// stateLimit returns how large a document of the state may be.
func (b *Bridge) stateLimit(ctx context.Context) (int32, error) {
	return b.topics.MaxMessage(ctx, b.offsetsTopic())
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

// known returns the topics that are written to, and remembers those that are new: the next producer must not be made for
// larger records than they take.
func (b *Bridge) known(more []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, topic := range more {
		b.met[topic] = true
	}
	names := maps.Clone(b.met)
	for _, topic := range b.constant() {
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

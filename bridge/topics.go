package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"blobfeed/envelope"
	"blobfeed/offsets"
)

// SettingsError says that the settings do not fit each other, the stored state or the broker. Trying again does not help.
type SettingsError struct{ Problem string }

func (e *SettingsError) Error() string { return e.Problem }

// prepareTopics creates the topics if it may, and refuses those that can't hold what is to be written. Once there is a
// frontier, nothing is created in place of a topic of records that is gone: its records are.
func (b *Bridge) prepareTopics(ctx context.Context, f *offsets.Frontier) error {
	for _, own := range []string{b.offsetsTopic(), b.DeadLetter} {
		if own != "" && b.Topics.Meets(own) {
			return &SettingsError{Problem: fmt.Sprintf("records could go to %s, a topic of the bridge's own: change BRIDGE_TOPIC or BRIDGE_NAME", own)}
		}
	}
	if b.DeadLetter != "" {
		if _, err := b.ensure(ctx, b.DeadLetter, 1, map[string]string{"retention.ms": "-1"}); err != nil {
			return err
		}
	}
	if f != nil {
		return b.fit(ctx, slices.Sorted(maps.Keys(f.Topics))...)
	}
	topic, ok := b.Topics.Constant()
	if !ok {
		return nil
	}
	_, err := b.openTopic(ctx, topic)
	return err
}

// openTopic makes sure that a topic of records, and that of its markers, exist and fit; it returns the partitions.
func (b *Bridge) openTopic(ctx context.Context, topic string) (partitions int32, err error) {
	policy := "delete"
	if b.Table {
		policy = "compact"
	}
	if partitions, err = b.ensure(ctx, topic, b.TopicPartitions, map[string]string{"cleanup.policy": policy}); err != nil {
		return 0, err
	}
	if b.Markers == envelope.MarkersTopic {
		if err := b.ensureMarkers(ctx, topic, partitions); err != nil {
			return 0, err
		}
	}
	if err := settled(ctx, func() error { return b.fit(ctx, topic) }); err != nil {
		return 0, err
	}
	eats, err := b.eatsHistory(ctx, topic)
	if eats {
		b.Log.Warn("the topic may delete history right after it is written, since records have the time of their events: set its retention.ms to -1 until what is old has been read", "topic", topic)
	}
	return partitions, err
}

// MissingTopicError is a topic that is not there.
type MissingTopicError struct{ Topic string }

func (e *MissingTopicError) Error() string {
	return fmt.Sprintf("topic %s does not exist: create it (BRIDGE_TOPIC_CREATE=explicit does where there are no records yet). If it was deleted, "+
		"its records are gone: create it with the same partitions to go on with what comes, or start over with bridge reset, or with another BRIDGE_NAME and BRIDGE_TOPIC", e.Topic)
}

// partitions reads how many partitions topics have. One that is not there is an error that names it.
func (b *Bridge) partitions(ctx context.Context, names ...string) (map[string]int32, error) {
	counts := map[string]int32{}
	if len(names) == 0 {
		return counts, nil
	}
	topics, err := b.admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of topics %s: %w", strings.Join(names, ", "), err)
	}
	for _, name := range names {
		t, ok := topics[name]
		if !ok || errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			return nil, &MissingTopicError{name}
		}
		if t.Err != nil {
			return nil, fmt.Errorf("reading the metadata of topic %s: %w", name, t.Err)
		}
		counts[name] = int32(len(t.Partitions))
	}
	return counts, nil
}

// recount reads the partitions of the topics of f, and of those that leases found since it was written (I6: none misses
// its marker), and puts them into f. Between two segments nothing is in flight, so they may change here (I5). S is
// nil at a
// first start.
func (w *worker) recount(f *offsets.Frontier, s *offsets.State) error {
	if s != nil {
		for _, c := range s.Cursors {
			if c != nil {
				f.Adopt(c.Pins)
			}
		}
	}
	names := slices.Sorted(maps.Keys(f.Topics))
	if topic, ok := w.Topics.Constant(); ok && len(names) == 0 {
		names = []string{topic}
	}
	return w.retry(w.work, w.p, func(ctx context.Context) error {
		counts, err := w.partitions(ctx, names...)
		if err != nil {
			return err
		}
		for topic, n := range counts { // Kafka takes none away: a broker lags behind the others, or somebody made the topic anew
			if had := f.Topics[topic]; n < had {
				return fmt.Errorf("topic %s has %d partitions and had %d: if it was deleted, create it with as many", topic, n, had)
			}
		}
		f.Topics = counts
		if w.Markers != envelope.MarkersTopic {
			return nil
		}
		var markers []string
		for _, name := range names {
			markers = append(markers, name+markersSuffix)
		}
		have, err := w.partitions(ctx, markers...)
		var gone *MissingTopicError
		if err != nil && !errors.As(err, &gone) {
			return err
		}
		for topic, n := range counts {
			if have[topic+markersSuffix] < n {
				if err := w.ensureMarkers(ctx, topic, n); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Compatible refuses a state that other settings, or another feed, have written.
func (o *Options) Compatible(feed string, frozen map[string]string) error {
	reset := fmt.Sprintf("set it back, or start over with bridge reset, or with another BRIDGE_NAME and BRIDGE_TOPIC (the state is in topic %s)", o.offsetsTopic())
	if feed != o.FeedID {
		return &SettingsError{Problem: fmt.Sprintf("BRIDGE_SOURCE_URL names feed %s, but %s has progress on feed %s: %s", o.FeedID, o.Name, feed, reset)}
	}
	for name, have := range frozen {
		if want, ok := o.Frozen[name]; ok && want != have {
			return &SettingsError{Problem: fmt.Sprintf("%s=%s, but records were written with %s: %s", name, want, have, reset)}
		}
	}
	return nil
}

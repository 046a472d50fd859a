package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
	"blobfeed/kafka"
	"blobfeed/offsets"
)

// SettingsError says that the settings do not fit each other, the stored state or the broker. Trying again does not help.
type SettingsError struct{ Problem string }

func (e *SettingsError) Error() string { return e.Problem }

// prepareTopics creates the topics if it may, and refuses those that can't hold what is to be written. Once there is a
// frontier, nothing is created in place of a topic of records that is gone: its records are.
func (b *Bridge) prepareTopics(ctx context.Context, f *offsets.Frontier) error {
	if b.DeadLetter != "" {
		if _, err := b.ensure(ctx, b.DeadLetter, 1, map[string]string{"retention.ms": "-1"}); err != nil {
			return err
		}
	}
	if f != nil {
		if err := b.compatible(f.Feed, f.Settings); err != nil {
			return err
		}
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
	if err := b.fit(ctx, topic); err != nil {
		return 0, err
	}
	eats, err := b.eatsHistory(ctx, topic)
	if eats {
		b.Log.Warn("the topic may delete history right after it is written, since records have the time of their events: set its retention.ms to -1 until what is old has been read", "topic", topic)
	}
	return partitions, err
}

// ensureMarkers makes sure that the topic of markers has at least the partitions of the topic that they speak of.
func (b *Bridge) ensureMarkers(ctx context.Context, topic string, partitions int32) error {
	markers := topic + markersSuffix
	have, err := b.ensure(ctx, markers, min(b.TopicPartitions, 1)*partitions, map[string]string{"cleanup.policy": "delete"})
	if err != nil || have >= partitions {
		return err
	}
	if b.TopicPartitions == 0 {
		return fmt.Errorf("topic %s has %d partitions, %s has %d: add partitions", markers, have, topic, partitions)
	}
	rs, err := b.admin.UpdatePartitions(ctx, int(partitions), markers)
	if err == nil {
		err = rs.Error()
	}
	if err != nil {
		return fmt.Errorf("adding partitions to topic %s: %w", markers, err)
	}
	return nil
}

// ensure makes sure that a topic exists, and returns its partitions. Partitions 0 never creates it.
func (b *Bridge) ensure(ctx context.Context, topic string, partitions int32, configs map[string]string) (int32, error) {
	have, err := b.partitions(ctx, topic)
	var gone *MissingTopicError
	if !errors.As(err, &gone) {
		return have[topic], err
	}
	switch {
	case b.BrokerCreates:
		if err := b.request(ctx, topic); err != nil {
			return 0, err
		}
	case b.TopicPartitions == 0:
		return 0, err
	default:
		values := map[string]*string{}
		for name, value := range configs {
			values[name] = &value
		}
		if err := kafka.Create(ctx, b.admin, topic, partitions, b.TopicReplication, values); err != nil {
			return 0, err
		}
		if err := b.keepHistory(ctx, topic); err != nil {
			return 0, err
		}
	}
	have, err = b.partitions(ctx, topic)
	if err == nil {
		b.Log.Info("topic created", "topic", topic, "partitions", have[topic])
	}
	return have[topic], err
}

// request asks for a topic in the way that makes brokers create it, if they do.
func (b *Bridge) request(ctx context.Context, topic string) error {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = true
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	if _, err := req.RequestWith(ctx, b.client); err != nil {
		return fmt.Errorf("asking for topic %s: %w", topic, err)
	}
	return nil
}

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

// eatsHistory reports whether a topic's retention is shorter than the history that is to be written. Records have the time
// of their events. The ends of transactions have that of writing, but protect only what stands in one file with them:
// brokers begin a new file when times differ by segment.ms, and look at the retention also before a transaction ends.
func (b *Bridge) eatsHistory(ctx context.Context, topic string) (bool, error) {
	all, err := b.settings(ctx, topic)
	if err != nil {
		return false, err
	}
	ms, err := strconv.ParseInt(all[topic]["retention.ms"], 10, 64)
	if err != nil || ms < 0 || !strings.Contains(all[topic]["cleanup.policy"], "delete") {
		return false, nil
	}
	oldest, ok, err := b.oldest(ctx)
	return ok && b.Now().Sub(oldest).Milliseconds() > ms, err
}

// keepHistory turns the retention of a new topic off if it would eat history.
func (b *Bridge) keepHistory(ctx context.Context, topic string) error {
	eats, err := b.eatsHistory(ctx, topic)
	if err != nil || !eats {
		return err
	}
	forever := "-1"
	rs, err := b.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &forever}}, topic)
	if err == nil {
		_, err = rs.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
	}
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return nil // who uses the topic is warned, and told what to do
	}
	if err != nil {
		return fmt.Errorf("setting retention.ms=-1 of topic %s: %w", topic, err)
	}
	b.Log.Warn("history is older than the retention of new topics, so this one keeps everything: set its retention.ms when what is old has been read", "topic", topic)
	return nil
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

// MissingTopicError is a topic that is not there.
type MissingTopicError struct{ Topic string }

func (e *MissingTopicError) Error() string {
	return fmt.Sprintf("topic %s does not exist: create it (BRIDGE_TOPIC_CREATE=explicit does where there are no records yet). If it was deleted, "+
		"its records are gone: create it with the same partitions to go on with what comes, or use another BRIDGE_NAME to start over", e.Topic)
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
// its marker), and puts them into f. Between two segments nothing is in flight, so they may change here (I5).
func (w *worker) recount(f *offsets.Frontier, s *offsets.State) error {
	for _, c := range s.Cursors {
		if c != nil {
			f.Adopt(c.Pins)
		}
	}
	names := slices.Sorted(maps.Keys(f.Topics))
	if topic, ok := w.Topics.Constant(); ok && len(names) == 0 {
		names = []string{topic}
	}
	return w.retry(w.soft, w.p, func(ctx context.Context) error {
		counts, err := w.partitions(ctx, names...)
		if err != nil {
			return err
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

// compatible refuses a state that other settings, or another feed, have written.
func (b *Bridge) compatible(feed string, frozen map[string]string) error {
	reset := fmt.Sprintf("use another BRIDGE_NAME, or bridge reset, to start over, or set it back (the state is in topic %s)", b.cfg.Topic)
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

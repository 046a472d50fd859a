package bridge

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/kafka"
)

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
		if _, err := kafka.Create(ctx, b.admin, topic, partitions, b.TopicReplication, values); err != nil {
			return 0, err
		}
		// Were this given up, the next attempt would find the topic, and not do it.
		if err := settled(ctx, func() error { return b.keepHistory(ctx, topic) }); err != nil {
			return 0, err
		}
	}
	err = settled(ctx, func() error { have, err = b.partitions(ctx, topic); return err })
	if err == nil {
		b.Log.Info("topic created", "topic", topic, "partitions", have[topic])
	}
	return have[topic], err
}

// settleTimeout is how long brokers may take to hear of a topic that another one has created.
const settleTimeout = 5 * time.Second

// settled repeats f while it meets a broker that does not know a new topic yet.
func settled(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		err := f()
		var gone *MissingTopicError
		if !errors.As(err, &gone) && !errors.Is(err, kerr.UnknownTopicOrPartition) || sleep(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
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

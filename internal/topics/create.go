package topics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	settlePoll = 50 * time.Millisecond
	// settleTimeout is how long brokers may take to hear of a topic that another broker has created.
	settleTimeout = 5 * time.Second
)

// Create creates a topic unless it exists, and returns when the brokers answer for it: they say "unknown" for some
// moments after they have said "created". Created reports whether this call created it. Replication -1 is the brokers'
// default.
func Create(ctx context.Context, admin *kadm.Client, topic string, partitions int32, replication int16,
	settings map[string]*string,
) (created bool, err error) {
	_, err = admin.CreateTopic(ctx, partitions, replication, settings, topic)
	if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
		// Brokers do not say that a topic exists to a client that may not create it.
		if topics, lerr := admin.ListTopics(ctx, topic); lerr == nil && topics.Has(topic) {
			return false, nil
		}
	}
	created = err == nil
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return false, fmt.Errorf("creating topic %s: %w", topic, err)
	}
	for {
		topics, err := admin.ListTopics(ctx, topic)
		if err == nil {
			err = topics[topic].Err
		}
		if !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return created, err
		}
		if err := sleep(ctx, settlePoll); err != nil {
			return false, err
		}
	}
}

// ensureMarkers makes sure that the topic of markers has at least the partitions of its topic of records.
func (a *Admin) ensureMarkers(ctx context.Context, records string, partitions int32) error {
	markers := a.MarkersOf(records, partitions)
	have, err := a.ensure(ctx, &markers)
	if err != nil || have >= partitions {
		return err
	}
	if a.Partitions == 0 {
		return fmt.Errorf("topic %s has %d partitions, %s has %d: add partitions", markers.Name, have, records, partitions)
	}
	rs, err := a.admin().UpdatePartitions(ctx, int(partitions), markers.Name)
	if err == nil {
		err = rs.Error()
	}
	if err != nil {
		return fmt.Errorf("adding partitions to topic %s: %w", markers.Name, err)
	}
	return nil
}

// ensure makes sure that a topic exists, and returns its partitions.
func (a *Admin) ensure(ctx context.Context, t *Topic) (int32, error) {
	have, err := a.Count(ctx, t.Name)
	var gone *MissingError
	if !errors.As(err, &gone) {
		return have[t.Name], err
	}
	switch {
	case a.ByBroker:
		if err := a.request(ctx, t.Name); err != nil {
			return 0, err
		}
	case a.Partitions == 0:
		return 0, err
	default:
		if _, err := Create(ctx, a.admin(), t.Name, t.Partitions, t.Replication, t.settings()); err != nil {
			return 0, err
		}
		// If this attempt ended here, the next one would find the topic and leave its retention.
		if err := settled(ctx, func() error { return a.keepHistory(ctx, t.Name) }); err != nil {
			return 0, err
		}
	}
	err = settled(ctx, func() error { have, err = a.Count(ctx, t.Name); return err })
	if err == nil {
		a.Log.Info("topic created", "topic", t.Name, "partitions", have[t.Name])
	}
	return have[t.Name], err
}

// settled repeats f while it meets a broker that does not know a new topic yet.
func settled(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		err := f()
		var gone *MissingError
		unknown := errors.As(err, &gone) || errors.Is(err, kerr.UnknownTopicOrPartition)
		if !unknown || sleep(ctx, settlePoll) != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// request asks for a topic in the way that makes brokers create it, if they do.
func (a *Admin) request(ctx context.Context, topic string) error {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = true
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	if _, err := req.RequestWith(ctx, a.Client); err != nil {
		return fmt.Errorf("asking for topic %s: %w", topic, err)
	}
	return nil
}

// keepHistory turns the retention of a new topic off if it would delete history.
func (a *Admin) keepHistory(ctx context.Context, topic string) error {
	settings, err := Read(ctx, a.admin(), topic)
	if err != nil {
		return err
	}
	oldest, err := a.oldest(ctx, settings[topic])
	if err != nil {
		return err
	}
	if _, deletes := settings[topic].deletesHistory(oldest, a.Now()); !deletes {
		return nil
	}
	value := forever
	set := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: retention, Value: &value}}
	rs, err := a.admin().AlterTopicConfigs(ctx, set, topic)
	if err == nil {
		_, err = rs.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
	}
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return nil // Open logs what to do about it
	}
	if err != nil {
		return fmt.Errorf("setting %s=%s of topic %s: %w", retention, forever, topic, err)
	}
	a.Log.Warn("history is older than the retention of new topics; this topic keeps everything", "topic", topic,
		"setting", retention+"="+forever, "hint", "set "+retention+" when consumers have read the history")
	return nil
}

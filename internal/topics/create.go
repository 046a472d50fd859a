package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
)

// Count reads how many partitions topics have. One that does not exist is a MissingError.
func Count(ctx context.Context, admin *kadm.Client, names ...string) (map[string]int32, error) {
	counts := map[string]int32{}
	if len(names) == 0 {
		return counts, nil
	}
	listed, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of topics %s: %w", strings.Join(names, ", "), err)
	}
	for _, name := range names {
		t, ok := listed[name]
		if !ok || errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			return nil, &MissingError{Topic: name}
		}
		if t.Err != nil {
			return nil, fmt.Errorf("reading the metadata of topic %s: %w", name, t.Err)
		}
		counts[name] = int32(len(t.Partitions))
	}
	return counts, nil
}

// Create creates a topic unless it exists, and returns its partitions when the brokers answer for it. Created reports
// whether this call created it. Replication -1 is the brokers' default.
func Create(ctx context.Context, admin *kadm.Client, topic string, partitions int32, replication int16,
	settings map[string]*string,
) (have int32, created bool, err error) {
	_, err = admin.CreateTopic(ctx, partitions, replication, settings, topic)
	if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
		// Brokers do not say that a topic exists to a client that may not create it.
		if counts, missing := Count(ctx, admin, topic); missing == nil {
			return counts[topic], false, nil
		}
	}
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return 0, false, plain.WithRemedy(fmt.Errorf("creating topic %s: %w", topic, err), CreateAdvice(err))
	}
	created = err == nil
	have, err = awaited(ctx, admin, topic)
	return have, created, err
}

// CreateAdvice says what to do about a topic that the brokers do not create; "" if the reason is another one.
func CreateAdvice(err error) string {
	const yourself = ", or create the topic yourself"
	switch {
	case errors.Is(err, kerr.InvalidReplicationFactor):
		return "set BRIDGE_TOPIC_REPLICATION to at most the number of brokers" + yourself
	case errors.Is(err, kerr.InvalidPartitions), errors.Is(err, kerr.InvalidConfig),
		errors.Is(err, kerr.PolicyViolation):
		return "set BRIDGE_TOPIC_PARTITIONS and BRIDGE_TOPIC_REPLICATION to what the brokers allow" + yourself
	}
	return ""
}

// ensure makes sure that a topic exists, and returns its partitions.
func (a *Admin) ensure(ctx context.Context, t *Topic) (partitions int32, err error) {
	have, err := Count(ctx, a.admin(), t.Name)
	var gone *MissingError
	switch {
	case !errors.As(err, &gone):
		return have[t.Name], err
	case a.By == ByBrokers:
		if err = a.request(ctx, t.Name); err == nil {
			partitions, err = awaited(ctx, a.admin(), t.Name)
		}
	case a.By == ByNobody:
		gone.Create = []string{a.CreateCommand(t)}
		return 0, gone
	default:
		var settings map[string]*string
		if settings, err = a.newSettings(ctx, t.Kind, t.Name); err == nil {
			partitions, _, err = Create(ctx, a.admin(), t.Name, t.Partitions, a.Replication, settings)
		}
	}
	if err == nil {
		a.Log.Info("topic created", "topic", t.Name, "partitions", partitions)
	}
	return partitions, err
}

// newSettings returns the settings with which to create topics. Everything that they need is in the request: after a
// second one that never comes, the brokers would delete history for good.
func (a *Admin) newSettings(ctx context.Context, kind Kind, names ...string) (map[string]*string, error) {
	settings := a.Settings(kind)
	if kind != Records && kind != Markers || settings[retention] != nil || *settings[cleanupPolicy] != "delete" {
		return settings, nil
	}
	oldest, ok, err := a.Oldest(ctx)
	if err != nil || !ok {
		return settings, err
	}
	// The brokers say with which settings they would create a topic. If they do not, history counts as too old.
	short := true
	rs, err := a.admin().ValidateCreateTopics(ctx, a.Partitions, a.Replication, settings, names[0])
	if err != nil {
		return nil, fmt.Errorf("asking for the settings of new topics: %w", err)
	}
	if got := rs[names[0]]; got.Configs[retention].Value != nil {
		usual := SettingsOf(kadm.ResourceConfig{Configs: slices.Collect(maps.Values(got.Configs))})
		t := Topic{Kind: kind, Name: names[0], Oldest: oldest}
		short = slices.ContainsFunc(a.content(&t, usual, a.Now()).problems, func(p Problem) bool {
			return p.Setting == retention
		})
	}
	if short {
		value := forever
		settings[retention] = &value
		what := names[0]
		if n := len(names); n > 1 {
			what += " and " + plain.Count(n-1, "other")
		}
		a.Log.Warn("history is older than the retention of new topics; this topic keeps everything", "topic", what,
			"setting", retention+"="+forever, "hint", "set "+retention+" when consumers have read the history")
	}
	return settings, nil
}

// Prepare creates the topics of records that are missing, and those of their markers, all of a kind with one request.
// It returns how many it has created. Open judges the topics afterwards, and reports those that could not be created.
func (a *Admin) Prepare(ctx context.Context, records []string) (created int, err error) {
	if a.By != ByBridge {
		return 0, nil
	}
	kinds := map[Kind][]string{Records: records}
	if a.Beside {
		for _, name := range records {
			kinds[Markers] = append(kinds[Markers], plain.MarkerTopic(name))
		}
	}
	for kind, names := range kinds {
		settings, err := a.newSettings(ctx, kind, names...)
		if err != nil {
			return created, err
		}
		rs, err := a.admin().CreateTopics(ctx, a.Partitions, a.Replication, settings, names...)
		if err != nil {
			return created, fmt.Errorf("creating %d topics: %w", len(names), err)
		}
		var fresh []string
		for name, r := range rs {
			if r.Err == nil {
				fresh = append(fresh, name)
			}
		}
		created += len(fresh)
		if err := settled(ctx, func() error { _, err := Count(ctx, a.admin(), fresh...); return err }); err != nil {
			return created, err
		}
	}
	return created, nil
}

// awaited returns the partitions of a topic that was created a moment ago.
func awaited(ctx context.Context, admin *kadm.Client, topic string) (int32, error) {
	var counts map[string]int32
	err := settled(ctx, func() (err error) { counts, err = Count(ctx, admin, topic); return err })
	return counts[topic], err
}

const (
	settlePoll = 50 * time.Millisecond
	// settleTimeout is how long brokers may take to hear of a topic that another broker has created.
	settleTimeout = 5 * time.Second
)

// settled repeats f while it meets a broker that does not know a new topic yet.
func settled(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		err := f()
		var gone *MissingError
		if !errors.As(err, &gone) && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return err
		}
		if pause.For(ctx, settlePoll) != nil {
			return err
		}
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

package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
)

// Admin looks after the topics of a running bridge. It is safe for concurrent use.
type Admin struct {
	Plan
	Client *kgo.Client
	// Oldest returns the time of the first event that a first start reads, if there is one. It lists the feed.
	Oldest func(context.Context) (at time.Time, ok bool, err error)
	Now    func() time.Time
	Log    *slog.Logger
}

// admin shares the connections of the client.
func (a *Admin) admin() *kadm.Client { return kadm.NewClient(a.Client) }

// Open makes sure that a topic of records and that of its markers exist and fit. It returns the partitions, and the
// largest batch that the topic of records takes.
func (a *Admin) Open(ctx context.Context, records string) (partitions, limit int32, err error) {
	partitions, limit, err = a.open(ctx, Topic{Kind: Records, Name: records, Partitions: a.Partitions})
	if err == nil && a.Beside {
		err = a.openMarkers(ctx, records, partitions)
	}
	return partitions, limit, err
}

// OpenDeadLetters makes sure that the topic of dead letters exists.
func (a *Admin) OpenDeadLetters(ctx context.Context, name string) error {
	_, _, err := a.open(ctx, Topic{Kind: DeadLetters, Name: name, Partitions: 1})
	return err
}

// openMarkers makes sure that the topic of markers has at least the partitions of its topic of records.
func (a *Admin) openMarkers(ctx context.Context, records string, partitions int32) error {
	name := plain.MarkerTopic(records)
	have, _, err := a.open(ctx, Topic{Kind: Markers, Name: name, Partitions: partitions})
	if err != nil || have >= partitions {
		return err
	}
	if a.By != ByBridge {
		return fmt.Errorf("topic %s has %s, %s has %d: add partitions", name, plain.Count(have, "partition"), records,
			partitions)
	}
	rs, err := a.admin().UpdatePartitions(ctx, int(partitions), name)
	if err == nil {
		err = rs.Error()
	}
	if err != nil {
		return fmt.Errorf("adding partitions to topic %s: %w", name, err)
	}
	return nil
}

// open makes sure that a topic exists and fits. It returns the partitions, and the largest batch that the topic takes.
func (a *Admin) open(ctx context.Context, t Topic) (partitions, limit int32, err error) {
	if partitions, err = a.ensure(ctx, &t); err != nil {
		return 0, 0, err
	}
	err = settled(ctx, func() error {
		all, err := Read(ctx, a.admin(), t.Name)
		if err != nil {
			return err
		}
		if _, deletes := all[t.Name].deletesAfter(); deletes {
			if t.Oldest, _, err = a.Oldest(ctx); err != nil {
				return err
			}
		}
		limit = min(maxRequest, all[t.Name].MaxMessage())
		problems, err := a.mend(ctx, a.content(&t, all[t.Name], a.Now()).problems)
		for _, p := range problems {
			a.Log.Warn("a setting of the topic does not fit", "topic", p.Topic, "setting", p.Setting+"="+p.Value,
				"why", p.Why, "hint", p.Do)
		}
		return cmp.Or(err, unfit(problems))
	})
	return partitions, limit, err
}

// mend turns off the retention of a topic that the bridge has created without that: a former version did so in a second
// request, and may have ended before. It returns the problems that remain.
func (a *Admin) mend(ctx context.Context, problems []Problem) (remain []Problem, err error) {
	i := slices.IndexFunc(problems, func(p Problem) bool {
		return p.Setting == retention || p.Setting == retentionSize
	})
	if i < 0 || a.By != ByBridge {
		return problems, nil
	}
	name := problems[i].Topic
	configs, err := a.admin().DescribeTopicConfigs(ctx, name)
	if err != nil {
		return problems, fmt.Errorf("reading the settings of topic %s: %w", name, err)
	}
	own := map[string]bool{} // set for this topic, not for all of the broker
	for _, rc := range configs {
		for _, c := range rc.Configs {
			own[c.Key] = c.Source == kmsg.ConfigSourceDynamicTopicConfig
		}
	}
	if !own[cleanupPolicy] || own[retention] || own[retentionSize] { // somebody else has created or set it
		return problems, nil
	}
	var set []kadm.AlterConfig
	for _, limit := range []string{retention, retentionSize} {
		value := forever
		if limit == retention || a.Copy != NoCopy {
			set = append(set, kadm.AlterConfig{Op: kadm.SetConfig, Name: limit, Value: &value})
		}
	}
	rs, err := a.admin().AlterTopicConfigs(ctx, set, name)
	if err == nil {
		_, err = rs.On(name, func(r *kadm.AlterConfigsResponse) error { return r.Err })
	}
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return problems, nil
	}
	if err != nil {
		return problems, fmt.Errorf("setting %s=%s of topic %s: %w", retention, forever, name, err)
	}
	a.Log.Warn("the topic was created without the retention that it needs; it keeps everything now", "topic", name,
		"setting", retention+"="+forever)
	return slices.Delete(problems, i, i+1), nil
}

// Fit returns a Problem if topics of an earlier start can't hold what is to be written. It creates none of them: their
// records would be gone. Oldest is the time of the first event that is still to be written.
func (a *Admin) Fit(ctx context.Context, had map[string]int32, oldest time.Time) error {
	if _, err := a.recount(ctx, had); err != nil {
		return err
	}
	all, err := Read(ctx, a.admin(), slices.Collect(maps.Keys(had))...)
	if err != nil {
		return a.withPartitions(ctx, err, had)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t := Topic{Kind: Records, Name: name, Oldest: oldest}
		problems, err := a.mend(ctx, a.content(&t, all[name], a.Now()).problems)
		if err := cmp.Or(err, unfit(problems)); err != nil {
			return err
		}
	}
	return nil
}

// Recount reads the partitions of topics that had some, and gives the topics of markers as many (I6: no partition
// misses its marker).
func (a *Admin) Recount(ctx context.Context, had map[string]int32) (map[string]int32, error) {
	counts, err := a.recount(ctx, had)
	if err != nil || !a.Beside {
		return counts, err
	}
	var markers []string
	for name := range had {
		markers = append(markers, plain.MarkerTopic(name))
	}
	have, err := Count(ctx, a.admin(), markers...)
	if err != nil && !errors.As(err, new(*MissingError)) {
		return nil, err
	}
	for topic, n := range counts {
		if have[plain.MarkerTopic(topic)] < n {
			if err := a.openMarkers(ctx, topic, n); err != nil {
				return nil, err
			}
		}
	}
	return counts, nil
}

// recount reads the partitions of topics that had some, and no fewer.
func (a *Admin) recount(ctx context.Context, had map[string]int32) (map[string]int32, error) {
	counts, err := Count(ctx, a.admin(), slices.Sorted(maps.Keys(had))...)
	if err != nil {
		return nil, a.withPartitions(ctx, err, had)
	}
	for topic, n := range counts { // Kafka removes none: a broker lags behind the others, or the topic is another one
		if n < had[topic] {
			return nil, plain.WithRemedy(
				fmt.Errorf("topic %s has %s and had %d", topic, plain.Count(n, "partition"), had[topic]),
				"if it was deleted and created again, its records are gone: "+a.Enlarge(topic, had[topic]))
		}
	}
	return counts, nil
}

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
		return 0, false, fmt.Errorf("creating topic %s: %w", topic, err)
	}
	created = err == nil
	have, err = awaited(ctx, admin, topic)
	return have, created, err
}

// ensure makes sure that a topic exists, and returns its partitions.
func (a *Admin) ensure(ctx context.Context, t *Topic) (partitions int32, err error) {
	have, err := Count(ctx, a.admin(), t.Name)
	gone, missing := errors.AsType[*MissingError](err)
	switch {
	case !missing:
		return have[t.Name], err
	case a.By == ByBrokers:
		if err = a.request(ctx, t.Name); err == nil {
			partitions, err = awaited(ctx, a.admin(), t.Name)
		}
	case a.By == ByNobody:
		gone.Create = []string{a.CreateCommand(a.dated(ctx, t))}
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
	if !ages(kind, settings) {
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
		if !errors.As(err, new(*MissingError)) && !errors.Is(err, kerr.UnknownTopicOrPartition) {
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

// OpenState makes sure that the topic of the bridge's state exists, and keeps the state. It returns the number of
// partitions, which is the number of leases and never changes. Created says that this call created it: then there is
// nothing in it.
func (a *Admin) OpenState(ctx context.Context, name string, leases int32) (have int, created bool, err error) {
	partitions := map[string]int32{}
	if a.By == ByNobody {
		partitions, err = Count(ctx, a.admin(), name)
	} else { // brokers that create topics do not know the settings
		partitions[name], created, err = Create(ctx, a.admin(), name, leases, a.Replication, a.Settings(State))
	}
	if err == nil && !created { // a new one is not known to all brokers yet
		err = a.keepsState(ctx, name)
	}
	return int(partitions[name]), created, err
}

// keepsState returns a Problem if the brokers delete what is written to the topic of the bridge's state.
func (a *Admin) keepsState(ctx context.Context, name string) error {
	settings, err := Read(ctx, a.admin(), name)
	if err != nil {
		return err
	}
	if problems := a.content(&Topic{Kind: State, Name: name}, settings[name], a.Now()).problems; len(problems) > 0 {
		return &problems[0]
	}
	return nil
}

// Unwritable returns an error that names a partition to which the brokers write nothing now, because it has no leader,
// or fewer replicas in sync than they must have. With stuck, it counts also if it has no more replicas at all: from
// Kafka 4.0 on, all of them are enough. It returns nil if there is none, or if the brokers do not say: clients may be
// permitted to write and not to read the settings.
func Unwritable(ctx context.Context, admin *kadm.Client, stuck bool, names ...string) error {
	listed, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil // which shows elsewhere
	}
	short := func(p kadm.PartitionDetail) bool {
		return p.Leader >= 0 && (stuck || len(p.ISR) < len(p.Replicas))
	}
	var suspects []string
	for name, t := range listed {
		if slices.ContainsFunc(t.Partitions.Sorted(), short) {
			suspects = append(suspects, name)
		}
	}
	least := minInSyncOf(ctx, admin, suspects)
	for _, name := range slices.Sorted(slices.Values(names)) {
		if listed[name].Err != nil {
			continue
		}
		for _, p := range listed[name].Partitions.Sorted() {
			why, do := "", "start the missing brokers, or lower the setting"
			switch in := len(p.ISR); {
			case p.Leader < 0:
				why, do = "has no leader", "start its brokers"
			case short(p) && in < least[name]:
				why = fmt.Sprintf("has %s in sync, and %s is %d", plain.Count(in, "replica"), minInSync, least[name])
			default:
				continue
			}
			err := fmt.Errorf("topic %s takes no records: partition %d %s", name, p.Partition, why)
			return plain.WithRemedy(err, do)
		}
	}
	return nil
}

// minInSyncOf returns how many replicas of each topic must be in sync, as far as the brokers say. It asks once for all
// topics, of which a bridge may have hundreds.
func minInSyncOf(ctx context.Context, admin *kadm.Client, names []string) map[string]int {
	configs, err := admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil
	}
	least := map[string]int{}
	for _, rc := range configs {
		least[rc.Name], _ = strconv.Atoi(SettingsOf(rc)[minInSync])
	}
	return least
}

package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

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

// Open makes sure that a topic of records and that of its markers exist and fit. It returns the partitions.
func (a *Admin) Open(ctx context.Context, records string) (partitions int32, err error) {
	partitions, err = a.open(ctx, Topic{Kind: Records, Name: records, Partitions: a.Partitions})
	if err == nil && a.Beside {
		err = a.openMarkers(ctx, records, partitions)
	}
	return partitions, err
}

// OpenDeadLetters makes sure that the topic of dead letters exists.
func (a *Admin) OpenDeadLetters(ctx context.Context, name string) error {
	_, err := a.open(ctx, Topic{Kind: DeadLetters, Name: name, Partitions: 1})
	return err
}

// openMarkers makes sure that the topic of markers has at least the partitions of its topic of records.
func (a *Admin) openMarkers(ctx context.Context, records string, partitions int32) error {
	name := plain.MarkerTopic(records)
	have, err := a.open(ctx, Topic{Kind: Markers, Name: name, Partitions: partitions})
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

// open makes sure that a topic exists and fits. It returns the partitions.
func (a *Admin) open(ctx context.Context, t Topic) (partitions int32, err error) {
	if partitions, err = a.ensure(ctx, &t); err != nil {
		return 0, err
	}
	return partitions, settled(ctx, func() error {
		all, err := Read(ctx, a.admin(), t.Name)
		if err != nil {
			return err
		}
		if _, deletes := all[t.Name].deletesAfter(); deletes {
			if t.Oldest, _, err = a.Oldest(ctx); err != nil {
				return err
			}
		}
		problems, err := a.mend(ctx, a.content(&t, all[t.Name], a.Now()).problems)
		for _, p := range problems {
			a.Log.Warn("a setting of the topic does not fit", "topic", p.Topic, "setting", p.Setting+"="+p.Value,
				"why", p.Why, "hint", p.Do)
		}
		return cmp.Or(err, unfit(problems))
	})
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
	all, err := Read(ctx, a.admin(), slices.Collect(maps.Keys(had))...)
	if err != nil {
		return a.withPartitions(err, had)
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
	names := slices.Sorted(maps.Keys(had))
	counts, err := Count(ctx, a.admin(), names...)
	if err != nil {
		return nil, a.withPartitions(err, had)
	}
	for topic, n := range counts { // Kafka removes none: a broker lags behind the others, or the topic is another one
		if n < had[topic] {
			return nil, fmt.Errorf("topic %s has %s and had %d: if it was deleted, create it with as many",
				topic, plain.Count(n, "partition"), had[topic])
		}
	}
	if !a.Beside {
		return counts, nil
	}
	var markers []string
	for _, name := range names {
		markers = append(markers, plain.MarkerTopic(name))
	}
	have, err := Count(ctx, a.admin(), markers...)
	var gone *MissingError
	if err != nil && !errors.As(err, &gone) {
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

package topics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/plain"
	"blobfeed/internal/topicname"
)

// Admin looks after the topics of a running bridge. It is safe for concurrent use.
type Admin struct {
	Plan
	Client *kgo.Client
	// Oldest returns the time of the first event that a first start reads, if there is one. It lists the feed.
	Oldest func(context.Context) (at time.Time, ok bool, err error)
	Now    func() time.Time
	Log    *slog.Logger

	kept sync.Map // set of the topics whose retention it has turned off: brokers may say the former for some moments
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
	name := topicname.Markers(records)
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
	partitions, fresh, err := a.ensure(ctx, &t)
	if err != nil {
		return 0, err
	}
	return partitions, settled(ctx, func() error {
		problems, err := a.judge(ctx, &t)
		if err != nil {
			return err
		}
		for _, p := range problems {
			// If this attempt ended before a new topic keeps history, the next one would find the topic and leave it.
			if _, kept := a.kept.Load(t.Name); kept && p.Setting == retention {
				continue
			}
			if fresh && p.Setting == retention {
				if kept, err := a.keepHistory(ctx, t.Name); kept || err != nil {
					return err
				}
			}
			a.Log.Warn("a setting of the topic does not fit", "topic", p.Topic, "setting", p.Setting+"="+p.Value,
				"why", p.Why, "hint", p.Do)
		}
		return nil
	})
}

// judge reads a topic's settings. Its error is a Problem if that must stop the bridge.
func (a *Admin) judge(ctx context.Context, t *Topic) ([]Problem, error) {
	all, err := Read(ctx, a.admin(), t.Name)
	if err != nil {
		return nil, err
	}
	if _, deletes := all[t.Name].deletesAfter(); deletes {
		at, ok, err := a.Oldest(ctx)
		if err != nil {
			return nil, err
		}
		if ok {
			t.Oldest = at
		}
	}
	problems := a.content(t, all[t.Name], a.Now()).problems
	return problems, unfit(problems)
}

// keepHistories turns off the retention of those new topics that would lose history.
func (a *Admin) keepHistories(ctx context.Context, kind Kind, names []string) error {
	all, err := Read(ctx, a.admin(), names...)
	if err != nil {
		return err
	}
	oldest, _, err := a.Oldest(ctx)
	if err != nil {
		return err
	}
	var short []string
	for _, name := range names {
		j := a.content(&Topic{Kind: kind, Name: name, Oldest: oldest}, all[name], a.Now())
		if slices.ContainsFunc(j.problems, func(p Problem) bool { return p.Setting == retention }) {
			short = append(short, name)
		}
	}
	if len(short) > 0 {
		_, err = a.keepHistory(ctx, short...)
	}
	return err
}

// Fit returns a Problem if topics of an earlier start can't hold what is to be written. It creates none of them: their
// records would be gone.
func (a *Admin) Fit(ctx context.Context, had map[string]int32) error {
	all, err := Read(ctx, a.admin(), slices.Collect(maps.Keys(had))...)
	if err != nil {
		return a.withPartitions(err, had)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t := Topic{Kind: Records, Name: name}
		if err := unfit(a.content(&t, all[name], a.Now()).problems); err != nil {
			return err
		}
	}
	return nil
}

// keepHistory turns off the retention of new topics. It reports false if that is not permitted.
func (a *Admin) keepHistory(ctx context.Context, topics ...string) (kept bool, err error) {
	value := forever
	set := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: retention, Value: &value}}
	rs, err := a.admin().AlterTopicConfigs(ctx, set, topics...)
	for _, topic := range topics {
		if err == nil {
			_, err = rs.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
		}
	}
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return false, nil
	}
	what := topics[0]
	if n := len(topics); n > 1 {
		what = what + " and " + plain.Count(n-1, "other")
	}
	if err != nil {
		return false, fmt.Errorf("setting %s=%s of topic %s: %w", retention, forever, what, err)
	}
	for _, topic := range topics {
		a.kept.Store(topic, true)
	}
	a.Log.Warn("history is older than the retention of new topics; this topic keeps everything", "topic", what,
		"setting", retention+"="+forever, "hint", "set "+retention+" when consumers have read the history")
	return true, nil
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
		markers = append(markers, topicname.Markers(name))
	}
	have, err := Count(ctx, a.admin(), markers...)
	var gone *MissingError
	if err != nil && !errors.As(err, &gone) {
		return nil, err
	}
	for topic, n := range counts {
		if have[topicname.Markers(topic)] < n {
			if err := a.openMarkers(ctx, topic, n); err != nil {
				return nil, err
			}
		}
	}
	return counts, nil
}

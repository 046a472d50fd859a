package topics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/topicname"
)

// Admin looks after the topics of a running bridge. It is safe for concurrent use.
type Admin struct {
	Plan
	Client *kgo.Client
	// Oldest returns the time of the first event that a first start reads, if there is one.
	Oldest func(context.Context) (at time.Time, ok bool, err error)
	Now    func() time.Time
	Log    *slog.Logger
}

// admin shares the connections of the client, so closing it is the client's.
func (a *Admin) admin() *kadm.Client { return kadm.NewClient(a.Client) }

// MissingError is a topic that does not exist.
type MissingError struct {
	Topic string
	Had   int32 // partitions, if records were written to it; 0: unknown
}

func (e *MissingError) Error() string { return "topic " + e.Topic + " does not exist: " + e.Advice() }

// Advice says what to do about it.
func (e *MissingError) Advice() string {
	const restart = "or restart from scratch with bridge reset, or with another BRIDGE_NAME and BRIDGE_TOPIC"
	if e.Had > 0 {
		return fmt.Sprintf("its records are gone: create it with %d partitions, as it had, to continue with new records, %s",
			e.Had, restart)
	}
	return "create it, or set BRIDGE_TOPIC_CREATE=explicit. If it was deleted, its records are gone: " +
		"create it with as many partitions to continue with new records, " + restart
}

// Open makes sure that a topic of records and that of its markers exist and fit. It returns the partitions.
func (a *Admin) Open(ctx context.Context, name string) (partitions int32, err error) {
	t := a.Records(name)
	if partitions, err = a.ensure(ctx, &t); err != nil {
		return 0, err
	}
	all := []Topic{t}
	if a.Markers == envelope.MarkersTopic {
		if err := a.ensureMarkers(ctx, name, partitions); err != nil {
			return 0, err
		}
		all = append(all, a.MarkersOf(name, partitions))
	}
	return partitions, settled(ctx, func() error { return a.judge(ctx, all, true) })
}

// OpenDeadLetters makes sure that the topic of dead letters exists.
func (a *Admin) OpenDeadLetters(ctx context.Context, name string) error {
	t := a.DeadLetters(name)
	_, err := a.ensure(ctx, &t)
	return err
}

// Fit returns a Problem if topics of an earlier start can't hold what is to be written. It creates none of them: their
// records would be gone.
func (a *Admin) Fit(ctx context.Context, had map[string]int32) error {
	var all []Topic
	for _, name := range slices.Sorted(maps.Keys(had)) {
		all = append(all, a.Records(name))
	}
	return hadPartitions(a.judge(ctx, all, false), had)
}

// judge returns a Problem that must stop the bridge, and logs the others if it is asked to.
func (a *Admin) judge(ctx context.Context, all []Topic, log bool) error {
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	settings, err := Read(ctx, a.admin(), names...)
	if err != nil {
		return err
	}
	for _, t := range all {
		if log && t.Kind == Records {
			if t.Oldest, err = a.oldest(ctx, settings[t.Name]); err != nil {
				return err
			}
		}
		for _, p := range a.content(&t, settings[t.Name], a.Now()).problems {
			if p.Lasting {
				return &p
			}
			if log {
				a.Log.Warn("a setting of the topic does not fit", "topic", p.Topic, "setting", p.Setting+"="+p.Value,
					"why", p.Why, "hint", p.Do)
			}
		}
	}
	return nil
}

// oldest returns the time of the oldest event to be written; zero: there is none, or retention deletes nothing. It takes
// listings of the feed.
func (a *Admin) oldest(ctx context.Context, s Settings) (time.Time, error) {
	if _, deletes := s.keepsFor(); !deletes {
		return time.Time{}, nil
	}
	at, ok, err := a.Oldest(ctx)
	if !ok || err != nil {
		return time.Time{}, err
	}
	return at, nil
}

// Count reads how many partitions topics have. One that does not exist is a MissingError.
func (a *Admin) Count(ctx context.Context, names ...string) (map[string]int32, error) {
	counts := map[string]int32{}
	if len(names) == 0 {
		return counts, nil
	}
	listed, err := a.admin().ListTopics(ctx, names...)
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

// Recount reads the partitions of topics that had some, and gives the topics of markers as many (I6: no partition misses
// its marker).
func (a *Admin) Recount(ctx context.Context, had map[string]int32) (map[string]int32, error) {
	names := slices.Sorted(maps.Keys(had))
	counts, err := a.Count(ctx, names...)
	if err != nil {
		return nil, hadPartitions(err, had)
	}
	for topic, n := range counts { // Kafka removes none: a broker lags behind the others, or the topic is another one
		if n < had[topic] {
			return nil, fmt.Errorf("topic %s has %d partitions and had %d: if it was deleted, create it with as many",
				topic, n, had[topic])
		}
	}
	if a.Markers != envelope.MarkersTopic {
		return counts, nil
	}
	var markers []string
	for _, name := range names {
		markers = append(markers, topicname.Markers(name))
	}
	have, err := a.Count(ctx, markers...)
	var gone *MissingError
	if err != nil && !errors.As(err, &gone) {
		return nil, err
	}
	for topic, n := range counts {
		if have[topicname.Markers(topic)] < n {
			if err := a.ensureMarkers(ctx, topic, n); err != nil {
				return nil, err
			}
		}
	}
	return counts, nil
}

// hadPartitions adds to the error of a missing topic what it had.
func hadPartitions(err error, had map[string]int32) error {
	var gone *MissingError
	if errors.As(err, &gone) && had[gone.Topic] > 0 {
		return &MissingError{Topic: gone.Topic, Had: had[gone.Topic]}
	}
	return err
}

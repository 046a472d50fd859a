package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/config"
	"blobfeed/internal/status"
	"blobfeed/offsets"
)

// stateTimeout is when reading the bridge's topic is given up.
const stateTimeout = 30 * time.Second

var errSilent = errors.New("the brokers did not answer in time")

// state prints what the bridge that the settings name keeps in its topic.
func (d dumper) state(ctx context.Context) error {
	c, err := loadKafka()
	if err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	return inState(ctx, c, func(_ context.Context, _ *reader, s *offsets.State) error { return d.documents(s) })
}

func (d dumper) documents(s *offsets.State) error {
	if f := s.Frontier; f != nil {
		if err := d.print(map[string]any{"key": "frontier", "value": f}, "frontier  completed %s  current %s  resolved %s  feed %s  by %s at %s",
			orDash(f.Completed.String()), orDash(f.Current.String()), orDash(f.Resolved), f.Feed, f.Owner, f.Time.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	for lease, cur := range s.Cursors {
		if cur == nil {
			continue
		}
		where := withFrontier
		if !cur.Over(s.Frontier) {
			where = fmt.Sprintf("segment %s  done %-5t ", cur.Segment, cur.Done)
			for _, name := range slices.Sorted(maps.Keys(cur.Shards)) {
				where += fmt.Sprintf(" %s:%s", name, cur.Shards[name])
			}
		}
		if err := d.print(map[string]any{"key": "cursor", "lease": lease, "owner": s.Owners[lease], "value": cur}, "lease %-3d %s  events %d  by %s at %s",
			lease, where, cur.Counts.Read, s.Owners[lease], cur.Time.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}

// reader reads the state of the bridge that the settings name.
type reader struct {
	status.Reader
	config *config.Config
}

// inState calls f with the state of the bridge that the settings name, and the reader that read it.
func inState(ctx context.Context, c *config.Config, f func(context.Context, *reader, *offsets.State) error) error {
	r, done, err := connect(c)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, stateTimeout, errSilent)
	defer cancel()
	s, err := r.State(ctx)
	if err != nil {
		return err
	}
	return f(ctx, r, s)
}

// connectAny is connect with the settings of a verb that only looks at what is in Kafka.
func connectAny() (r *reader, done func(), err error) {
	c, err := loadKafka()
	if err != nil {
		return nil, nil, &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	return connect(c)
}

// connect returns a reader of the state of the bridge that the settings name, and what ends it.
func connect(c *config.Config) (r *reader, done func(), err error) {
	client, err := kafkaClient(c, c.Name+"-cli", 1000)
	if err != nil {
		return nil, nil, &usageError{err}
	}
	opts, err := client.Options()
	if err != nil {
		return nil, nil, &usageError{err}
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, nil, &usageError{fmt.Errorf("creating the Kafka client: %w", err)}
	}
	return &reader{status.Reader{Name: c.Name, Topic: c.Name + ".offsets", Admin: kadm.NewClient(cl), Client: opts, Now: time.Now}, c}, cl.Close, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/config"
	"blobfeed/offsets"
)

// stateTimeout is when reading the bridge's topic is given up.
const stateTimeout = 30 * time.Second

// state prints what the bridge that the settings name keeps in its topic.
func (d dumper) state(ctx context.Context) error {
	c, err := config.Load(true)
	if err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stateTimeout, errors.New("the brokers did not answer in time"))
	defer cancel()
	s, err := readState(ctx, c)
	if err != nil {
		return err
	}
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
		var shards []string
		for _, name := range slices.Sorted(maps.Keys(cur.Shards)) {
			p := cur.Shards[name]
			shards = append(shards, fmt.Sprintf("%s:%05d/%d", name, p.Chunk, p.Offset))
		}
		if err := d.print(map[string]any{"key": "cursor", "lease": lease, "owner": s.Owners[lease], "value": cur}, "lease %-3d segment %s  done %-5t  %s  events %d  by %s at %s",
			lease, cur.Segment, cur.Done, strings.Join(shards, " "), cur.Counts.Read, s.Owners[lease], cur.Time.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}

// readState reads the whole offsets topic.
func readState(ctx context.Context, c *config.Config) (*offsets.State, error) {
	client, err := kafkaClient(c, c.Name+"-cli", 1)
	if err != nil {
		return nil, &usageError{err}
	}
	opts, err := client.Options()
	if err != nil {
		return nil, &usageError{err}
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, &usageError{fmt.Errorf("creating the Kafka client: %w", err)}
	}
	defer cl.Close()
	topic := c.Name + ".offsets"
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("reading the end of %s: %w", topic, err)
	}
	if err := ends.Error(); err != nil {
		return nil, fmt.Errorf("reading the end of %s (did a bridge of this name ever run?): %w", topic, err)
	}
	at := make([]int64, len(ends[topic]))
	for p, end := range ends[topic] {
		at[p] = end.Offset
	}
	return offsets.ReadTo(ctx, topic, at, opts...)
}

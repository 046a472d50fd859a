package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"blobfeed/bridge"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/verify"
)

// progressState is what the bridge says it has delivered.
type progressState struct {
	frontier *offsets.Frontier
	cursors  map[int32]*offsets.Cursor
	leases   int
}

// state reads the offsets topic. It returns nil if there is none, or if it is about another topic.
func (v *verification) state(ctx context.Context) (*progressState, error) {
	t, err := openTopic(ctx, v.Client, v.Name+".offsets")
	if errors.Is(err, errNoTopic) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer t.close()
	s := &progressState{cursors: map[int32]*offsets.Cursor{}, leases: len(t.to)}
	var broken error
	err = t.scan(ctx, func(r verify.Record) bool {
		if broken = s.apply(&r); broken != nil {
			broken = fmt.Errorf("reading %s, partition %d, offset %d: %w", r.Topic, r.Partition, r.Offset, broken)
		}
		return broken == nil
	})
	if err := errors.Join(broken, err); err != nil {
		return nil, err
	}
	if s.frontier == nil || s.frontier.Topics[v.topic] == 0 {
		return nil, nil
	}
	return s, v.compatible(s.frontier)
}

func (s *progressState) apply(r *verify.Record) error {
	switch key := string(r.Key); key {
	case "cursor":
		s.cursors[r.Partition] = nil
		if r.Value == nil {
			return nil
		}
		c := new(offsets.Cursor)
		s.cursors[r.Partition] = c
		return decode(key, r.Value, c, &c.Version)
	case "frontier":
		s.frontier = nil
		if r.Value == nil {
			return nil
		}
		s.frontier = new(offsets.Frontier)
		return decode(key, r.Value, s.frontier, &s.frontier.Version)
	}
	return nil
}

func decode(key string, value []byte, doc any, version *int) error {
	if err := json.Unmarshal(value, doc); err != nil {
		return err
	}
	if *version < 1 || *version > offsets.Version {
		return &offsets.VersionError{Key: key, Have: *version}
	}
	return nil
}

// compatible refuses to judge a topic by settings, or a feed, with which it was not written.
func (v *verification) compatible(f *offsets.Frontier) error {
	if f.Feed != v.FeedID {
		return &bridge.SettingsError{Problem: fmt.Sprintf("BRIDGE_SOURCE_URL names feed %s, but %s was written from feed %s", v.FeedID, v.topic, f.Feed)}
	}
	for name, have := range f.Settings {
		if want, ok := v.Frozen[name]; ok && want != have && name != "BRIDGE_TOPIC" {
			return &bridge.SettingsError{Problem: fmt.Sprintf("%s=%s, but %s was written with %s", name, want, v.topic, have)}
		}
	}
	return nil
}

// covers reports whether all that is before next in a shard of a segment is committed.
func (s *progressState) covers(seg source.Segment, shard int, next source.ShardPosition) bool {
	if seg.Compare(s.frontier.Completed) <= 0 {
		return true
	}
	c := s.cursors[int32(shard%s.leases)]
	if c == nil {
		return false
	}
	at := c.At(seg, shard)
	return c.Finished(seg) || next.Chunk < at.Chunk || next.Chunk == at.Chunk && next.Offset <= at.Offset
}

// late is how many events the bridge counted as published too late.
func (s *progressState) late() (n int64) {
	for _, c := range s.cursors {
		if c != nil {
			n += c.Counts.Late
		}
	}
	return n
}

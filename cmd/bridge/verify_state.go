package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/kafka"
	"blobfeed/internal/topicname"
	"blobfeed/offsets"
	"blobfeed/source"
)

// progressState is what the bridge says it has delivered.
type progressState struct {
	*offsets.State
	topic string // where it is kept
}

// state reads the offsets topic: the bridge's own, or, if that does not know the topic, that of a replay into it. It
// returns nil if there is none.
func (v *verification) state(ctx context.Context) (*progressState, error) {
	names := []string{v.Name}
	if name, one := v.Topics.Constant(); v.topic == "" && one {
		v.topic = name
	}
	if v.topic != "" {
		names = append(names, replayName(v.config, v.topic))
	}
	for _, name := range names {
		s, err := v.cluster.state(ctx, topicname.State(name))
		if err != nil {
			return nil, err
		}
		if s == nil || s.Frontier == nil || v.topic != "" && s.Frontier.Topics[v.topic] == 0 {
			continue
		}
		if err := v.compatible(s.Frontier, name != v.Name); err != nil {
			return nil, err
		}
		if name != v.Name { // a replay has a name and dead letters of its own
			c := *v.config
			c.Name, v.Name, v.config = name, name, &c
			if v.DeadLetter != "" {
				v.DeadLetter = topicname.DeadLetters(c.Name)
			}
		}
		v.pinKeys(s)
		return &progressState{s, topicname.State(name)}, v.interval(s.Frontier)
	}
	return nil, nil
}

// pinKeys takes over the schema ids of Avro keys: those of a replay are not the ones of its own topic's schema.
func (v *verification) pinKeys(s *offsets.State) {
	encoder, encoderOf := v.Encoder, v.encoderOf
	pinned := func(e *envelope.Encoder, topic string) *envelope.Encoder {
		if id := keySchemaIn(s, topic); e != nil && id != 0 {
			e.PinKey(id)
		}
		return e
	}
	v.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		e, err := encoder(ctx, topic)
		return pinned(e, topic), err
	}
	v.encoderOf = func(ctx context.Context, o envelope.Options) (*envelope.Encoder, error) {
		e, err := encoderOf(ctx, o)
		return pinned(e, o.Topic), err
	}
}

// interval takes over where the bridge, or the replay, was to end. Where it began is in the frontier, too.
func (v *verification) interval(f *offsets.Frontier) (err error) {
	end, recorded := f.Settings["BRIDGE_END_TIME"]
	if !recorded {
		return nil
	}
	v.End = envelope.Timestamp{}
	if end != "" {
		v.End, err = bridge.ParseEnd(end)
	}
	return err
}

// topics returns those that the bridge has written to. Of the fresh ones only cursors know.
func (s *progressState) topics() (names []string, fresh map[string]bool) {
	if s == nil {
		return nil, nil
	}
	all := maps.Clone(s.Frontier.Topics)
	fresh = map[string]bool{}
	for _, c := range s.Cursors {
		if c == nil {
			continue
		}
		for topic, pin := range c.Pins {
			if _, known := all[topic]; !known {
				all[topic], fresh[topic] = pin.Partitions, true
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), fresh
}

// compatible refuses to judge a topic by settings, or a feed, with which it was not written.
func (v *verification) compatible(f *offsets.Frontier, replay bool) error {
	if v.feed && f.Feed != v.FeedID {
		return &bridge.SettingsError{Problem: fmt.Sprintf("BRIDGE_SOURCE_URL names feed %s, but %s was written from feed %s",
			v.FeedID, v.named(), f.Feed)}
	}
	for name, have := range f.Settings {
		switch name {
		case "BRIDGE_START", "BRIDGE_END_TIME": // what was recorded counts
			continue
		case "BRIDGE_TOPIC":
			if replay || v.topic != "" {
				continue
			}
		}
		if want, ok := v.Frozen[name]; ok && want != have {
			return &bridge.SettingsError{Problem: fmt.Sprintf("%s=%s, but %s was written with %s",
				name, want, v.named(), have)}
		}
	}
	return nil
}

// named is what messages call the topic, or topics.
func (v *verification) named() string {
	if v.topic == "" {
		return v.config.Topic
	}
	return v.topic
}

// covers reports whether all that is before next in a shard of a segment is committed.
func (s *progressState) covers(seg source.Segment, shard int, next source.ShardPosition) bool {
	if seg.Compare(s.Frontier.Completed) <= 0 {
		return true
	}
	c := s.Cursors[shard%len(s.Cursors)]
	if c == nil {
		return false
	}
	at := c.At(seg, shard)
	return c.Finished(seg) || next.Chunk < at.Chunk || next.Chunk == at.Chunk && next.Offset <= at.Offset
}

// late is how many events the bridge counted as published too late.
func (s *progressState) late() (n int64) {
	for _, c := range s.Cursors {
		if c != nil {
			n += c.Counts.Late
		}
	}
	return n
}

// bounds says between which times the last marker has to be: at or above what was resolved before the topic was read,
// and at or below what is resolved now.
func (v *verification) bounds(ctx context.Context, s *subject, state *progressState) error {
	if state == nil || v.until != (envelope.Timestamp{}) {
		return nil
	}
	least, most := state.Frontier.Resolved, state.Frontier.Resolved
	if s.fresh || state.Frontier.Gap != nil && len(s.markers) == 0 || state.Frontier.Owed { // its marker comes next
		least = ""
	}
	have, err := envelope.ParseTimestamp(s.checks.resolved.Newest())
	known, kerr := envelope.ParseTimestamp(most)
	if err == nil && (kerr != nil || have.Compare(known) > 0) { // the bridge delivers meanwhile
		now, err := v.cluster.state(ctx, state.topic)
		if err != nil {
			return err
		}
		if now != nil && now.Frontier != nil {
			most = now.Frontier.Resolved
		}
	}
	s.checks.resolved.Last(least, most)
	return nil
}

// unread says what a missing schema means to a reader.
func (v *verification) unread(err error, topic string) error {
	var refused *kafka.SchemaError
	if !errors.As(err, &refused) || !refused.Missing {
		return err
	}
	return &usageError{fmt.Errorf("subject %s in the registry does not have the schema of records as the settings make them (%s), and verify registers none: "+
		"use the settings, the registry and the version of bridge that topic %s was written with", refused.Subject, refused.Reason, topic)}
}

package judge

import (
	"context"
	"maps"
	"slices"

	"blobfeed/envelope"
	"blobfeed/internal/catalog"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/offsets"
	"blobfeed/source"
)

// progressState is the state of the bridge: what it has delivered.
type progressState struct {
	*offsets.State
	topic string // where it is kept
}

// state reads the offsets topic: the bridge's own, or, if that does not know the topic, that of a replay into it. It
// returns nil if there is none.
func (v *verification) state(ctx context.Context) (*progressState, error) {
	names := []string{v.Name}
	if name, one := v.Topics.Constant(); v.Topic == "" && one {
		v.Topic = name
	}
	if v.Topic != "" {
		names = append(names, v.ReplayName(v.Topic))
	}
	for _, name := range names {
		s, err := v.cluster.state(ctx, plain.StateTopic(name))
		if err != nil {
			return nil, err
		}
		if s == nil || s.Frontier == nil || v.Topic != "" && s.Frontier.Topics[v.Topic] == 0 {
			continue
		}
		if err := v.compatible(s.Frontier, name != v.Name); err != nil {
			return nil, err
		}
		if name != v.Name { // a replay has a name and dead letters of its own
			v.Name = name
			if v.DeadLetter != "" {
				v.DeadLetter = plain.DeadLetterTopic(name)
			}
		}
		v.pinKeys(s)
		return &progressState{s, plain.StateTopic(name)}, v.interval(s.Frontier)
	}
	return nil, nil
}

// stateless rejects a topic without a state, unless it may be a copy: somebody named it, and no other bridge writes it.
func (v *verification) stateless(ctx context.Context, named bool) error {
	if v.Topic == "" {
		return nil // of a template: subjects says that there is none
	}
	if !v.Shared {
		claims, _, err := v.cluster.claims(ctx, v.Name)
		if err != nil {
			return err
		}
		for _, c := range claims {
			if slices.Contains(catalog.RecordTopics(&c), v.Topic) {
				return unusable("bridge %s has stored nothing about topic %s, which bridge %s writes: "+
					"set BRIDGE_NAME=%[3]s", v.Name, v.Topic, c.Name)
			}
		}
	}
	if named {
		return nil
	}
	return unusable("no bridge of the name %s has stored anything about topic %s on these brokers: "+
		"check BRIDGE_NAME, BRIDGE_TOPIC and BRIDGE_KAFKA_BROKERS, or judge a copy with --topic %[2]s", v.Name, v.Topic)
}

// pinKeys makes encoders use the schema ids that Avro keys were written with: a replay uses those of another topic.
func (v *verification) pinKeys(s *offsets.State) {
	encoder := v.Encoder
	v.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		e, err := encoder(ctx, topic)
		if id := status.KeySchema(s, topic); e != nil && id != 0 {
			e.PinKey(id)
		}
		return e, err
	}
}

// interval uses the end that the bridge, or the replay, recorded. The frontier has its start, too.
func (v *verification) interval(f *offsets.Frontier) (err error) {
	end, recorded := f.Settings[offsets.FrozenEnd]
	if !recorded {
		return nil
	}
	v.End = envelope.Timestamp{}
	if end != "" {
		v.End, err = history.ParseEnd(end)
	}
	return err
}

// feed returns the feed that the bridge reads, or "" without a state.
func (s *progressState) feed() string {
	if s == nil {
		return ""
	}
	return s.Frontier.Feed
}

// topics returns the topics that the bridge has written to. The fresh ones are in cursors only.
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

// compatible rejects settings, and a feed, with which the topic was not written.
func (v *verification) compatible(f *offsets.Frontier, replay bool) error {
	if v.ReadFeed && f.Feed != v.FeedID {
		return unusable("BRIDGE_SOURCE_URL names feed %s, but %s was written from feed %s",
			v.FeedID, v.named(), f.Feed)
	}
	for name, have := range f.Settings {
		switch name {
		case offsets.FrozenStart, offsets.FrozenEnd: // the recorded values count
			continue
		case offsets.FrozenTopic:
			if replay || v.Topic != "" {
				continue
			}
		}
		if want, ok := v.Frozen[name]; ok && want != have {
			return unusable("%s=%s, but %s was written with %s",
				name, want, v.named(), have)
		}
	}
	return nil
}

// named returns how messages name the topic, or the topics of a template.
func (v *verification) named() string {
	if v.Topic == "" {
		return v.Frozen[offsets.FrozenTopic]
	}
	return v.Topic
}

// covers reports whether everything before next in a shard of a segment is committed.
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

// late returns how many events the service published too late, as counted by the bridge.
func (s *progressState) late() (n int64) {
	for _, c := range s.Cursors {
		if c != nil {
			n += c.Counts.Late
		}
	}
	return n
}

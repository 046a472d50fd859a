package judge

import (
	"context"
	"errors"
	"fmt"

	"blobfeed/envelope"
	"blobfeed/internal/kafka"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
)

// subject is a topic that is to be judged.
type subject struct {
	*topic
	growth  growth
	encoder *envelope.Encoder // with --feed or --account
	fresh   bool              // new in the current segment, so that no marker is due yet
	before  int               // with --follow, partitions in use before this round; 0: it is the first one
}

// subjects opens the topics.
func (v *verification) subjects(ctx context.Context, state *progressState) (all []*subject, err error) {
	names, fresh := []string{v.Topic}, map[string]bool{}
	if v.Topic == "" {
		if names, fresh = state.topics(); len(names) == 0 {
			return nil, unusable("BRIDGE_TOPIC=%s names many topics, and %s.offsets has none: name one with --topic",
				v.Frozen[offsets.FrozenTopic], v.Name)
		}
	}
	for _, name := range names {
		if v.since != nil && fresh[name] {
			continue // the round that ends with its first marker compares it
		}
		s := &subject{fresh: fresh[name]}
		var markers *topic
		if v.Markers == envelope.MarkersTopic { // before the records that they stand for
			if markers, err = v.open(ctx, plain.MarkerTopic(name)); err != nil {
				return all, err
			}
		}
		if s.topic, err = v.open(ctx, name); err != nil {
			if markers != nil {
				markers.close()
			}
			return all, err
		}
		all = append(all, s)
		if markers != nil {
			if err := s.putBeside(ctx, markers); err != nil {
				return all, err
			}
		}
		if v.since != nil {
			if s.compacted {
				return all, unusable("--follow: topic %s is compacted, which may remove records before they are "+
					"compared: use --feed", name)
			}
			if err := v.since.resume(s); err != nil {
				return all, err
			}
		}
		if err := s.learn(ctx, state.partitions(name), v.Partition); err != nil {
			return all, fmt.Errorf("reading the start of topic %s: %w", name, err)
		}
		if v.ReadFeed || v.ReadAccount {
			if s.encoder, err = v.Encoder(ctx, name); err != nil {
				return all, v.unread(err, name)
			}
		}
	}
	return all, nil
}

func (v *verification) open(ctx context.Context, name string) (*topic, error) {
	t, err := v.cluster.open(ctx, name)
	if err == nil {
		t.avro = v.avro
		if v.sharing != nil {
			t.portion = v.sharing.portion(plain.RecordTopic(name))
		}
	}
	return t, err
}

// unread explains a missing schema, which a reader does not register.
func (v *verification) unread(err error, topic string) error {
	var refused *kafka.SchemaError
	if !errors.As(err, &refused) || !refused.Missing {
		return err
	}
	return unusable("subject %s in the registry does not have the schema of records with these settings (%s): "+
		"use the settings, the registry and the version of bridge that topic %s was written with",
		refused.Subject, refused.Reason, topic)
}

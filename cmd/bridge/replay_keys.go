package main

import (
	"context"
	"errors"
	"fmt"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/status"
	"blobfeed/offsets"
)

// replayedKeys returns the id of the schema that a replay has to write keys with, 0 where keys have none. An Avro key
// begins with that id, and the partition is chosen by all bytes of the key. The topic of the replay has a schema of
// its own,
// so with its id the keys would land in other partitions than the live ones.
func replayedKeys(ctx context.Context, live, replay *config.Config) (int, error) {
	record, topics, _, err := output(live, "", nil)
	if err != nil {
		return 0, &usageError{err}
	}
	if record.KeyFormat != envelope.KeyAvro {
		return 0, nil
	}
	topic, ok := topics.Constant()
	if !ok {
		return 0, &usageError{fmt.Errorf("with %[1]s_TOPIC=%[2]s the Avro keys of each topic have a schema id of their own, "+
			"and in one topic they would land in other partitions: set %[1]s_KEY_FORMAT for the replay, to json_array for example",
			config.Prefix, live.Topic)}
	}
	id, err := keySchema(ctx, replay, replay.Topic) // of an interrupted replay; the live bridge may be gone
	if err == nil && id == 0 {
		id, err = keySchema(ctx, live, topic)
	}
	return id, err
}

// keySchema returns the id that a bridge writes the keys of a topic with, 0 if it has not written any.
func keySchema(ctx context.Context, c *config.Config, topic string) (id int, err error) {
	err = inState(ctx, c, func(_ context.Context, _ *reader, s *offsets.State) error {
		id = keySchemaIn(s, topic)
		return nil
	})
	var never *status.NeverRanError
	if errors.As(err, &never) {
		return 0, nil
	}
	return id, err
}

// keySchemaIn is keySchema of a state.
func keySchemaIn(s *offsets.State, topic string) (id int) {
	for _, cur := range s.Cursors { // the first to know a topic
		if cur != nil && cur.Pins[topic].KeySchema != 0 {
			id = cur.Pins[topic].KeySchema
		}
	}
	if f := s.Frontier; f != nil && f.KeySchemas[topic] != 0 {
		id = f.KeySchemas[topic]
	}
	return id
}

// pinKeys makes every encoder of o write keys with a schema id, unless that is 0.
func pinKeys(o *bridge.Options, id int) {
	if id == 0 {
		return
	}
	encoder := o.Encoder
	o.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		e, err := encoder(ctx, topic)
		if err == nil {
			e.PinKey(id)
		}
		return e, err
	}
}

package replay

import (
	"context"

	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
)

// keys returns the id of the schema that a replay has to write keys with, or 0 if keys have no schema. An Avro key
// begins with that id, and all bytes of the key choose its partition. The replay's topic has a schema of its own, and
// with the id of that schema keys would land in other partitions than the live ones.
func (r *Replay) keys(ctx context.Context, c *config.Config) (id int, err error) {
	record, topics, _, err := setup.Output(r.Live, "", setup.Observe{})
	if err != nil {
		return 0, settings("%v", err)
	}
	if record.KeyFormat != envelope.KeyAvro {
		return 0, nil
	}
	topic, ok := topics.Constant()
	if !ok {
		return 0, settings("with %[1]s_TOPIC=%[2]s the Avro keys of each topic have a schema id of their own, "+
			"and in one topic they would land in other partitions: set %[1]s_KEY_FORMAT for the replay, "+
			"to json_array for example", config.Prefix, r.Live.Topic)
	}
	s, err := state(ctx, c) // of an interrupted replay; the live bridge may be gone
	if s != nil {
		id = status.KeySchema(s, r.Topic)
	}
	if err != nil || id != 0 {
		return id, err
	}
	if s, err = state(ctx, r.Live); s != nil {
		id = status.KeySchema(s, topic)
	}
	return id, err
}

package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/check"
	"blobfeed/internal/config"
	"blobfeed/internal/kafka"
	"blobfeed/internal/status"
	"blobfeed/offsets"
)

// checkKafka looks at the brokers.
func checkKafka(ctx context.Context, c *config.Config, found *check.Findings) error {
	for _, danger := range c.Insecure() {
		found.Add("security", check.Warning, danger, "")
	}
	if len(c.KafkaBrokers) == 0 {
		found.Add("kafka", check.Failed, "BRIDGE_KAFKA_BROKERS is not set", "set it to host:port of some brokers, comma separated")
		return checkRegistry(ctx, c, found)
	}
	client, err := kafkaClient(c, c.Name+"-check", 1)
	if err != nil {
		return err
	}
	var frontier *offsets.Frontier
	var unread error
	needs := func(ctx context.Context) (*kafka.Needs, error) {
		frontier, unread = storedFrontier(ctx, c)
		return kafkaNeeds(c, frontier, found)
	}
	if err := kafka.Check(ctx, &client, needs, time.Now(), found); err != nil {
		return err
	}
	if err := checkRegistry(ctx, c, found); err != nil || found.Count(check.Failed) > 0 {
		return err // what failed may be why the state can't be read
	}
	return checkState(ctx, c, frontier, unread, found)
}

// storedFrontier returns the frontier of an earlier start; nil if there is none.
func storedFrontier(ctx context.Context, c *config.Config) (f *offsets.Frontier, err error) {
	err = inState(ctx, c, func(_ context.Context, _ *reader, s *offsets.State) error {
		f = s.Frontier
		return nil
	})
	var never *status.NeverRanError
	if errors.As(err, &never) {
		return nil, nil
	}
	return f, err
}

// checkState compares the settings with those of the records that are there, and looks for another bridge's: run
// refuses both.
func checkState(ctx context.Context, c *config.Config, f *offsets.Frontier, unread error, found *check.Findings) error {
	o, err := options(c, observe{})
	if err != nil {
		return err
	}
	if err = unread; err == nil && f != nil {
		err = o.Compatible(f.Feed, f.Settings)
	}
	switch {
	case err == nil && f == nil:
		found.Add("state", check.OK, "there is no progress yet: run starts at "+c.Start, "")
	case err != nil:
		found.Add("state", check.Failed, err.Error(), "")
	default:
		found.Add("state", check.OK, "there is progress, with these settings", "")
	}
	return checkOwner(ctx, c, &o, f, found)
}

// kafkaNeeds returns what run will do with the brokers, at a first start or behind a frontier.
func kafkaNeeds(c *config.Config, f *offsets.Frontier, found *check.Findings) (*kafka.Needs, error) {
	record, topics, _, err := output(c, "", nil)
	if err != nil {
		return nil, err
	}
	n := &kafka.Needs{Group: c.Name, Session: c.SessionTimeout, TxnTimeout: c.TxnTimeout}
	if c.Delivery == "exactly_once" {
		n.Txn, n.Leases = c.Name+"-", c.OffsetsLeases
	}
	add := func(t kafka.Topic) {
		t.Replication, t.Create = c.TopicReplication, c.TopicCreate != "off" && !t.Records
		if t.Asked = c.TopicCreate == "broker" && !t.Compacted; t.Asked && t.Create {
			t.Partitions, t.Replication = -1, -1 // the brokers' choice
		}
		n.Topics = append(n.Topics, t)
	}
	written := map[string]int32{} // partitions by topic
	if f != nil {
		maps.Copy(written, f.Topics)
	}
	if name, ok := topics.Constant(); !ok {
		found.Add("topic", check.Warning, "BRIDGE_TOPIC="+c.Topic+" names many topics; those that have no records yet are not looked at",
			"permit Write and DescribeConfigs, and Create if run creates them, on what they begin with (--resource-pattern-type prefixed)")
	} else if len(written) == 0 {
		written[name] = c.TopicPartitions
	}
	state := kafka.Topic{Name: c.Name + ".offsets", Read: true, Partitions: c.OffsetsLeases, Compacted: true}
	if _, one := topics.Constant(); !one {
		state.Largest, state.Grows = checkTemplate(c, record, topics, f, found)
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		add(kafka.Topic{Name: name, Records: f != nil, Partitions: written[name], EventTimes: true, Keyless: record.Markers == envelope.MarkersInline})
		if record.Markers == envelope.MarkersTopic {
			add(kafka.Topic{Name: name + ".resolved", Partitions: written[name]})
		}
	}
	add(state)
	if c.OnError == "dead_letter" {
		add(kafka.Topic{Name: c.DeadLetterTopic(), Partitions: 1})
	}
	return n, nil
}

// checkRegistry looks at the schema registry, if records need one.
func checkRegistry(ctx context.Context, c *config.Config, found *check.Findings) error {
	r, err := registry(c, nil)
	if r == nil || err != nil {
		return err
	}
	if len(r.URLs) == 0 {
		found.Add("registry", check.Failed, "BRIDGE_REGISTRY_URL is not set, and Avro takes a schema registry", "set it to http://host:port or https://host:port")
		return nil
	}
	var schemas []kafka.Schema
	record, topics, _, err := output(c, "", nil)
	if err != nil {
		return err
	}
	if name, ok := topics.Constant(); ok {
		record.Topic = name
		subjects, err := envelope.Schemas(record)
		if err != nil {
			return err
		}
		for _, s := range subjects {
			schemas = append(schemas, kafka.Schema{Subject: s.Name, Text: s.Schema})
		}
	}
	kafka.CheckRegistry(ctx, r, schemas, found)
	return nil
}

package main

import (
	"context"
	"errors"
	"time"

	"blobfeed/check"
	"blobfeed/config"
	"blobfeed/envelope"
	"blobfeed/kafka"
	"blobfeed/offsets"
	"blobfeed/status"
)

// checkKafka looks at the brokers.
func checkKafka(ctx context.Context, c *config.Config, found *check.Findings) error {
	if len(c.KafkaBrokers) == 0 {
		found.Add("kafka", check.Warning, "not looked at: BRIDGE_KAFKA_BROKERS is not set", "")
		return nil
	}
	for _, danger := range c.Insecure() {
		found.Add("kafka", check.Warning, danger, "")
	}
	client, err := kafkaClient(c, c.Name+"-check", 1)
	if err != nil {
		return err
	}
	needs, err := kafkaNeeds(c, found)
	if err != nil {
		return err
	}
	if err := kafka.Check(ctx, &client, needs, time.Now(), found); err != nil {
		return err
	}
	if err := checkRegistry(ctx, c, found); err != nil || found.Count(check.Failed) > 0 {
		return err // what failed may be why the state can't be read
	}
	return checkState(ctx, c, found)
}

// checkState compares the settings with those of the records that are there: run refuses others.
func checkState(ctx context.Context, c *config.Config, found *check.Findings) error {
	o, err := options(c, observe{})
	if err != nil {
		return err
	}
	err = inState(ctx, c, func(_ context.Context, _ *reader, s *offsets.State) error {
		if s.Frontier == nil {
			return &status.NeverRanError{Topic: o.Name + ".offsets"}
		}
		return o.Compatible(s.Frontier.Feed, s.Frontier.Settings)
	})
	var never *status.NeverRanError
	switch {
	case errors.As(err, &never):
		found.Add("state", check.OK, "there is no progress yet: run starts at "+c.Start, "")
	case err != nil:
		found.Add("state", check.Failed, err.Error(), "")
	default:
		found.Add("state", check.OK, "there is progress, with these settings", "")
	}
	return nil
}

// kafkaNeeds returns what run will do with the brokers.
func kafkaNeeds(c *config.Config, found *check.Findings) (*kafka.Needs, error) {
	record, topics, _, err := output(c, "", nil)
	if err != nil {
		return nil, err
	}
	n := &kafka.Needs{Group: c.Name, TxnTimeout: c.TxnTimeout}
	if c.Delivery == "exactly_once" {
		n.Txn = c.Name + "-"
	}
	create := c.TopicCreate == "explicit"
	add := func(t kafka.Topic) {
		t.Replication = c.TopicReplication
		n.Topics = append(n.Topics, t)
	}
	if name, ok := topics.Constant(); ok {
		add(kafka.Topic{Name: name, Create: create, Partitions: c.TopicPartitions, EventTimes: true, Keyless: record.Markers == envelope.MarkersInline})
		if record.Markers == envelope.MarkersTopic {
			add(kafka.Topic{Name: name + ".resolved", Create: create, Partitions: c.TopicPartitions})
		}
	} else {
		found.Add("topic", check.Warning, "BRIDGE_TOPIC="+c.TopicPrefix+c.Topic+" names many topics, which are not looked at",
			"permit Write and DescribeConfigs, and Create if run creates them, on what they begin with (--resource-pattern-type prefixed)")
	}
	add(kafka.Topic{Name: c.Name + ".offsets", Read: true, Create: c.TopicCreate != "off", Partitions: c.OffsetsLeases, Compacted: true})
	if c.OnError == "dead_letter" {
		add(kafka.Topic{Name: c.DeadLetterTopic(), Create: create, Partitions: 1})
	}
	return n, nil
}

// checkRegistry looks at the schema registry, if records need one.
func checkRegistry(ctx context.Context, c *config.Config, found *check.Findings) error {
	r, err := registry(c, nil)
	if r == nil || err != nil {
		return err
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

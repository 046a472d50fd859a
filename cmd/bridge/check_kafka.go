package main

import (
	"context"
	"time"

	"blobfeed/check"
	"blobfeed/config"
	"blobfeed/envelope"
	"blobfeed/kafka"
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
	return checkRegistry(ctx, c, found)
}

// kafkaNeeds returns what run will do with the brokers.
func kafkaNeeds(c *config.Config, found *check.Findings) (*kafka.Needs, error) {
	record, topics, _, err := output(c, "")
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
	add(kafka.Topic{Name: c.Name + ".offsets", Read: true, Create: true, Partitions: c.OffsetsLeases, Compacted: true})
	if c.OnError == "dead_letter" {
		add(kafka.Topic{Name: c.DeadLetterTopic(), Create: create, Partitions: 1})
	}
	return n, nil
}

// checkRegistry looks at the schema registry, if records need one.
func checkRegistry(ctx context.Context, c *config.Config, found *check.Findings) error {
	r, err := registry(c)
	if r == nil || err != nil {
		return err
	}
	var schemas []kafka.Schema
	record, topics, _, err := output(c, "")
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

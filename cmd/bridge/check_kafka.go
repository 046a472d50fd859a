package main

import (
	"context"
	"time"

	"blobfeed/check"
	"blobfeed/config"
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
	return kafka.Check(ctx, &client, kafkaNeeds(c), time.Now(), found)
}

// kafkaNeeds returns what run will do with the brokers.
func kafkaNeeds(c *config.Config) *kafka.Needs {
	n := &kafka.Needs{Group: c.Name, TxnTimeout: c.TxnTimeout}
	if c.Delivery == "exactly_once" {
		n.Txn = c.Name + "-"
	}
	create := c.TopicCreate == "explicit"
	n.Topics = append(n.Topics,
		kafka.Topic{Name: c.Topic, Create: create, Partitions: c.TopicPartitions, Replication: c.TopicReplication, EventTimes: true, Keyless: c.ResolvedTo == "inline"},
		kafka.Topic{Name: c.Name + ".offsets", Read: true, Create: true, Partitions: c.OffsetsLeases, Replication: c.TopicReplication, Compacted: true})
	if c.OnError == "dead_letter" {
		n.Topics = append(n.Topics, kafka.Topic{Name: c.DeadLetterTopic(), Create: create, Partitions: 1, Replication: c.TopicReplication})
	}
	return n
}

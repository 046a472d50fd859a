// Package needs says what a bridge needs of Kafka under its settings, and writes it for those who manage Kafka by
// files: topics, permissions and schemas.
package needs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/topics"
)

// Needs are what a bridge needs of Kafka.
type Needs struct {
	Name    string // of the bridge
	User    string // "": the settings do not name it
	Topics  []Topic
	Permits []Permit
	Many    bool // the template makes topics that are not in Topics

	plan   topics.Plan
	config *config.Config
	record envelope.Options // with the topic
}

// Topic is a topic as the bridge would create it.
type Topic struct {
	Kind        topics.Kind
	Name        string
	Partitions  int32
	Replication int16 // -1: the brokers' default
	Settings    map[string]*string
}

// Permit is what is permitted on some names.
type Permit struct {
	Operations []string // in the words of Kafka's tools
	Resource   string   // topic, group, transactional-id
	Names      []string
	Prefixed   bool // the names are those that begin so
}

// Of returns the needs of the bridge that the settings describe.
func Of(c *config.Config) (*Needs, error) {
	o, err := setup.WithoutFeed(c)
	if err != nil {
		return nil, err
	}
	record, _ := setup.Record(c) // WithoutFeed has reported its problems
	plan := o.TopicPlan()
	n := &Needs{Name: c.Name, User: string(c.KafkaSASLUsername), plan: plan, config: c, record: record}
	create := plan.By != topics.ByNobody
	add := func(kind topics.Kind, name string, partitions int32, operations ...string) {
		n.Topics = append(n.Topics, Topic{kind, name, partitions, o.TopicReplication, plan.Settings(kind)})
		n.permitTopic(create, false, name, operations...)
	}
	if name, one := o.Topics.Constant(); one {
		n.record.Topic = name
		add(topics.Records, name, c.TopicPartitions)
		if plan.Beside {
			add(topics.Markers, plain.MarkerTopic(name), c.TopicPartitions)
		}
	} else {
		n.Many = true
		prefix, _, _ := strings.Cut(c.Topic, "{")
		if prefix == "" {
			return nil, c.Problem("TOPIC", "names of its topics have nothing in common: begin it with a prefix, "+
				"such as blobs.%s", c.Topic)
		}
		n.permitTopic(create, true, envelope.KafkaName(prefix))
	}
	add(topics.State, plain.StateTopic(c.Name), o.OffsetsPartitions, "Read")
	if o.DeadLetter != "" {
		add(topics.DeadLetters, o.DeadLetter, 1)
	}
	n.permitRest(&o)
	return n, nil
}

func (n *Needs) permitTopic(create, prefixed bool, name string, operations ...string) {
	all := append([]string{"Write", "DescribeConfigs"}, operations...)
	if create {
		all = append(all, "Create")
	}
	n.Permits = append(n.Permits, Permit{all, "topic", []string{name}, prefixed})
}

// permitRest permits the group and the transactional ids: one for each lease, and that of bridge check. They are
// literal, since a prefix of them may be that of another bridge.
func (n *Needs) permitRest(o *bridge.Options) {
	n.Permits = append(n.Permits, Permit{[]string{"Read"}, "group", []string{n.Name}, false})
	if !o.Transactional {
		return
	}
	var ids []string
	for lease := range o.OffsetsPartitions {
		ids = append(ids, fmt.Sprintf("%s-%d", n.Name, lease))
	}
	n.Permits = append(n.Permits, Permit{[]string{"Write"}, "transactional-id", append(ids, n.Name+"-check"), false})
}

// topic returns the topic of records, or an error if there are many.
func (n *Needs) topic() (Topic, error) {
	i := slices.IndexFunc(n.Topics, func(t Topic) bool { return t.Kind == topics.Records })
	if i < 0 {
		return Topic{}, n.config.Problem("TOPIC", "it makes many topics: set it to the name of one of them")
	}
	return n.Topics[i], nil
}

// principal returns the user, or a word in its place.
func (n *Needs) principal() string { return "User:" + cmp.Or(n.User, "<principal>") }

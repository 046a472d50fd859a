package setup

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
)

// Needs are what a bridge needs of Kafka under its settings. They are written for those who manage Kafka by files.
type Needs struct {
	Name    string // of the bridge
	User    string // "": the settings do not name it
	Topics  []NeededTopic
	Permits []Permit
	Many    bool // the template makes topics that are not in Topics

	plan   topics.Plan
	config *config.Config
}

// NeededTopic is a topic as the bridge would create it.
type NeededTopic struct {
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

// NeedsOf returns the needs of the bridge that the settings describe.
func NeedsOf(c *config.Config) (*Needs, error) {
	o, err := WithoutFeed(c)
	if err != nil {
		return nil, err
	}
	plan := o.TopicPlan()
	n := &Needs{Name: c.Name, User: string(c.KafkaSASLUsername), plan: plan, config: c}
	create := plan.By != topics.ByNobody
	add := func(kind topics.Kind, name string, partitions int32, operations ...string) {
		n.Topics = append(n.Topics, NeededTopic{kind, name, partitions, plan.Replication, plan.Settings(kind)})
		n.permitTopic(create, false, name, operations...)
	}
	if name, one := o.Topics.Names.Constant(); one {
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
	add(topics.State, plain.StateTopic(c.Name), o.Kafka.Leases, "Read")
	if o.Topics.DeadLetter != "" {
		add(topics.DeadLetters, o.Topics.DeadLetter, 1)
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
	if !o.Kafka.Transactional {
		return
	}
	var ids []string
	for lease := range o.Kafka.Leases {
		ids = append(ids, fmt.Sprintf("%s-%d", n.Name, lease))
	}
	n.Permits = append(n.Permits, Permit{[]string{"Write"}, "transactional-id", append(ids, n.Name+"-check"), false})
}

// principal returns the user, or a word in its place.
func (n *Needs) principal() string { return "User:" + cmp.Or(n.User, "<principal>") }

// ACLs writes a shell script that permits what the bridge needs, and creates the topics if the bridge may not.
func (n *Needs) ACLs(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# What the bridge needs of Kafka under its settings. Run it as an administrator.\n")
	if n.plan.By == topics.ByNobody {
		if n.Many {
			fmt.Fprintf(&b, "# BRIDGE_TOPIC=%s makes many topics: create those of records yourself.\n", n.config.Topic)
		}
		b.WriteString(
			"# If the feed is older than retention.ms (7 days by default), brokers delete its records at once:\n" +
				"# add --config retention.ms=-1 for records and markers, as the commands of bridge check do.\n",
		)
		for _, t := range n.Topics {
			wanted := topics.Topic{Kind: t.Kind, Name: t.Name, Partitions: t.Partitions}
			b.WriteString(n.plan.CreateCommand(&wanted) + "\n")
		}
	}
	for _, p := range n.Permits {
		fmt.Fprintf(&b, "kafka-acls.sh %s --add --allow-principal %s", n.plan.Flags, plain.Shell(n.principal()))
		for _, op := range p.Operations {
			b.WriteString(" --operation " + op)
		}
		for _, name := range p.Names {
			b.WriteString(" --" + p.Resource + " " + name)
		}
		if p.Prefixed {
			b.WriteString(" --resource-pattern-type prefixed")
		}
		b.WriteByte('\n')
	}
	if n.config.Delivery == "at_least_once" {
		b.WriteString("# Brokers before Kafka 3.0 also need: --operation IdempotentWrite --cluster\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// object is a resource of Kubernetes.
type object struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       any      `yaml:"spec"`
}

type metadata struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

type topicSpec struct {
	TopicName  string         `yaml:"topicName"`
	Partitions int32          `yaml:"partitions"`
	Replicas   int16          `yaml:"replicas,omitempty"`
	Config     map[string]any `yaml:"config"`
}

type userSpec struct {
	Authentication *typed        `yaml:"authentication,omitempty"`
	Authorization  authorization `yaml:"authorization"`
}

type typed struct {
	Type string `yaml:"type"`
}

type authorization struct {
	Type string `yaml:"type"`
	ACLs []acl  `yaml:"acls"`
}

type acl struct {
	Resource struct {
		Type        string `yaml:"type"`
		Name        string `yaml:"name"`
		PatternType string `yaml:"patternType"`
	} `yaml:"resource"`
	Operations []string `yaml:"operations,flow"`
}

// Strimzi writes the topics and the user as resources of Strimzi's operators.
func (n *Needs) Strimzi(w io.Writer) error {
	fmt.Fprint(w,
		"# What the bridge needs of Kafka under its settings. Replace my-cluster by the name of your Kafka resource.\n"+
			"# Events can be older than the brokers' retention: then set retention.ms: -1 for records and markers.\n")
	if n.Many {
		fmt.Fprintf(w, "# BRIDGE_TOPIC=%s makes many topics: those of records are not in this file.\n", n.config.Topic)
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	for _, t := range n.Topics {
		spec := topicSpec{TopicName: t.Name, Partitions: t.Partitions, Config: map[string]any{}}
		spec.Replicas = max(t.Replication, 0)
		for _, name := range slices.Sorted(maps.Keys(t.Settings)) {
			spec.Config[name] = scalar(*t.Settings[name])
		}
		if err := e.Encode(resource("KafkaTopic", t.Name, spec)); err != nil {
			return err
		}
	}
	user := userSpec{Authorization: authorization{Type: "simple"}}
	switch {
	case n.config.KafkaSASLMechanism == "SCRAM-SHA-512":
		user.Authentication = &typed{"scram-sha-512"}
	case n.config.KafkaSASLMechanism == "" && n.config.KafkaTLSCertFile != "":
		user.Authentication = &typed{"tls"}
	}
	for _, p := range n.Permits {
		for _, name := range p.Names {
			a := acl{Operations: p.Operations}
			a.Resource.Type, a.Resource.Name, a.Resource.PatternType = p.Resource, name, "literal"
			if p.Resource == "transactional-id" {
				a.Resource.Type = "transactionalId"
			}
			if p.Prefixed {
				a.Resource.PatternType = "prefix"
			}
			user.Authorization.ACLs = append(user.Authorization.ACLs, a)
		}
	}
	if err := e.Encode(resource("KafkaUser", cmp.Or(n.User, n.Name), user)); err != nil {
		return err
	}
	return e.Close()
}

func resource(kind, name string, spec any) object {
	return object{"kafka.strimzi.io/v1", kind, metadata{kubernetesName(name),
		map[string]string{"strimzi.io/cluster": "my-cluster"}}, spec}
}

// forbidden matches what a name in Kubernetes must not have.
var forbidden = regexp.MustCompile(`[^a-z0-9.-]+`)

func kubernetesName(name string) string {
	return strings.Trim(forbidden.ReplaceAllString(strings.ToLower(name), "-"), "-.")
}

// scalar returns a number as one, so that YAML does not quote it.
func scalar(value string) any {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(value, 64); err == nil {
		return f
	}
	return value
}

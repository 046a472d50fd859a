package setup

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
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
	config  *config.Config
	plan    topics.Plan
	topics  []topics.Topic
	permits []permit
	many    bool // the template makes topics that are not in topics
}

// permit is what is permitted on some names.
type permit struct {
	operations []string // in the words of Kafka's tools
	resource   string   // topic, group, transactional-id
	names      []string
	prefixed   bool // the names are those that begin so
}

// NeedsOf returns the needs of the bridge that the settings describe.
func NeedsOf(c *config.Config) (*Needs, error) {
	o, err := WithoutFeed(c)
	if err != nil {
		return nil, err
	}
	n := &Needs{config: c, plan: o.TopicPlan()}
	create := n.plan.By != topics.ByNobody
	add := func(kind topics.Kind, name string, partitions int32, operations ...string) {
		n.topics = append(n.topics, topics.Topic{Kind: kind, Name: name, Partitions: partitions})
		n.permitTopic(create, false, name, operations...)
	}
	if name, one := o.Topics.Names.Constant(); one {
		add(topics.Records, name, c.TopicPartitions)
		if n.plan.Beside {
			add(topics.Markers, plain.MarkerTopic(name), c.TopicPartitions)
		}
	} else {
		n.many = true
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
	n.permits = append(n.permits, permit{all, "topic", []string{name}, prefixed})
}

// permitRest permits the group and the transactional ids: one for each lease, and that of bridge check. They are
// literal, since a prefix of them may be that of another bridge.
func (n *Needs) permitRest(o *bridge.Options) {
	n.permits = append(n.permits, permit{[]string{"Read"}, "group", []string{n.config.Name}, false})
	if !o.Kafka.Transactional {
		return
	}
	var ids []string
	for lease := range o.Kafka.Leases {
		ids = append(ids, fmt.Sprintf("%s-%d", n.config.Name, lease))
	}
	ids = append(ids, n.config.Name+"-check")
	n.permits = append(n.permits, permit{[]string{"Write"}, "transactional-id", ids, false})
}

// ACLs writes a shell script that permits what the bridge needs, and creates the topics if the bridge may not.
func (n *Needs) ACLs(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# What the bridge needs of Kafka under its settings. Run it as an administrator.\n")
	if n.plan.By == topics.ByNobody {
		if n.many {
			fmt.Fprintf(&b, "# BRIDGE_TOPIC=%s makes many topics: create those of records yourself.\n", n.config.Topic)
		}
		b.WriteString(
			"# If the feed is older than retention.ms (7 days by default), brokers delete its records at once:\n" +
				"# add --config retention.ms=-1 for records and markers, as the commands of bridge check do.\n",
		)
		for i := range n.topics {
			b.WriteString(n.plan.CreateCommand(&n.topics[i]) + "\n")
		}
	}
	principal := plain.Shell("User:" + string(cmp.Or(n.config.KafkaSASLUsername, "<principal>")))
	for _, p := range n.permits {
		fmt.Fprintf(&b, "kafka-acls.sh %s --add --allow-principal %s", n.plan.Flags, principal)
		for _, op := range p.operations {
			b.WriteString(" --operation " + op)
		}
		for _, name := range p.names {
			b.WriteString(" --" + p.resource + " " + name)
		}
		if p.prefixed {
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
	if n.many {
		fmt.Fprintf(w, "# BRIDGE_TOPIC=%s makes many topics: those of records are not in this file.\n", n.config.Topic)
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	for _, t := range n.topics {
		spec := topicSpec{t.Name, t.Partitions, max(n.plan.Replication, 0), map[string]any{}}
		for name, value := range n.plan.Settings(t.Kind) {
			spec.Config[name] = scalar(*value)
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
	for _, p := range n.permits {
		for _, name := range p.names {
			a := acl{Operations: p.operations}
			a.Resource.Type, a.Resource.Name, a.Resource.PatternType = p.resource, name, "literal"
			if p.resource == "transactional-id" {
				a.Resource.Type = "transactionalId"
			}
			if p.prefixed {
				a.Resource.PatternType = "prefix"
			}
			user.Authorization.ACLs = append(user.Authorization.ACLs, a)
		}
	}
	name := cmp.Or(string(n.config.KafkaSASLUsername), n.config.Name)
	if err := e.Encode(resource("KafkaUser", name, user)); err != nil {
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

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
)

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

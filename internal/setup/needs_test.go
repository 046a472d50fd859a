package setup

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"blobfeed/internal/config"
)

// needed returns the needs under settings, written by one of the methods.
func needed(t *testing.T, settings string, write func(*Needs, io.Writer) error) string {
	t.Helper()
	text, err := tryNeeds(t, settings, write)
	if err != nil {
		t.Fatalf("%s: %v", settings, err)
	}
	return text
}

func tryNeeds(t *testing.T, settings string, write func(*Needs, io.Writer) error) (string, error) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, config.Prefix+"_") {
			t.Setenv(name, "") // restores it afterwards
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range append([]string{"SOURCE_URL=file:///feed", "NAME=b", "TOPIC=t", "OFFSETS_LEASES=2"},
		strings.Fields(settings)...) {
		name, value, _ := strings.Cut(s, "=")
		t.Setenv("BRIDGE_"+name, value)
	}
	c, err := config.Environ().Load(false)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NeedsOf(c)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = write(n, &b)
	return b.String(), err
}

// commands returns the commands of a script, without what they have in common.
func commands(script string) (all []string) {
	for line := range strings.Lines(script) {
		if line[0] != '#' {
			line = strings.ReplaceAll(strings.TrimSpace(line), "--operation ", "")
			line = strings.NewReplacer("kafka-acls.sh --bootstrap-server <broker> --add --allow-principal ", "",
				"kafka-topics.sh --bootstrap-server <broker> --create --topic ", "create ").Replace(line)
			all = append(all, line)
		}
	}
	return all
}

// The script follows the settings: which topics there are, who creates them, and whether there are transactions.
func TestACLs(t *testing.T) {
	for settings, want := range map[string][]string{
		"": {
			"'User:<principal>' Write DescribeConfigs Create --topic t",
			"'User:<principal>' Write DescribeConfigs Read Create --topic b.offsets",
			"'User:<principal>' Read --group b",
			"'User:<principal>' Write --transactional-id b-0 --transactional-id b-1 --transactional-id b-check",
		},
		"TOPIC_CREATE=off RESOLVED_TO=topic ON_ERROR=dead_letter DELIVERY=at_least_once TOPIC_REPLICATION=3 " +
			"TOPIC_PARTITIONS=12": {
			"create t --partitions 12 --replication-factor 3 --config cleanup.policy=delete",
			"create t.resolved --partitions 12 --replication-factor 3 --config cleanup.policy=delete",
			"create b.offsets --partitions 2 --replication-factor 3 --config cleanup.policy=compact " +
				"--config min.cleanable.dirty.ratio=0.1 --config min.compaction.lag.ms=86400000 --config segment.bytes=16777216",
			"create b.dlq --partitions 1 --replication-factor 3 --config retention.ms=-1",
			"'User:<principal>' Write DescribeConfigs --topic t",
			"'User:<principal>' Write DescribeConfigs --topic t.resolved",
			"'User:<principal>' Write DescribeConfigs Read --topic b.offsets",
			"'User:<principal>' Write DescribeConfigs --topic b.dlq",
			"'User:<principal>' Read --group b",
		},
		"TOPIC=blobs.{container} TOPIC_CREATE=off DELIVERY=at_least_once": {
			"create b.offsets --partitions 2 --config cleanup.policy=compact --config min.cleanable.dirty.ratio=0.1 " +
				"--config min.compaction.lag.ms=86400000 --config segment.bytes=16777216",
			"'User:<principal>' Write DescribeConfigs --topic blobs. --resource-pattern-type prefixed",
			"'User:<principal>' Write DescribeConfigs Read --topic b.offsets",
			"'User:<principal>' Read --group b",
		},
		"PRESET=table TOPIC_CREATE=off DELIVERY=at_least_once KAFKA_BROKERS=<broker> RESOLVED_TO=off": {
			"create t --partitions 6 --config cleanup.policy=compact",
			"create b.offsets --partitions 2 --config cleanup.policy=compact --config min.cleanable.dirty.ratio=0.1 " +
				"--config min.compaction.lag.ms=86400000 --config segment.bytes=16777216",
			"'User:<principal>' Write DescribeConfigs --topic t",
			"'User:<principal>' Write DescribeConfigs Read --topic b.offsets",
			"'User:<principal>' Read --group b",
		},
	} {
		if got := commands(needed(t, settings, (*Needs).ACLs)); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", settings, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if _, err := tryNeeds(t, "TOPIC={container}", (*Needs).ACLs); err == nil ||
		!strings.Contains(err.Error(), "begin it with a prefix, such as blobs.{container}") {
		t.Error(err)
	}
	quoted := needed(t,
		"KAFKA_BROKERS=k:1 KAFKA_TLS_ENABLED=true KAFKA_SASL_MECHANISM=SCRAM-SHA-512 KAFKA_SASL_USERNAME=o'hara "+
			"KAFKA_SASL_PASSWORD=p", (*Needs).ACLs)
	if !strings.Contains(quoted, `--command-config admin.properties --add --allow-principal 'User:o'\''hara'`) {
		t.Error(quoted)
	}
}

// Strimzi's resources have the same topics and permissions as the script.
func TestStrimzi(t *testing.T) {
	const settings = "NAME=Photos_b TOPIC=t_1 RESOLVED_TO=topic KAFKA_BROKERS=k:1 KAFKA_TLS_ENABLED=true " +
		"KAFKA_SASL_MECHANISM=SCRAM-SHA-512 KAFKA_SASL_USERNAME=u KAFKA_SASL_PASSWORD=p"
	d := yaml.NewDecoder(strings.NewReader(needed(t, settings, (*Needs).Strimzi)))
	var topics, permits []string
	for {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				TopicName      string `yaml:"topicName"`
				Partitions     int
				Config         map[string]string
				Authentication struct{ Type string }
				Authorization  struct {
					ACLs []struct {
						Resource   struct{ Type, Name string }
						Operations []string
					}
				}
			}
		}
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		switch o.Kind {
		case "KafkaTopic":
			topics = append(topics, o.Metadata.Name+" "+o.Spec.TopicName+" "+o.Spec.Config["cleanup.policy"])
		case "KafkaUser":
			if o.Metadata.Name != "u" || o.Spec.Authentication.Type != "scram-sha-512" {
				t.Errorf("%+v", o)
			}
			for _, a := range o.Spec.Authorization.ACLs {
				permits = append(permits, a.Resource.Type+" "+a.Resource.Name+" "+strings.Join(a.Operations, " "))
			}
		}
	}
	if want := []string{"t-1 t_1 delete", "t-1.resolved t_1.resolved delete",
		"photos-b.offsets Photos_b.offsets compact"}; !slices.Equal(topics, want) {
		t.Errorf("%q", topics)
	}
	if want := []string{"topic t_1 Write DescribeConfigs Create", "topic t_1.resolved Write DescribeConfigs Create",
		"topic Photos_b.offsets Write DescribeConfigs Read Create", "group Photos_b Read",
		"transactionalId Photos_b-0 Write",
		"transactionalId Photos_b-1 Write", "transactionalId Photos_b-check Write"}; !slices.Equal(permits, want) {
		t.Errorf("%q", permits)
	}
}

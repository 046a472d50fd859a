package needs

import (
	"fmt"
	"io"
	"strings"

	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
)

// ACLs writes a shell script that permits what the bridge needs, and creates the topics if the bridge may not.
func (n *Needs) ACLs(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# What the bridge needs of Kafka under its settings. Run it as an administrator.\n")
	if n.plan.By == topics.ByNobody {
		if n.Many {
			fmt.Fprintf(&b, "# BRIDGE_TOPIC=%s makes many topics: create those of records yourself.\n", n.config.Topic)
		}
		b.WriteString(
			"# Events can be older than the brokers' retention: then set retention.ms=-1 for records and markers.\n",
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

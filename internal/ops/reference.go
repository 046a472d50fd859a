package ops

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
)

//go:embed reference.md
var head string

// Described is a line of the reference.
type Described struct {
	Name, Type string
	Labels     []string
	Help, Asks string
}

// Reference returns every metric of ours by name. Those of the Go runtime and the process are not among them.
func Reference() (all []Described) {
	for _, d := range slices.Concat(scraped, recorded, kafka) {
		all = append(all, Described{d.full(), d.typ, d.labels, d.help, d.asks})
	}
	slices.SortFunc(all, func(a, b Described) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// WriteReference writes the reference for a terminal, or docs/metrics.md.
func WriteReference(w io.Writer, markdown bool) error {
	var b strings.Builder
	if markdown {
		b.WriteString(head)
	}
	var ofNodes []string // counters of the Kafka clients, whose names say what they count
	for _, d := range Reference() {
		name := d.Name + "{" + strings.Join(d.Labels, ",") + "}"
		if !markdown {
			fmt.Fprintf(&b, "%s %s\n    %s\n", name, d.Type, d.Help)
			continue
		}
		if d.Type == counter && slices.Equal(d.Labels, byNode) {
			ofNodes = append(ofNodes, "`"+d.Name+"`")
			continue
		}
		fmt.Fprintf(&b, "- `%s`", strings.TrimSuffix(name, "{}"))
		if d.Type == histogram {
			b.WriteString(" (histogram)")
		}
		fmt.Fprintf(&b, ": %s", d.Help)
		if d.Asks != "" {
			fmt.Fprintf(&b, " (%s)", d.Asks)
		}
		b.WriteByte('\n')
	}
	if markdown {
		fmt.Fprintf(&b, "\nOf the connections to each broker, with the label `node_id`: %s.\n", strings.Join(ofNodes, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

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
	for _, d := range Reference() {
		if !markdown {
			fmt.Fprintf(&b, "%s{%s} %s\n    %s\n", d.Name, strings.Join(d.Labels, ","), d.Type, d.Help)
			continue
		}
		labels := ""
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		help := strings.ReplaceAll(d.Help, "|", "\\|")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Type, labels, help, d.Asks)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

package ops

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Described is a line of the reference.
type Described struct {
	Name, Type string
	Labels     []string
	Help, Asks string
}

// Reference returns every metric of ours, in order of the names. Those of the Go runtime and the process are not among them.
func Reference() []Described {
	all := catalog{}
	m := NewMonitor("", "", Info{}, 0, nil)
	for _, o := range m.observed.collectors() {
		all.add(o)
	}
	cl, err := kgo.NewClient(kgo.WithHooks(newClients(all))) // kprom makes its metrics with a client; it asks nobody for anything
	if err == nil {
		cl.Close()
	}
	for _, d := range metrics {
		typ := "counter"
		if d.typ == gauge {
			typ = "gauge"
		}
		all[d.full()] = Described{d.full(), typ, d.labels, d.help, d.asks}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Described) int { return strings.Compare(a.Name, b.Name) })
}

// catalog is a registerer that only notes what it is given.
type catalog map[string]Described

var _ prometheus.Registerer = catalog{}

// Register implements prometheus.Registerer.
func (c catalog) Register(o prometheus.Collector) error {
	c.add(o)
	return nil
}

// MustRegister implements prometheus.Registerer.
func (c catalog) MustRegister(os ...prometheus.Collector) {
	for _, o := range os {
		c.add(o)
	}
}

// Unregister implements prometheus.Registerer.
func (c catalog) Unregister(prometheus.Collector) bool { return true }

// A Desc tells what is in it only as text.
var (
	descText  = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", (?:unit: "[^"]*", )?constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)
	typeNames = map[bool]string{true: "histogram", false: "counter"}
)

func (c catalog) add(o prometheus.Collector) {
	ch := make(chan *prometheus.Desc, 8)
	o.Describe(ch)
	close(ch)
	for desc := range ch {
		parts := descText.FindStringSubmatch(desc.String())
		if parts == nil || switchedOff(parts[1]) {
			continue
		}
		d := Described{Name: parts[1], Help: parts[2], Type: typeNames[strings.HasSuffix(parts[1], "_seconds")]}
		if _, single := o.(prometheus.Gauge); single || strings.Contains(d.Name, "_buffered_") {
			d.Type = "gauge"
		}
		if parts[3] != "" {
			d.Labels = strings.Split(parts[3], ",")
		}
		c[d.Name] = d
	}
}

// switchedOff reports whether a metric of kprom's is made and never filled.
func switchedOff(name string) bool {
	return strings.HasSuffix(name, "_wait_seconds") || strings.HasSuffix(name, "_time_seconds")
}

// WriteReference writes the reference for a terminal, or docs/metrics.md.
func WriteReference(w io.Writer, markdown bool) error {
	var b strings.Builder
	if markdown {
		b.WriteString(`# Metrics

What ` + "`/metrics`" + ` shows, in Prometheus' format or OpenMetrics, beside the usual ` + "`go_*` and `process_*`" + `. Made from the source by
` + "`make docs`" + `. No label has values that grow with the feed: no blob, container, topic, key or segment is one.

Names, labels and meanings are part of the interface. Totals are of the process, but for that of gaps: they begin at 0 with each start.
What several instances of a bridge tell of the same thing (resolved, segments, gaps, leases by state), take with ` + "`max`" + `; what each does,
with ` + "`sum`" + `; either ` + "`by (namespace, job)`" + `, so that [several bridges](operations.md#several-bridges) stay apart.
Alerts and a dashboard that use them: [` + "`deploy/`" + `](../deploy/); what to do then: [operations.md](operations.md).

| metric | type | labels | meaning | known as |
|---|---|---|---|---|
`)
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
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Type, labels, strings.ReplaceAll(d.Help, "|", "\\|"), d.Asks)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

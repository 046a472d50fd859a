package ops

import (
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// catalog is a registerer that keeps what it is given.
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

// A Desc shows what is in it only as text.
var descText = regexp.MustCompile(
	`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", (?:unit: "[^"]*", )?constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`,
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
		d := Described{Name: parts[1], Help: parts[2]}
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

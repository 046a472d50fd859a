package ops

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Metrics is what /metrics shows.
type Metrics struct {
	registry *prometheus.Registry
	clients  *clients
}

// NewMetrics returns the metrics of m, of the Kafka clients that have the Hook, and of the process.
func NewMetrics(m *Monitor) *Metrics {
	reg := newProcess()
	return register(reg, reg, m)
}

// newProcess returns the metrics of the process.
func newProcess() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// NewLabelled returns the metrics of m, a bridge of a fleet, and of its Kafka clients, with the label bridge.
func NewLabelled(m *Monitor) *Metrics {
	reg := prometheus.NewRegistry()
	return register(reg, prometheus.WrapRegistererWith(prometheus.Labels{"bridge": m.name}, reg), m)
}

func register(reg *prometheus.Registry, labelled prometheus.Registerer, m *Monitor) *Metrics {
	labelled.MustRegister(newCollector(m))
	return &Metrics{reg, newClients(labelled, m)}
}

// Hook makes a Kafka client report to the metrics.
func (m *Metrics) Hook() kgo.Opt { return kgo.WithHooks(m.clients) }

// ServeHTTP implements http.Handler.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scrape(m.registry).ServeHTTP(w, r)
}

// scrape returns a handler of metrics. If a metric fails, the others are served.
func scrape(all prometheus.Gatherer) http.Handler {
	opts := promhttp.HandlerOpts{EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError}
	return promhttp.HandlerFor(all, opts)
}

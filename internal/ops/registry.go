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
	reg := prometheus.NewRegistry()
	reg.MustRegister(newCollector(m), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Metrics{reg, newClients(reg, m)}
}

// Hook makes a Kafka client report to the metrics.
func (m *Metrics) Hook() kgo.Opt { return kgo.WithHooks(m.clients) }

// ServeHTTP implements http.Handler. If a metric fails, the others are served.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	opts := promhttp.HandlerOpts{EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError}
	promhttp.HandlerFor(m.registry, opts).ServeHTTP(w, r)
}

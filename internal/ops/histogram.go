package ops

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// observed is what can't be worked out when somebody asks.
type observed struct {
	transaction prometheus.Histogram
	event       *prometheus.HistogramVec
	requests    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	received    prometheus.Counter
	schemas     *prometheus.CounterVec
	schemaTook  *prometheus.HistogramVec
	schemaIDs   prometheus.Gauge
}

func newObserved() *observed {
	opts := func(name, help string, buckets ...float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{
			Namespace: Namespace, Name: name, Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}
	}
	return &observed{
		transaction: prometheus.NewHistogram(opts("transaction_duration_seconds",
			"From the first record of a transaction to the acknowledgement of its commit.",
			0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 30, 60)),
		event: prometheus.NewHistogramVec(opts("event_latency_seconds",
			"Age of the last event of a transaction that drained an open segment, so that catch-up does not count; stage publish: "+
				"until the service published it; bridge: from then to its commit; total.",
			0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600), []string{"stage"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: Namespace, Name: "azure_requests_total",
			Help: "Requests to the storage service, each try; op is list or read, status that of HTTP, or none. 429 and 503 are throttling.",
		}, []string{"op", "status"}),
		duration: prometheus.NewHistogramVec(opts("azure_request_duration_seconds",
			"Time to the headers of the storage service's answer; op is list or read.",
			0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30), []string{"op"}),
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: Namespace, Name: "azure_received_bytes_total", Help: "Bytes of the storage service's answers.",
		}),
		schemas: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: Namespace, Name: "schema_registry_requests_total",
			Help: "Requests to the schema registry, at each of its addresses; op is register or lookup, status that of HTTP, or none. All but 200 are errors.",
		}, []string{"op", "status"}),
		schemaTook: prometheus.NewHistogramVec(opts("schema_registry_request_duration_seconds",
			"Time to the schema registry's answer, or to giving up; op is register or lookup.",
			0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30), []string{"op"}),
		schemaIDs: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: Namespace, Name: "schema_registry_ids", Help: "Schemas whose ids are known: nothing is asked for them again.",
		}),
	}
}

func (o *observed) collectors() []prometheus.Collector {
	return []prometheus.Collector{o.transaction, o.event, o.requests, o.duration, o.received, o.schemas, o.schemaTook, o.schemaIDs}
}

func (o *observed) latency(stage string, d time.Duration) {
	o.event.WithLabelValues(stage).Observe(max(0, d).Seconds())
}

// Requested notes a request to the storage service; status 0 is one without an answer.
func (m *Monitor) Requested(op string, status int, took time.Duration, received int64) {
	m.observed.requests.WithLabelValues(op, statusText(status)).Inc()
	m.observed.duration.WithLabelValues(op).Observe(took.Seconds())
	m.observed.received.Add(float64(max(0, received)))
}

// SchemaRequested notes a request to the schema registry; status 0 is one without an answer.
func (m *Monitor) SchemaRequested(op string, status int, took time.Duration, known int) {
	m.observed.schemas.WithLabelValues(op, statusText(status)).Inc()
	m.observed.schemaTook.WithLabelValues(op).Observe(took.Seconds())
	m.observed.schemaIDs.Set(float64(known))
}

func statusText(status int) string {
	if status == 0 {
		return "none"
	}
	return strconv.Itoa(status)
}

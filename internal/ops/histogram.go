package ops

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// observed holds what can't be worked out from a Snapshot.
type observed struct {
	transaction *prometheus.HistogramVec
	steps       *prometheus.CounterVec
	event       *prometheus.HistogramVec
	requests    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	received    *prometheus.CounterVec
	schemas     *prometheus.CounterVec
	schemaTook  *prometheus.HistogramVec
	schemaIDs   prometheus.Gauge
}

func newObserved() *observed {
	requests := []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}
	o := &observed{
		transaction: newHistogram("transaction_duration_seconds",
			0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 30, 60),
		steps: newCounter("transaction_step_seconds_total"),
		event: newHistogram("event_latency_seconds",
			0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600),
		requests:   newCounter("azure_requests_total"),
		duration:   newHistogram("azure_request_duration_seconds", requests...),
		received:   newCounter("azure_received_bytes_total"),
		schemas:    newCounter("schema_registry_requests_total"),
		schemaTook: newHistogram("schema_registry_request_duration_seconds", requests...),
		schemaIDs:  prometheus.NewGauge(prometheus.GaugeOpts(opts("schema_registry_ids"))),
	}
	o.transaction.WithLabelValues() // 0 from the start, so that a rate sees the first one
	o.received.WithLabelValues()
	return o
}

// described returns the table's line on a recorded metric.
func described(name string) *metric {
	return &recorded[slices.IndexFunc(recorded, func(d metric) bool { return d.name == name })]
}

func opts(name string) prometheus.Opts {
	return prometheus.Opts{Namespace: Namespace, Name: name, Help: described(name).help}
}

func newCounter(name string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts(opts(name)), described(name).labels)
}

func newHistogram(name string, buckets ...float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: Namespace, Name: name, Help: described(name).help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		NativeHistogramMinResetDuration: time.Hour,
	}, described(name).labels)
}

func (o *observed) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		o.transaction, o.steps, o.event, o.requests, o.duration, o.received, o.schemas, o.schemaTook, o.schemaIDs,
	}
}

func (o *observed) latency(stage string, d time.Duration) {
	o.event.WithLabelValues(stage).Observe(max(0, d).Seconds())
}

// Requested notes a request to the storage service; status 0 is one without an answer. If the service seems to be away,
// fails is why: requests fail one after the other, or one has failed for long. One failure is usual.
func (m *Monitor) Requested(op string, status int, took time.Duration, received int64, err error) (fails string) {
	m.observed.requests.WithLabelValues(op, statusText(status)).Inc()
	m.observed.duration.WithLabelValues(op).Observe(took.Seconds())
	m.observed.received.WithLabelValues().Add(float64(max(0, received)))
	m.mu.Lock()
	defer m.mu.Unlock()
	why := refusal(status)
	if why == "" {
		m.storage.answer(m.now())
		return ""
	}
	m.storage.fail(m.now(), took, why)
	m.storage.cause = causeOf(err)
	n := m.storage.failures
	away := n == 2 || n == 1 && took >= longFailure
	if away && (status == 0 || status >= http.StatusInternalServerError) { // nobody retries the others in silence
		return why
	}
	return ""
}

// longFailure is how long one request fails that is taken for more than a hiccup.
const longFailure = 3 * time.Second

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

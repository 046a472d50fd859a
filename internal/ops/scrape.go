package ops

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/singleflight"

	"blobfeed/internal/status"
	"blobfeed/source"
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

// shared returns f so that calls at the same time share one result. To gather the metrics of many bridges takes
// processor time and tens of megabytes: clients that scrape side by side would get nothing in time.
func shared[T any](calls *singleflight.Group, f func() (T, error)) func() (T, error) {
	return func() (T, error) {
		v, err, _ := calls.Do("", func() (any, error) { return f() })
		return v.(T), err
	}
}

// collector answers a scrape from one Snapshot.
type collector struct {
	*Monitor
	descs map[string]series
}

type series struct {
	desc  *prometheus.Desc
	value prometheus.ValueType
}

func newCollector(m *Monitor) *collector {
	c := &collector{m, map[string]series{}}
	for _, d := range scraped {
		value := prometheus.GaugeValue
		if d.typ == counter {
			value = prometheus.CounterValue
		}
		c.descs[d.name] = series{prometheus.NewDesc(d.full(), d.help, d.labels, nil), value}
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d.desc
	}
	for _, o := range c.observed.collectors() {
		o.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	defer c.caught.Catch("metrics")
	for _, o := range c.observed.collectors() {
		o.Collect(ch)
	}
	s := c.Snapshot()
	put := func(name string, value float64, labels ...string) {
		d := c.descs[name]
		ch <- prometheus.MustNewConstMetric(d.desc, d.value, value, labels...)
	}
	put("build_info", 1, s.Version, runtime.Version())
	put("ready", truth(s.Ready))
	unready := map[string]float64{"starting": 0, "draining": 0, "no_member": 0, "stuck": 0, "failed": 0}
	for _, r := range s.Reasons {
		unready[r.Code]++
	}
	each(unready, func(k string, v float64) { put("unready", v, k) })
	for _, code := range status.Verdicts {
		put("verdict", truth(s.Verdict.Code == code), code)
	}
	if p := s.Progress; p != nil && p.Share != nil {
		put("progress_ratio", *p.Share)
		if p.Left != nil {
			put("progress_seconds_left", *p.Left)
		}
	}
	put("start_timestamp_seconds", unix(s.UpSince))
	put("memory_limit_bytes", float64(s.Memory))
	put("watchdog_timeout_seconds", s.Watchdog)
	c.totals(put, s)
	c.feed(put, s)
	c.held(put, s)
}

type putter func(name string, value float64, labels ...string)

func (c *collector) totals(put putter, s *Status) {
	t := s.SinceStart
	put("events_read_total", float64(t.Events))
	put("events_filtered_total", float64(t.Filtered))
	put("events_unknown_total", float64(t.Unknown))
	put("events_late_total", float64(t.Late))
	put("records_produced_total", float64(t.Records), "data")
	put("records_produced_total", float64(t.Markers), "resolved")
	put("records_produced_total", float64(t.DeadLettered), "dlq")
	put("bytes_produced_total", float64(t.Bytes))
	put("transactions_total", float64(t.Transactions))
	put("segments_completed_total", float64(t.Segments))
	each(t.Errors, func(k string, v int) { put("errors_total", float64(v), k) })
	each(t.Leases, func(k string, v int) { put("lease_events_total", float64(v), k) })
}

func (c *collector) feed(put putter, s *Status) {
	if s.Lag.Azure != nil {
		put("lag_seconds", *s.Lag.Azure, "azure")
	}
	if s.Lag.Bridge != nil {
		put("lag_seconds", *s.Lag.Bridge, "bridge")
	}
	p := s.Position
	for which, segment := range map[string]string{"completed": p.Completed, "current": p.Current, "newest": p.Newest} {
		if seg, err := source.ParseSegment(segment); err == nil && segment != "" {
			put("segment_timestamp_seconds", unix(seg.Time()), which)
		}
	}
	if p.Resolved != nil {
		put("resolved_timestamp_seconds", unix(*p.Resolved))
	}
	if p.Behind != nil {
		put("backlog_seconds", *p.Behind)
	}
	if p.Headroom != nil {
		put("headroom_seconds", *p.Headroom)
	}
	if s.Started {
		open := 0.0
		if p.OpenSince != nil {
			open = s.Now.Sub(*p.OpenSince).Seconds()
		}
		put("segment_overdue_seconds", open)
	}
	if s.Started { // a 0 before the count is known would be a reset, and the count after it an increase
		put("gaps_total", float64(p.Gaps))
	}
}

func (c *collector) held(put putter, s *Status) {
	states := map[string]int{"working": 0, "waiting": 0, "drained": 0, "stuck": 0, "elsewhere": 0, "unused": 0}
	owned := 0
	for _, l := range s.Leases {
		states[l.State]++
		if !l.Here {
			continue
		}
		owned++
		p := strconv.Itoa(int(l.Lease))
		put("lease_working_seconds", l.Working, p)
		put("lease_consecutive_errors", float64(l.Errors), p)
		if l.Event != nil {
			put("position_timestamp_seconds", unix(*l.Event), p)
		}
	}
	put("leases_owned", float64(owned))
	each(states, func(k string, v int) { put("leases", float64(v), k) })
}

func each[V any](m map[string]V, f func(string, V)) {
	for k, v := range m {
		f(k, v)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

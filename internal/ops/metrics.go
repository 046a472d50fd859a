package ops

import "github.com/prometheus/client_golang/prometheus"

// Namespace begins the name of every metric.
const Namespace = "blobfeed"

// metric describes one: what docs/metrics.md says, and what a scrape must hold.
type metric struct {
	name   string // without the namespace
	typ    prometheus.ValueType
	labels []string
	help   string
	asks   string // what CockroachDB's or Debezium's users know it as
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// metrics are all but the histograms and the clients' own. No label has values that grow with the feed: a lease is one of
// OFFSETS_LEASES, a node one of the brokers, everything else is one of a fixed set. Topics are none: there may be one for
// each container.
var metrics = []metric{
	{"build_info", gauge, []string{"version", "goversion"}, "1.", ""},
	{"ready", gauge, nil, "1 if the instance is ready, as /readyz says.", "Debezium Connected"},
	{"unready", gauge, []string{"reason"}, "How many leases, or 1, are unready for a reason: starting, draining, no_member, stuck.", ""},
	{"memory_limit_bytes", gauge, nil, "GOMEMLIMIT, or what the container allows; 0 is none.", ""},
	{"start_timestamp_seconds", gauge, nil, "When the instance started.", ""},

	{"events_read_total", counter, nil, "Events of the feed that a committed cursor passed.", "Debezium TotalNumberOfEventsSeen"},
	{"events_filtered_total", counter, nil, "Events that make no record: the settings leave them out, BRIDGE_EVENTS among them.", "Debezium NumberOfEventsFiltered, CockroachDB changefeed.filtered_messages"},
	{"events_late_total", counter, nil, "Records at or below a marker that was written before them.", ""},
	{"records_produced_total", counter, []string{"kind"}, "Committed records; kind is data, resolved or dlq.", "CockroachDB changefeed.emitted_messages"},
	{"bytes_produced_total", counter, nil, "Keys, values and headers of committed records, before compression.", "CockroachDB changefeed.emitted_bytes"},
	{"transactions_total", counter, nil, "Committed transactions that hold events.", "Debezium NumberOfCommittedTransactions, CockroachDB changefeed.flushes"},
	{"segments_completed_total", counter, nil, "Segments whose completion this instance committed.", ""},

	{"lag_seconds", gauge, []string{"part"}, "How late data is; part azure: the time the service took to publish what came last, or has kept a newer segment waiting by not finalizing the current one; bridge: the time what is published waits for us. Absent while unknown.", "Debezium MilliSecondsBehindSource, CockroachDB changefeed.max_behind_nanos"},
	{"position_timestamp_seconds", gauge, []string{"lease"}, "Latest event time that this instance committed.", "Debezium SourceEventPosition"},
	{"resolved_timestamp_seconds", gauge, nil, "Time of the last resolved markers, which are those of all topics.", "CockroachDB changefeed.checkpoint_progress, high-water timestamp"},
	{"segment_timestamp_seconds", gauge, []string{"which"}, "Begin of a segment; which is completed, current or newest (of the feed, looked at every four POLL_INTERVALs by the owner of lease 0).", ""},
	{"backlog_seconds", gauge, nil, "From the current segment to the newest of the feed; from the owner of lease 0.", "CockroachDB changefeed.lagging_ranges"},
	{"headroom_seconds", gauge, nil, "History of the feed that is older than the position: what retention may still remove without loss; from the owner of lease 0, which looks for the oldest segment every 10 minutes.", ""},
	{"gaps_total", counter, nil, "How often history was lost since the first start of the bridge (ON_GAP=continue): a restart does not begin it anew. Absent until it is known.", ""},

	{"leases_owned", gauge, nil, "Leases that this instance holds.", ""},
	{"leases", gauge, []string{"state"}, "All leases as this instance sees them; state is working, waiting, drained, stuck, elsewhere or unused.", "CockroachDB changefeed.running"},
	{"lease_events_total", counter, []string{"event"}, "Leases that came or went; event is assigned, released or lost.", ""},
	{"lease_working_seconds", gauge, []string{"lease"}, "How long a lease of this instance has had work without a commit, or could not look for more.", ""},
	{"lease_consecutive_errors", gauge, []string{"lease"}, "Errors of a lease of this instance since its last commit.", "CockroachDB changefeed.error_retries"},
	{"errors_total", counter, []string{"class"}, "Errors that are tried again; class is fenced, damage, gap, event, kafka, registry, network, feed or other.", "Debezium NumberOfErroneousEvents, CockroachDB changefeed.error_retries"},
	{"watchdog_timeout_seconds", gauge, nil, "A lease that works for longer without a commit is stuck.", ""},
}

// full is a metric's name in a scrape.
func (d *metric) full() string { return Namespace + "_" + d.name }

package ops

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Namespace begins the name of every metric.
const Namespace = "blobfeed"

// metric is a line of the reference, and what a scrape must hold.
type metric struct {
	name   string // without the namespace
	typ    string
	labels []string
	help   string
	asks   string // what users of CockroachDB or Debezium know it as
}

// Types of metrics.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// full is a metric's name in a scrape.
func (d *metric) full() string { return Namespace + "_" + d.name }

// No label has values that grow with the feed: a lease is one of OFFSETS_LEASES, a node one of the brokers, and every
// other value is one of a fixed set. A topic is no label, because there may be one for each container.

// scraped are made from a Snapshot at each scrape.
var scraped = []metric{
	{"build_info", gauge, []string{"version", "goversion"}, "1.", ""},
	{"ready", gauge, nil, "1 if the instance is ready, as /readyz says.", "Debezium Connected"},
	{"unready", gauge, []string{"reason"},
		"Number of stuck leases for reason stuck; 1 for starting, draining, no_member, and failed (a bridge of a " +
			"fleet that restarts).",
		""},
	{"verdict", gauge, []string{"verdict"},
		"1 for the verdict of bridge status. Always 0 for nobody, which only bridge status can see.",
		""},
	{"progress_ratio", gauge, nil,
		"Share of a catch-up that is done, 0 to 1. Absent at the end of the feed and while unknown.",
		""},
	{"progress_seconds_left", gauge, nil,
		"Estimated time left of a catch-up. Absent like progress_ratio, and for the first seconds.",
		""},
	{"memory_limit_bytes", gauge, nil, "GOMEMLIMIT, or nine tenths of the container's limit; 0 is none.", ""},
	{"start_timestamp_seconds", gauge, nil, "When the instance started.", ""},

	{"events_read_total", counter, nil,
		"Events of the feed that a committed cursor passed.",
		"Debezium TotalNumberOfEventsSeen"},
	{"events_filtered_total", counter, nil,
		"Events without a record, because settings such as BRIDGE_EVENTS exclude them.",
		"Debezium NumberOfEventsFiltered, CockroachDB changefeed.filtered_messages"},
	{"events_unknown_total", counter, nil,
		"Of the filtered events, those of an unknown type, which may change blobs. The log names each type once.", ""},
	{"events_late_total", counter, nil, "Records at or below a marker that was written before them.", ""},
	{"records_produced_total", counter, []string{"kind"},
		"Committed records; kind is data, resolved or dlq.",
		"CockroachDB changefeed.emitted_messages"},
	{"bytes_produced_total", counter, nil,
		"Keys, values and headers of committed records, before compression.",
		"CockroachDB changefeed.emitted_bytes"},
	{"transactions_total", counter, nil,
		"Committed transactions that hold events.",
		"Debezium NumberOfCommittedTransactions, CockroachDB changefeed.flushes"},
	{"segments_completed_total", counter, nil, "Segments whose completion this instance committed.", ""},

	{"lag_seconds", gauge, []string{"part"},
		"Part azure: how long the service took to publish the latest event, or has kept a newer segment waiting " +
			"by not finalizing the current one. Part bridge: how long published events wait. Absent while unknown.",
		"Debezium MilliSecondsBehindSource, CockroachDB changefeed.max_behind_nanos"},
	{"position_timestamp_seconds", gauge, []string{"lease"},
		"Latest event time that this instance committed.",
		"Debezium SourceEventPosition"},
	{"resolved_timestamp_seconds", gauge, nil,
		"Time of the last resolved markers, which are those of all topics.",
		"CockroachDB changefeed.checkpoint_progress, high-water timestamp"},
	{"segment_timestamp_seconds", gauge, []string{"which"},
		"Start of a segment; which is completed, current or newest (of the feed; from the owner of lease 0, every " +
			"four POLL_INTERVALs).",
		""},
	{"backlog_seconds", gauge, nil,
		"Time from the current segment to the feed's newest. From the owner of lease 0.",
		"CockroachDB changefeed.lagging_ranges"},
	{"headroom_seconds", gauge, nil,
		"History of the feed before the position, which retention may delete without loss. From the owner of lease " +
			"0, every 10 minutes.",
		""},
	{"segment_overdue_seconds", gauge, nil,
		"How long ago the current segment ended, if it is open for half an hour longer although there are later " +
			"ones; else 0.",
		""},
	{"gaps_total", counter, nil,
		"Losses of history since the first start of the bridge (ON_GAP=continue). Absent while unknown.",
		""},

	{"leases_owned", gauge, nil, "Leases that this instance holds.", ""},
	{"leases", gauge, []string{"state"},
		"All leases as this instance sees them; state is working, waiting, drained, stuck, elsewhere or unused.",
		"CockroachDB changefeed.running"},
	{"lease_events_total", counter, []string{"event"},
		"Changes of leases; event is assigned, released or lost.",
		""},
	{"lease_working_seconds", gauge, []string{"lease"},
		"How long a lease of this instance has had work without a commit, or has failed to look for more.",
		""},
	{"lease_consecutive_errors", gauge, []string{"lease"},
		"Errors of a lease of this instance since its last commit.",
		"CockroachDB changefeed.error_retries"},
	{"errors_total", counter, []string{"class"},
		"Retried errors; class is fenced, damage, gap, event, kafka, registry, network, feed, panic or other.",
		"Debezium NumberOfErroneousEvents, CockroachDB changefeed.error_retries"},
	{"watchdog_timeout_seconds", gauge, nil,
		"A lease that has had work for longer without a commit is stuck.",
		""},
}

// reloadSuccessful has the name that Prometheus has for itself.
const reloadSuccessful = "config_last_reload_successful"

// recorded are counted when something happens.
var recorded = []metric{
	{reloadSuccessful, gauge, nil,
		"Of a process with many bridges: 0 if the last reload of the settings file rejected it, or a bridge " +
			"in it.", ""},
	{"transaction_duration_seconds", histogram, nil,
		"From the first record of a transaction to the acknowledgement of its commit.", ""},
	{"transaction_step_seconds_total", counter, []string{"step"},
		"Time of transactions; step is read, encode (both of all shards, side by side), publish or commit.", ""},
	{"event_latency_seconds", histogram, []string{"stage"},
		"Age of the last event of a transaction that drained an open segment. Stage publish: until the " +
			"service published it; bridge: from then to the commit; total: both.", ""},
	{"azure_requests_total", counter, []string{"op", "status"},
		"Requests to the storage service with retries; op is list or read, status the HTTP status or none.", ""},
	{"azure_request_duration_seconds", histogram, []string{"op"},
		"Time to the headers of the storage service's answer; op is list or read.", ""},
	{"azure_received_bytes_total", counter, nil, "Bytes of the storage service's answers.", ""},
	{"schema_registry_requests_total", counter, []string{"op", "status"},
		"Requests to each address of the schema registry; op is register or lookup, status the HTTP status " +
			"or none.", ""},
	{"schema_registry_request_duration_seconds", histogram, []string{"op"},
		"Time to the schema registry's answer or the timeout; op is register or lookup.", ""},
	{"schema_registry_ids", gauge, nil, "Schemas whose ids are cached.", ""},
	{"kafka_buffered_produce_records", gauge, nil, "Records buffered in the clients.", ""},
	{"kafka_buffered_produce_bytes", gauge, nil, "Bytes of records buffered in the clients.", ""},
}

// kafka are counted by the Kafka clients, in the words of franz-go's kprom.
var kafka = []metric{
	{"kafka_connect_errors_total", counter, byNode, "Total number of connection errors", ""},
	{"kafka_connects_total", counter, byNode, "Total number of connections opened", ""},
	{"kafka_disconnects_total", counter, byNode, "Total number of connections closed", ""},
	{"kafka_fetch_batches_total", counter, byNode, "Total number of batches fetched", ""},
	{"kafka_fetch_compressed_bytes_total", counter, byNode, "Total number of compressed bytes fetched", ""},
	{"kafka_fetch_records_total", counter, byNode, "Total number of records fetched", ""},
	{"kafka_fetch_uncompressed_bytes_total", counter, byNode, "Total number of uncompressed bytes fetched", ""},
	{"kafka_produce_batches_total", counter, byNode, "Total number of batches produced", ""},
	{"kafka_produce_compressed_bytes_total", counter, byNode, "Total number of compressed bytes produced", ""},
	{"kafka_produce_records_total", counter, byNode, "Total number of records produced", ""},
	{"kafka_produce_uncompressed_bytes_total", counter, byNode, "Total number of uncompressed bytes produced", ""},
	{"kafka_read_bytes_total", counter, byNode, "Total number of bytes read from the TCP connection. " +
		"The bytes count is tracked before uncompression (when used).", ""},
	{"kafka_read_errors_total", counter, byNode, "Total number of read errors", ""},
	{"kafka_request_duration_e2e_seconds", histogram, byNode, "Time from the start of when a request is written " +
		"to the end of when the response for that request was fully read", ""},
	{"kafka_request_throttled_seconds", histogram, byNode, "Time the request was throttled", ""},
	{"kafka_write_bytes_total", counter, byNode, "Total number of bytes written to the TCP connection. " +
		"The bytes count is tracked after compression (when used).", ""},
	{"kafka_write_errors_total", counter, byNode, "Total number of write errors", ""},
}

var byNode = []string{"node_id"}

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

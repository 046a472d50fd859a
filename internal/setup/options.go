// Package setup turns settings into the parts of a bridge: the feed, the Kafka client, the schema registry, the
// encoders, the state in Kafka, and with them bridge.Options. It is the only package that knows both the settings and
// the engine, so that neither knows the other.
package setup

import (
	"slices"
	"strings"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/partitioner"
)

// Options turns settings into the options of a bridge.
func Options(c *config.Config, observe Observe) (bridge.Options, error) {
	from, err := OpenSource(c, observe)
	if err != nil {
		return bridge.Options{}, err
	}
	return options(c, from, observe)
}

// WithoutFeed returns the options for verbs that read nothing but Kafka.
func WithoutFeed(c *config.Config) (bridge.Options, error) {
	return options(c, &Source{Account: c.SourceAccount}, Observe{})
}

func options(c *config.Config, from *Source, observe Observe) (bridge.Options, error) {
	record, names, encoder, err := Output(c, from.Account, observe)
	if err != nil {
		return bridge.Options{}, err
	}
	partition, err := partitioner.ByName(c.Partitioner)
	if err != nil {
		return bridge.Options{}, err
	}
	client, err := Kafka(c, c.Name+"-"+c.Instance, 2*c.Tuning.TxnRecords)
	if err != nil {
		return bridge.Options{}, err
	}
	kafkaOptions, err := client.Options()
	if err != nil {
		return bridge.Options{}, err
	}
	start, err := history.ParseStart(c.Start)
	if err != nil {
		return bridge.Options{}, c.Problem("START", "%w", err)
	}
	var end envelope.Timestamp
	if c.EndTime != "" {
		if end, err = history.ParseEnd(c.EndTime); err != nil {
			return bridge.Options{}, c.Problem("END_TIME", "%w", err)
		}
	}
	o := bridge.Options{
		Name: c.Name, Instance: c.Instance,
		Feed: bridge.Feed{
			Source: from.Feed, ID: from.ID, Start: start, End: end,
			Filter: envelope.Filter{
				Containers: c.Containers.Included(), ExcludeContainers: c.Containers.Excluded(),
				Prefixes: c.Prefixes.Included(), ExcludePrefixes: c.Prefixes.Excluded(),
				Suffixes: c.Suffixes.Included(), ExcludeSuffixes: c.Suffixes.Excluded(),
				EventTypes: c.EventTypes.Included(), ExcludeEventTypes: c.EventTypes.Excluded(), BlobTypes: c.BlobTypes,
			},
			InitialScan: bridge.InitialScan(c.InitialScan), Inventory: from.Inventory, AccountURL: from.URL,
			SkipGaps: c.OnGap != "fail", RescanGaps: c.OnGap == "rescan",
		},
		Records: bridge.Records{
			Events: record.Events, Encoder: encoder, Partition: partition, Markers: record.Markers,
			ResolvedSlack: c.ResolvedSlack, EpochHeader: c.Delivery == "at_least_once" && c.Headers != "none",
			Frozen: frozen(c, &record), Follows: follows(c),
		},
		Topics: bridge.Topics{
			Names: names, Shared: c.TopicShared, Adopt: c.TopicAdopt, Limited: c.TopicLimited,
			Create: topics.Creation{
				By: creators[c.TopicCreate], Partitions: c.TopicPartitions, Replication: c.TopicReplication,
				Limit: c.TopicLimit, Flags: client.ToolFlags(),
			},
		},
		Kafka: bridge.Kafka{
			Client: kafkaOptions, Transactional: c.Delivery == "exactly_once", TxnTimeout: c.TxnTimeout,
			Session: c.SessionTimeout, Leases: c.OffsetsLeases,
		},
		Pace: bridge.Pace{
			CommitInterval: c.CommitInterval, TxnRecords: c.Tuning.TxnRecords, TxnBytes: int(c.TxnBytes),
			BundleBytes: int64(c.Tuning.BundleBytes), BundleReaders: c.Tuning.BundleReaders,
			ScanRequests: c.ScanRequests, ScanRound: c.Tuning.ScanRound, PollInterval: c.PollInterval,
			QuietInterval: c.QuietInterval(), Shutdown: c.Tuning.ShutdownTimeout,
		},
	}
	if scans := c.InitialScan != "no" || c.OnGap == "rescan"; scans && from.Feed != nil && from.Inventory == nil {
		name := "INITIAL_SCAN"
		if c.InitialScan == "no" {
			name = "ON_GAP"
		}
		return bridge.Options{}, c.Problem(name, "%w", from.NoScan)
	}
	if c.OnError == "dead_letter" {
		o.Topics.DeadLetter = plain.DeadLetterTopic(c.Name)
	}
	// Compaction keeps the last value of a key: that is a table if values are rows, and deletions are null.
	o.Topics.Create.Table = record.Envelope == envelope.Row && record.Deletes == envelope.DeletesTombstone &&
		record.Markers != envelope.MarkersInline && record.Events == envelope.EventsState
	if o.Topics.Create.Table && o.Topics.Shared {
		return bridge.Options{}, c.Problem("TOPIC_SHARED", "compaction would keep one blob if two accounts have blobs "+
			"with the same key: put {account} into TOPIC")
	}
	return o, nil
}

// creators are the values of TOPIC_CREATE.
var creators = map[string]topics.Creator{
	"explicit": topics.ByBridge, "broker": topics.ByBrokers, "off": topics.ByNobody,
}

// frozen returns the settings that must not change while records exist: those that choose the topic or the partition of
// a key, and those that a reader must know before it can read the topic.
func frozen(c *config.Config, record *envelope.Options) map[string]string {
	return map[string]string{
		offsets.FrozenTopic: c.Topic, offsets.FrozenStart: c.Start, offsets.FrozenEnd: c.EndTime,
		offsets.FrozenEnvelope: record.Envelope.String(), offsets.FrozenMarkers: record.Markers.String(),
		offsets.FrozenPartitioner: c.Partitioner,
		// Without transactions nothing fences an owner: after a pause it could break the promises of transactions.
		offsets.FrozenDelivery: c.Delivery,

		"BRIDGE_EVENTS": c.Events, "BRIDGE_FORMAT": c.Format, "BRIDGE_KEY_FORMAT": record.KeyFormat.String(),
		"BRIDGE_AVRO_TIMESTAMPS": record.AvroTimestamps.String(), "BRIDGE_MAPS": record.Maps.String(),
		"BRIDGE_COLUMNS": strings.Join(slices.Compact(slices.Sorted(slices.Values(c.Columns))), ","),
	}
}

// follows returns, for frozen settings that the user left out, the setting that chose their value.
func follows(c *config.Config) map[string]string {
	all := map[string]string{}
	for name := range frozen(c, &envelope.Options{}) {
		if strings.HasPrefix(c.From(strings.TrimPrefix(name, config.Prefix+"_")), "preset ") {
			all[name] = "BRIDGE_PRESET"
		}
	}
	if c.KeyFormat == "" {
		all["BRIDGE_KEY_FORMAT"] = "BRIDGE_FORMAT" // envelope.Defaults
	}
	if c.ResolvedTo == "" {
		all["BRIDGE_RESOLVED_TO"] = "BRIDGE_ENVELOPE"
	}
	return all
}

// ReplayName returns the default name of a replay of a bridge into a topic.
func ReplayName(bridge, topic string) string { return bridge + ".replay." + topic }

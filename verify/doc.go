// Package verify has validators that any consumer or test can run over a topic of the bridge. It knows neither a Kafka
// client nor the bridge: a record is a plain struct, and the package parses what the bridge writes on its own, so that
// it can't share a mistake with it. Of the project it uses the reader of Avro (source/ocf), not the writer. Package
// judge runs the validators for the verb verify.
//
//	Unique     no event is repeated
//	Replay     exactly the expected records come: events, bytes, order per key
//	Order      per partition, no segment comes after a later one, and each shard's events come in order, once
//	Sequence   per key, the sequencers of the service never decrease
//	Partition  each key is on the partition that a function returns; it moves at a marker only
//	Schema     keys and values in Avro name a schema that the registry has
//	Time       each record has the timestamp of its event
//	Resolved   after a marker R no updated <= R comes on the partition; R never decreases and
//	           reaches every partition
//	Scan       the rows of an initial scan precede the feed, with one time, and no marker is below that of the listing
//	All        several of them
//
// Show records in the order in which a read_committed consumer gets them: per partition by offset, partitions in any
// order. A record with a nil key is a marker; only Resolved judges it. Each topic is judged by
// itself, but Unique and Replay hold over all topics.
//
// # What is read
//
// The validators read the headers ce_id, position, sequence, updated and resolved (HEADERS=cloudevents), in every
// envelope and format. If a record has none of them (HEADERS=none), they read the value, in JSON, or in Avro if
// Record.Avro finds schemas: event_id and sequencer of the row, updated and resolved. The position is only in the
// header, so Order can't be used with HEADERS=none. A record that identifies nothing is a
// failure.
//
// The promises are those of DELIVERY=exactly_once. With at_least_once, events may be repeated: then leave
// Unique out, and set Replay.Repeats. Show the other validators only the records for which
// Seen.First is true. With DELETES=both a tombstone may follow its deletion. In a compacted topic
// (Replay.Latest) events and markers are missing by design.
//
// A marker has its time in its value, which Flink reads, and in its header; both count. MarkerTopic inserts
// markers from a topic of their own among the records, so that they are judged like others.
//
// A marker with a header seek says that the bridge was moved on purpose. After it, events may be repeated on
// its partition, also at or below the last marker. They come once more, in the feed's order. Unique counts
// them.
//
// A record with a key and the header scan is a row of a scan, not an event. Only Scan, Unique, Partition and
// Resolved judge it. Between the row and the events of a blob, the order of offsets counts, not their times: a listing
// may show a state to which the next events only lead.
//
// # What is kept
//
// A validator is for one goroutine, and keeps nothing of the records that it is shown. BenchmarkMemory
// measures what it remembers:
//
//	Order, Partition, Schema, Time, Scan  nothing that grows with the topic
//	Resolved                              16 bytes per marker and partition
//	Sequence                              some hundred bytes per key
//	Replay                                32 to 45 bytes per event
//	Unique                                40 to 85 bytes per event, depending on the growth of their maps
//
// On a long topic, Order and Partition together prove what Unique proves.
package verify

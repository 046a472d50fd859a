// Package verify holds validators that any consumer or test can run over a topic of the bridge. It knows neither a Kafka
// client nor the rest of the project: a record is a plain struct, and what the bridge writes is parsed anew.
//
//	Unique     no event comes twice
//	Complete   exactly the expected events come
//	Replay     exactly the expected records come: events, bytes, order per key
//	Order      per key, the events come in the feed's order, and the key stays on one partition
//	Progress   per partition and shard, the events come in the feed's order, each once
//	Sequence   per key, the sequencers of the service never fall
//	Partition  each key is on the partition that a function says, or else on one
//	Barrier    per partition, no segment comes after a later one
//	Time       each record has the timestamp of its event
//	Resolved   after a marker R on a partition nothing with updated <= R comes; R never falls; every partition gets every R
//	Before     what an event says was before is what the event before it of the key left
//	Table      each record is its key's row, or a tombstone; there are no markers
//	All        several of them, with a summary
//
// Records are shown in the order in which a read_committed consumer gets them: per partition by offset, partitions in any
// order. A record with a nil key is a marker; only Resolved looks at it, and Table refuses it. Each topic is judged by
// itself, but for Unique, Complete and Replay, which hold over all topics.
//
// # What is read
//
// The headers ce_id, position, sequence, updated and resolved (HEADERS=cloudevents), whatever the envelope and the format.
// Where a record has none of them (HEADERS=none), the value is asked, in JSON, or in Avro if Record.Avro finds
// schemas: for
// event_id and sequencer of the row, for updated and resolved. The position is nowhere else, so Order, Progress and
// Barrier
// can't be used then. A record that identifies nothing is a failure, not a pass.
//
// The promises are those of DELIVERY=exactly_once. With at_least_once, events may come again: then show the other
// validators
// only what Seen has not seen, leave Unique out, and Replay wants ReplayRepeats. With DELETES=both a tombstone may
// follow its
// deletion. In a compacted topic (ReplayLatest) events are missing by design, and so are markers.
//
// A marker says its time in its value, which is what Flink reads, and in its header; both count. Markers that have a
// topic of
// their own are put among the records by Aside, and then judged like others.
//
// A setting that may change, such as OPTIONS, makes other records of the same events. Replay.Or says how an event came
// before the
// change: records like that are right in front of all others of their partition.
//
// A marker with a header seek says that the bridge was moved on purpose: behind it, on its partition, events may come again,
// in the feed's order and once, and at or below the last marker. Unique counts them.
//
// # What is kept
//
// A validator is for one goroutine, and keeps nothing of the records it is shown. What it remembers is measured by
// BenchmarkMemory: Progress, Barrier, Partition with a function and Table keep nothing that grows with the topic, Resolved
// 16 bytes a marker and partition, Order, Sequence and Before some hundred bytes a key, Replay 32 to 45 bytes an event,
// Complete and Unique 40 to 85, as their maps have just grown or not. Over a long topic, Progress and Partition together
// say what Unique and Order say.
package verify

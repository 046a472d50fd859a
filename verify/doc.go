// Package verify holds validators that any consumer or test can run over a topic of the bridge. It knows neither a Kafka
// client nor the rest of the project: a record is a plain struct, and what the bridge writes is parsed anew.
//
//	Unique     no event comes twice
//	Complete   exactly the expected events come
//	Order      per key, the events come in the feed's order, and the key stays on one partition
//	Sequence   per key, the sequencers of the service never fall
//	Partition  each key is on the partition that a function says, or else on one
//	Barrier    per partition, no segment comes after a later one
//	Resolved   after a marker R on a partition nothing with updated <= R comes; R never falls; every partition gets every R
//	All        several of them, with a summary
//
// Records are shown in the order in which a read_committed consumer gets them: per partition by offset, partitions in any
// order. A record with a nil key is a marker; only Resolved looks at it. Each topic is judged by itself, but for Unique and
// Complete, which hold over all topics.
//
// The headers ce_id, position, sequence, updated and resolved are what is read (HEADERS=cloudevents). The promises are those
// of DELIVERY=exactly_once with one record per event. With at_least_once, or with DELETES=both, Unique and Order fail.
//
// A validator is for one goroutine, and keeps nothing of the records it is shown. What it remembers grows with the number
// of events (Unique, Complete) or of keys (Order, Sequence, Partition without a function).
package verify

// Package verify holds validators that any consumer or test can run over a topic of the bridge. Each is shown the records
// of the topic in the order in which a read_committed consumer gets them, per partition, and says what does not hold:
//
//	Unique     no event comes twice
//	Complete   exactly the expected events come
//	Order      per key, the events come in the feed's order; a key stays on one partition
//	Barrier    per partition, no segment comes after a later one
//	Resolved   after a marker R on a partition nothing with updated <= R comes; R never falls; every partition gets every R
//	Partition  each key is on the partition that a function says
package verify

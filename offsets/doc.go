// Package offsets is the bridge's state: one compacted Kafka topic, <name>.offsets, and the leases on its partitions.
//
// Partition p of the topic is lease p. It holds up to three keys, each a JSON document with a "version":
//
//	cursor    how far the owner of lease p has read: segment, and per shard (chunk, byte offset)
//	frontier  partition 0 only: the last complete segment, the current one, the resolved time, the frozen settings
//	owner     who holds the lease; the record that ends an acquisition
//
// Who may hold a lease is decided twice. The consumer group (Group) gives liveness: it hands the leases of a
// dead or leaving instance to the others. Transactions give safety: a lease is held through a transactional
// producer whose id is <name>-<p>, and Acquire fences the one before it.
//
// # Fence, then read (I3)
//
// Acquire commits an owner record and waits until the View has read that very record. To write it the producer first
// calls InitProducerID, which ends the former owner's open transaction and makes every later request of it fail.
// A cursor the former owner committed has a lower offset than the owner record, because it was committed before the
// fence, so the View has it by then. One the former owner tries to commit afterwards is refused by the broker. Were the
// cursor read first, the former owner could commit records and a newer cursor between the read and the fence, and the
// new owner would deliver those records again.
//
// # Know the frontier before acting on it (I10)
//
// A View reads record by record, so the frontier that it shows may be old: at a start it replays all of them. Acquire
// therefore returns only when the View has passed the end that partition 0 had after the fence, and nothing is decided
// at a start before the View has passed the end of that moment.
//
// # Moves (I11)
//
// Seized moves the frontier outside the barrier, in two phases. docs/protocol.md has the whole protocol, and package
// protocol walks through every state of a model of it.
//
// # Without transactions
//
// There is no fence. A document names the acquisition that it was written under, and one of a former owner does
// not count (type mark); a lease ends with its Session; a round keeps batches in order.
//
// # Concurrency
//
// A View is safe for concurrent use; a State is immutable. A Lease belongs to one goroutine.
package offsets

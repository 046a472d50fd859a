// Package bridge is the engine: it holds leases and moves segments of the feed through the envelope into Kafka.
//
// # Who does what
//
// An instance is a member of the group (offsets.Join). For every lease it is given, a worker goroutine waits until the
// current segment has shards of that lease, acquires it, and makes passes over the segment: read the manifest, list,
// read to the end of the listing (I7). One goroutine per shard reads and encodes; the worker alone owns the producer,
// puts records and the cursor that covers them into one transaction (I1), and commits. The worker of lease 0 also moves
// the frontier: when every shard of the current segment is delivered it writes the next frontier and a marker to every
// partition, in one transaction.
//
// # The barrier
//
// Nobody chooses a segment: everybody works on the one that the frontier names as current. N+1 is named in the
// transaction that completes N, so a record of N+1 can't precede one of N on any partition (I4), whatever instance
// writes it.
//
// # Waits
//
// What the view shows may be old, and what a worker waits for may be over: a hold of a lease, and the work on a
// segment,
// have contexts that end with what they are for (hold.go), and every wait uses one of them.
//
// # Topics
//
// A topic is opened when its first record is to be written: created if it may, its partitions and the id of its key's
// schema pinned. The frontier has the pins; what it does not know yet is in the cursor of the lease that found it,
// until the segment is complete (type outlets says why I5 and I6 hold).
//
// # Stopping
//
// A stop, or a lease taken away, lets the worker commit what it has and go; the cursor makes the next owner continue
// there. A hard stop, or a crash, leaves a transaction open, which the next owner's fence aborts.
package bridge

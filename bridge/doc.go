// Package bridge is the engine: it holds leases and carries segments of the feed through the pipeline into Kafka.
//
// # The way of an event
//
// Pipeline: a goroutine for each shard reads a block, decodes it, encodes its events and chooses their partitions.
// Writer: the worker puts the records into the open transaction and moves the cursor over them. Commit: records and
// cursor become visible together (I1). Keeper: when all cursors of the segment say done, one transaction holds the next
// frontier and a marker for every partition (I6). A crash before a commit leaves an open transaction: the next owner's
// fence aborts it, and the cursor shows where to read again (I3). A crash after a commit loses nothing: its cursor is
// what the next owner reads. Without transactions the order of writes takes their place (keeper.commitPromise).
//
// # Who owns what
//
//	Bridge    an instance: member of the group, starts and stops the workers of its leases
//	shared    what an instance and its workers have in common; immutable once the group is joined
//	worker    a lease, as long as the group leaves it here; one goroutine, which owns all that follows
//	hold      one acquisition of the lease: producer, cursor, and the contexts that end with it
//	basis     what a hold takes from the frontier; answers the pipeline (pipeline.Host)
//	writer    the open transaction
//	delivery  the work on the current segment, pass after pass
//	keeper    the frontier, if the lease is 0: first frontier, moves, bundles, completion
//
// The goroutines of shards belong to a pipeline.Run, and none is left when a pass returns.
//
// # The barrier
//
// Nobody chooses a segment: every worker works on the one that the frontier names as current. N+1 is named in the
// transaction that completes N, so a record of N+1 can't precede one of N on any partition (I4), whatever instance
// writes it. A pass reads the manifest, lists, and reads to the end of that listing (I7).
//
// # Waits
//
// The view may be old, and the reason of a wait may be over. hold.loop is the one loop in which a worker waits for the
// state. Every wait uses a context of the hold, which ends on a stop, a fence and another epoch (hold.go).
//
// # Topics
//
// A topic is opened when its first record is to be written: created if it may, its partitions and the id of its
// key's schema pinned. The frontier has the pins; a pin that it does not have yet is in the cursor of the lease
// that found the topic, until the segment is complete (type openTopics says why I5 and I6 hold).
//
// # Stopping
//
// At a stop, or when the lease is taken away, the worker commits what it has and ends; the cursor makes the next owner
// continue there. A hard stop, or a crash, leaves a transaction open, which the next owner's fence aborts.
package bridge

// Package bridge is the engine: it holds leases and carries segments of the feed through the pipeline into Kafka.
//
// Comments name the rules I1 to I11 of docs/project/invariants.md, and R1 and R2f of docs/project/protocol.md.
//
// # The way of an event
//
// The group hands out leases. Lease p has the shards whose number modulo the number of leases is p. A worker
// acquires its lease when there is work for it: shards of the current segment, a part of a scan, or, without
// transactions, an epoch to enter. Lease 0 always has work.
//
// Pipeline: a goroutine for each shard reads a block, decodes it, encodes its events and chooses their
// partitions. Writer: the worker puts the records into the open transaction and moves the cursor over them.
// Commit: records and cursor become visible together (I1), when the transaction is full, the commit interval is
// over, or the pass ends. Coordinator (lease 0): when the cursors say that all shards of the segment are done, one
// transaction holds the next frontier and a marker for every partition (I6). Without transactions there are two
// writes, in an order that keeps the promise (writer.writeInOrder).
//
// # Crashes
//
// A worker treats every failed write like a crash: it drops its producer and acquires the lease again. So there
// is one way to recover from a write: fence, then read the cursor (I3). A read that fails, of the storage service
// or of Kafka, is repeated.
//
//	before a commit       an open transaction; the next owner's fence or the broker's timeout aborts it
//	during a commit       all of it took effect or nothing; the cursor behind the fence shows which
//	after a commit        the next owner continues at the cursor
//	all shards are done   the next owner of lease 0 sees it in the cursors, and writes frontier and markers
//	during a scan         rows and progress of the listing are one transaction; the next owner continues behind it
//	a topic is created    nothing pins it yet; the next owner opens it again
//	during a seek, reset  a committed intent is carried out; without one nothing has moved
//
// Brokers can acknowledge a commit and never complete it. The next owner sees that, aborts what is open, and
// delivers those records again (instance.discard). Without transactions, the order of writes does this work
// (writer.writeInOrder).
//
// # What is decided where
//
//	task.go         what a lease has to do in a state: enter an epoch, hold or list for a scan, deliver
//	loop.go         the one loop in which a lease waits for the state; it does the task
//	delivery.go     a pass over the current segment: read to the end of a listing, and when to look again
//	listing.go      a round of a scan: rows. sweep.go: deletions
//	coordinator.go  lease 0: which step the frontier needs: begin, repair, end a move, pay, take up a scan, turn its
//	                round, go to the next segment, complete the current one
//	look.go         what that step depends on. bundle.go: small segments, read and encoded
//	decide.go       the change, by a pure function of the frontier and of what was read
//	change.go       the order in which a change is written. writer.go: blocks, transactions and their account
//	failures.go     which failures are remembered, and retried for how long
//
// # What is committed where
//
// A lease writes to its partition of the offsets topic by its own producer only. These are all commits:
//
//	offsets.Acquire         the owner record: the fence
//	Lease.Discard           behind a fence, after a transaction without an end: the cursor as it was, and of lease 0
//	                        the frontier (instance.discard)
//	writer.commit           the cursor behind the records of a pass, behind lost history, or behind a round of a scan
//	writer.commitChange     the frontier, with markers or without; a bundle also has its records, and the cursor of
//	                        lease 0. Without transactions, a new promise takes two (writer.writeInOrder)
//	loop.go (Lease.Commit)  a cursor alone: an epoch is entered, a round is held for, a failure has come or gone
//	offsets.Fence           by the coordinator, which ends a move: the owner records of the other leases
//
// Others write, too. Seek and reset write the intent of a move, as owners of lease 0 (offsets.Seized). Any client may
// write a request for a scan (offsets.Ask). Run --once has left when it writes that all is delivered (offsets.Report).
//
// # Who owns what
//
//	Bridge       member of the group; starts and stops the workers of its leases
//	instance     what they have in common; immutable once the group is joined
//	worker       works on a lease while the group leaves it here; its one goroutine owns all that follows
//	tenure       one acquisition of the lease: producer, cursor, and the contexts that end with it
//	epochView    what a tenure takes from the frontier; answers the pipeline (pipeline.Host)
//	writer       the open transaction (offsets.Tx): while there is one, nothing else is written by the tenure
//	delivery     what a tenure has read of the current segment
//	scanRound    a round of a scan: rows, or deletions
//	findings     what a worker remembers from one tenure to the next
//	coordinator  the frontier, if the lease is 0
//	bundler      its bundles: small segments that were read ahead
//	rules        what decide.go knows of the options
//	change       what a decision writes, and reports when it is committed
//
// The topics of records, the feed's history and the settings of a stored state are known by packages of their own
// (catalog, history, frozen), and so are the keys that a sweep has to ask about (suspects).
//
// The goroutines of shards belong to a pipeline.Run, and none is left when a pass returns.
//
// # The barrier
//
// No worker chooses a segment: every worker works on the one that the frontier names as current. N+1 is named
// when N is complete, in the same transaction or later. So no record of N+1 precedes one of N on any
// partition, whatever instance writes it (I4). A pass reads the manifest, lists, and reads to the end of that
// listing (I7).
//
// Small finalized segments are different. The owner of lease 0 delivers several of them in one transaction, a
// bundle, while the frontier names no current segment (bundle.go).
//
// A scan lists the account and writes a row for each blob. While any lease lists, no lease delivers (listing.go).
//
// # Look, decide, write
//
// A look reads, and no transaction is open. A decision is pure. A change holds values only, and one place commits it. A
// read that fails is reported by the loop, and everything begins with a new look at the state. So no failure can commit
// what is half written. A look may create topics, and schemas in the registry: nothing depends on them yet. The ends
// of partitions are read while a change is written, since markers name them (writer.endOffsets): if that fails, the
// tenure ends. While a transaction is open, one more begin is an error that ends the tenure, and a panic in tests.
//
// # Waits
//
// A worker sees the state through a view, which may be old. The reason for a wait may be gone before the wait
// ends. So every wait uses a context of the tenure, which ends on a fence and on another epoch (tenure.go). It also
// ends on a stop, unless the wait is for a commit. tenure.loop is the one loop in which a worker waits for a task.
// After a fence, giveWay waits first (worker.go).
//
// # Topics
//
// The lease that has the first record of a topic opens the topic. It creates the topic if it may, and pins
// the number of partitions and the id of the key's schema. The frontier holds the pins. Until the segment is
// complete, a new pin is in the cursor of the lease that found the topic. Type catalog.Topics says why I5 and I6
// hold.
//
// # Stopping
//
// At a stop, or when the group takes the lease away, the worker commits what it has and ends. The next owner
// continues at the cursor. A hard stop, or a crash, leaves a transaction open, which the next owner's fence
// aborts.
package bridge

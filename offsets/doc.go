// Package offsets is the bridge's state: one compacted Kafka topic, <name>.offsets, and the leases on its partitions.
//
// Comments name the rules I1 to I11 of docs/project/invariants.md, and R1 and R2f of docs/project/protocol.md.
//
// Partition p of the topic is lease p. It holds up to five keys, each a JSON document with a "version":
//
//	cursor    how far the owner of lease p has read: segment, and per shard (chunk, byte offset)
//	frontier  partition 0 only: the last complete segment, the current one, the resolved time, the scan, a move that
//	          is not over, the frozen settings, and the pins of all topics
//	owner     who holds the lease; Acquire writes it behind its fence
//	request   partition 0 only: a scan that an operator asks for; any client may write it
//	delivered partition 0 only: run --once has delivered all; for operators, nothing is derived from it
//
// Lease p has the shards whose number modulo the number of leases is p. So their number never changes.
//
// Who may hold a lease is decided twice. The consumer group (Group) gives liveness: it hands the leases of a
// dead or leaving instance to the others. Transactions give safety: a lease is held through a transactional
// producer whose id is <name>-<p>, and Acquire fences the one before it.
//
// # Fence, then read (I3)
//
// Acquire commits an owner record and waits until the View has read that very record. To write it the
// producer first calls InitProducerID, which ends the former owner's open transaction and makes every later
// request of it fail. A cursor that the former owner committed came before the fence. So its offset is lower
// than that of the owner record, and the View has it. The broker refuses a cursor that the former owner tries
// to commit later. If the cursor were read first, the former owner could commit records and a newer cursor
// before the fence. The new owner would deliver those records again.
//
// # Know the frontier before acting on it (I10)
//
// A View reads record by record, so the frontier that it shows may be old: at a start it replays all of them.
// So Acquire returns only when the View has passed the end that partition 0 had after the fence. At a start,
// an instance decides nothing before its View has passed the end that partition 0 had at its start.
//
// # Read back what was committed
//
// Brokers can acknowledge a commit and not complete it (torn.go). So Commit returns only when the View has
// read its documents, and Acquire gives up when the View does not get its owner record. Every View drops the
// documents of a transaction without an end, and the next owner delivers its records again (State.Torn,
// Lease.Discard).
//
// # Moves (I11)
//
// A seek or a reset moves the frontier outside the barrier, in two phases. Type Seized makes the first; the
// owner of lease 0 makes the second. docs/project/protocol.md has the whole protocol. Package protocol walks through
// every state of a model of it.
//
// # Without transactions
//
// There is no fence. A document names the acquisition under which it was written; a former owner's document
// does not count (type mark), and its Commit returns ErrFenced. A lease ends when the group has not
// confirmed its instance for a session timeout (Session). Type wave keeps batches in order.
//
// # Concurrency
//
// A View is safe for concurrent use; a State is immutable. A Lease belongs to one goroutine.
package offsets

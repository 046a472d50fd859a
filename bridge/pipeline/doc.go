// Package pipeline turns blocks of the feed into Kafka records: read, decode, encode, route. It knows nothing
// of the state in Kafka. A Pass describes what it needs. A Host answers what only the holder of a lease
// knows.
//
// A Run reads the shards of one segment side by side, one goroutine each. It sends blocks of encoded records;
// the blocks of one shard are in order. A Lookahead reads small finalized segments before their turn. When it
// is their turn, EncodeWhole makes their records. Both use the same Block, the same encoder and the same pool
// of buffers.
//
// # Memory
//
// All bounds are in memory.go (I9). A Run waits for memory before it sends a block. The receiver gives the memory back
// with Reuse, or with Sent, the account of a block whose records are with the client. A Lookahead has three quarters
// as much for what it reads, and a bundle takes the memory of blocks until its commit: it ends where that is used up.
//
// # Failures
//
// A reader stays at what it cannot read, and a block that cannot be encoded is not sent. The cursor moves only over
// blocks that were sent. So a failure skips nothing (I8). Failures go to Host.Retry.
// A StayError ends the run of one shard: nothing can be done yet, and the next pass tries again.
package pipeline

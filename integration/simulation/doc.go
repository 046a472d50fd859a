// Package simulation runs the real bridge, several instances of it, against a broker and a feed in memory, in virtual
// time, and breaks everything around them by a plan that follows from a seed.
//
// A run is one bubble of testing/synctest. In it are the bridge package with the real Kafka client, a kfake cluster on
// its virtual network, and a feed of feedsim that grows in memory. Minutes of virtual time pass in some hundred
// milliseconds: the clock moves only when every goroutine waits.
//
//	Plan    what a seed means: sizes, settings, the feed's growth, and the faults with their times
//	world   the cluster, the feed and the instances; it carries a plan out
//	link    an instance's connections: held, slow, cut; requests lost, late or without an answer
//	window  an instance's view of the feed: held, slow, failing
//	storage the account of a plan with scans
//	judge   reads the topics as consumers do, and has package verify check them
//	whole   what each transaction holds
//	tracer  what the bridge does, of a plan that is small enough for the model of the protocol
//
// # What a run checks
//
//   - The promises of docs/delivery.md, by package verify. Without transactions, only those that
//     hold without them.
//   - Nothing is stuck: after the last fault everything is delivered and resolved within settleLimit of virtual time.
//   - Nobody ends without need: an instance ends by itself only if the feed lost events that were not delivered.
//   - A loss is recorded: an event is missing only if retention removed it, and the frontier counts the gap.
//     What retention removes before the first segment is named is no loss. Of a segment, it removes the
//     manifest first.
//   - What a lease has read and not committed stays within the configured bytes, where no filter leaves events out.
//   - A transaction is whole: one with markers has a frontier that moves, one with records a document that moves. It
//     needs transaction version 2, which gives each transaction an epoch of its producer.
//   - The model of the protocol (internal/testing/protocol) has a step for everything that the bridge does, in plans of
//     NewTracePlan: two leases, few faults, and two shards in three segments, or an account of two blobs to list. Every
//     fourth is without transactions.
//
// A plan with scans has an account whose changes are what the feed has, and which changes between the requests of a
// scan. It has all other steps, too: seeks, resets, added partitions, damage, filters, an end. In the end the table
// that the topics make has to be the account; where a seek, a reset or damage may have left events out, or blobs have
// vanished, after one more scan with a sweep. Else the records up to the last marker have to make the account as it was
// then, also behind an end. Rows and deletions come once in a scan, and no marker is below the end of the initial one.
//
// In about every fourth plan with scans, blobs vanish without events. HEAD requests are slow, so the sweep that finds
// them takes some ten rounds. Meanwhile the group hears no heartbeats of instances that continue to work, so leases go
// to another instance, come back, and go again.
//
// Between two markers all records of a key are in one partition, with scans or without.
//
// # What replays
//
// A seed gives the same plan each time, and virtual time is exact. Which of two goroutines runs first at one virtual
// moment is up to the Go scheduler, so a failure can need several runs of its seed to come again: SIM_REPEAT says how
// many.
//
// # What it is not
//
// Without transactions the simulated network delivers a request within half a session or never. The bridge
// promises nothing for later ones, so they are not tried.
//
// A paused instance is one whose connections and store do not answer. Its timers run, which those of a
// stopped process do not. kfake is one process. Replication, elections that lose records, and late ends of
// transactions are left to integration/chaos, with real brokers.
//
// # The build tag
//
// The Kafka client holds mutexes while it waits. A goroutine that waits for a sync.Mutex does not count as
// waiting in a bubble, so the clock would stop. With the build tag synctests the client uses channels
// instead. Without the tag, the tests here run themselves again, by go test with the tag. So a plain go test
// skips nothing.
package simulation

// Package protocol checks the state protocol of the bridge by walking through every state that it can reach.
//
// There is no code here that the bridge runs. The package holds models of the protocol:
//
//   - exact_*.go: DELIVERY=exactly_once, with transactions and fences;
//   - least_*.go: DELIVERY=at_least_once, with neither;
//   - torn_test.go: transactions that the brokers do not complete;
//   - scan_*.go: scans of the account, against what its blobs, the feed and the listing may do meanwhile;
//   - lane_*_test.go: scans in rounds while the topic gets partitions, with seeks, cancels, lost history and crashes.
//
// A model is a small state machine. The first two have two instances, two leases, up to three segments, and the
// state topic as a list of records that each instance reads one by one. A step is one thing that one actor
// does: an instance reads a record, fences, reads an event, produces; a broker commits or aborts; retention
// removes a segment; an operator seeks; a process crashes. A pause needs no step, because every actor may wait
// while the others act.
//
// The explorer takes every step in every state, breadth first, so that the first counterexample is the shortest.
// It checks that no state breaks an invariant, and that from every state the feed can still be delivered (no dead end).
//
// Follow takes the same steps of the exact model, for a trace of what the program did: what it fenced, acquired and
// committed, and what became of the feed. FollowScan does so with the scan model, and what became of the account.
// FollowLeast does so with the model of at_least_once, for every record that the brokers take. What nobody else sees,
// such as what a worker has read, may have happened in any way that fits. If the model has no step for an event, the
// program does what the protocol does not allow, also where nothing went wrong in that run.
// integration/simulation makes the traces.
//
// Each rule of the protocol is a switch (see exactRules and leastRules). The tests show that the protocol with all
// rules is clean in every situation, and that each rule is needed: without it, a situation breaks a named invariant.
// docs/project/protocol.md explains the rules; TestExactReverts and TestLeastReverts list what breaks.
//
// The tests run without the race detector, which would find nothing in one goroutine and take ten times as long.
//
//	go test ./internal/testing/protocol -v                     # state counts, and the traces of all counterexamples
//	PROTOCOL_FULL=1 go test ./internal/testing/protocol -v     # larger situations: some minutes, some GB
package protocol

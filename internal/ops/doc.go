// Package ops shows an instance to its operators: liveness, readiness, metrics, a status document and a page.
//
// A Monitor observes the engine (bridge.Observer), with a call for each transaction and none for each record, and keeps
// what can't be asked for later. Every answer is made from one Snapshot, so the page, the probes and the metrics agree.
//
// An instance is ready when it is a member of the group and none of its leases is stuck. A lease is stuck when, for
// longer than the watchdog's timeout, it has had work without a commit or has failed to look for work: such a process
// looks alive and does nothing.
//
// A Monitor is safe for concurrent use.
package ops

// Package ops shows an instance to those who run it: liveness, readiness, metrics, a status document and a page.
//
// A Monitor hears what the engine does (bridge.Observer), a call for each transaction and none for each record, and keeps
// what can't be asked for later. Everything else is worked out when somebody asks: each answer is made from one Snapshot,
// so the page, the probes and the metrics agree.
//
// An instance is ready when it is a member of the group and none of its leases is stuck. A lease is stuck when it has had
// something to do for longer than the watchdog's timeout without a commit, or could not look for it: a process that looks
// alive and does nothing.
//
// A Monitor is safe for concurrent use.
package ops

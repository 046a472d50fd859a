// Package ops shows an instance to its operators: liveness, readiness, metrics, a status document and a page.
//
// A Monitor observes the engine (bridge.Observer): it is called for transactions, never for records. It keeps
// what nobody can ask for later. Every answer is made from one Snapshot, so the page, the probes and the
// metrics agree.
//
// An instance is ready when it is a member of the group and none of its leases is stuck. A lease is stuck if
// it has had work and no commit for longer than the watchdog's timeout. It is also stuck if it has failed to
// look for work for so long. Such a process looks alive and does nothing.
//
// A Monitor is safe for concurrent use.
package ops

package protocol

// leastRules are the rules of DELIVERY=at_least_once.
type leastRules struct {
	failFast bool // after a refused record the producer writes nothing more
	awaits   bool // a producer is closed only after what it has sent is answered
	intent   bool // the frontier is written before its marker, and says that it is owed
	lastOnly bool // a bundle writes one marker, behind all of it
	age      bool // nothing is sent when the lease may have expired
	byOwner  bool // a document counts only if the last owner record is its writer's
	repair   bool // the keeper moves back behind a document that does not count
	enter    bool // a move waits until every lease with an owner has entered its epoch
	asks     bool // before that, the keeper asks for the ends of all partitions, to know of every owner
	lagged   bool // the state topic is compacted only after what does not count is repaired: min.compaction.lag.ms
	counts   bool // a verb that has written its frontier reports success only if it counts
	known    bool // R1: after its own record, an owner waits for partition 0's high watermark
}

func allLeastRules() leastRules {
	return leastRules{true, true, true, true, true, true, true, true, true, true, true, true}
}

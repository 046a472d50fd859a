package protocol

// leastSituation is what the protocol has to cope with.
type leastSituation struct {
	name      string
	segments  uint8
	perShard  uint8
	oneKey    bool // only lease 1 has a shard
	bundles   bool
	named     bool  // but the first segment is named, as if it were too large for one
	crashes   uint8 // crashes, refused records and leases that another takes: together
	refused   bool  // records may be refused
	takeover  bool  // the session of an instance expires, and it does not know
	late      uint8 // documents of this kind that were sent may arrive after that
	slowClock bool  // an instance that sleeps does not notice it, but ends what it has begun
	seeks     bool  // an operator moves the bridge back to segment 1
	raced     bool  // and an instance may take lease 0 back before the seek is written
	compacts  bool  // all stop, the state topic is compacted, and all start
	fresh     bool  // the first start: there is no frontier
	finalizes bool  // the last segment is not finalized, but it will be
	asProgram bool  // what the rules leave open is as the program does it: see leastTurn
	large     bool  // only with PROTOCOL_FULL=1
}

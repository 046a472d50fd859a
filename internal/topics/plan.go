package topics

import "time"

// Kind is what a topic is for.
type Kind int

// The kinds of topics. Records and markers have the times of events, which may be years old.
const (
	Records Kind = iota
	Markers
	DeadLetters
	State
)

// Topic is what a bridge needs of one topic.
type Topic struct {
	Kind       Kind
	Name       string
	Partitions int32     // of a new topic
	Oldest     time.Time // the oldest event that is still to be written; zero: unknown, or none
	Largest    int       // bytes of the largest record; 0: unknown
	Grows      int       // the same, when the bridge has made as many topics as it may
}

// Plan says what the topics of a bridge hold, and which of them the bridge may create.
type Plan struct {
	By          Creator
	Partitions  int32  // of a topic that the bridge or the user creates
	Replication int16  // -1: the brokers' default
	Atomic      bool   // records and progress are written in transactions
	Table       bool   // records make a table: compaction keeps the last of each key
	Copy        Copy   // records are a copy of the account, of which retention must delete none
	Inline      bool   // markers, which have no key, go to the topics of records
	Beside      bool   // markers go to topics of their own
	Limit       int    // of topics that a template makes; 0: none
	Flags       string // with which commands of Kafka's tools reach the brokers
}

// Copy is why a topic is a copy of the account.
type Copy int

// The reasons. Repaired topics are read to find the keys that the account no longer has.
const (
	NoCopy   Copy = iota
	Scanned       // the first start writes a row of each blob
	Repaired      // a sweep repairs the topic when history is lost
)

// Creator is who creates a missing topic.
type Creator int

// The creators. The topic of the state is never left to the brokers: it needs settings that they do not know.
const (
	ByBridge  Creator = iota
	ByBrokers         // when they are asked for it
	ByNobody          // but the user: a missing topic is an error
)

// Settings returns what a new topic gets. All else is as the brokers have it.
func (p *Plan) Settings(kind Kind) map[string]*string {
	values := map[string]string{cleanupPolicy: "delete"}
	switch {
	case kind == DeadLetters:
		values = map[string]string{retention: forever}
	case kind == Records && p.Table:
		values[cleanupPolicy] = "compact"
	case kind == Records && p.Copy != NoCopy:
		values[retention], values[retentionSize] = forever, forever
	case kind == State:
		// A new instance reads the topic from its start. Small segments and eager compaction keep that short:
		// a commit a second writes some 25 MB a day and partition.
		values = map[string]string{
			cleanupPolicy: "compact", "segment.bytes": "16777216", "min.cleanable.dirty.ratio": "0.1",
		}
		if !p.Atomic {
			// What a paused owner wrote late has to stay readable until the coordinator of the frontier has repaired
			// what stands behind it.
			values["min.compaction.lag.ms"] = "86400000"
		}
	}
	settings := map[string]*string{}
	for name, value := range values {
		settings[name] = &value
	}
	return settings
}

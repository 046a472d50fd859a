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
	Partitions  int32  // of a topic that the bridge creates; 0: it creates none
	Replication int16  // -1: the brokers' default
	ByBroker    bool   // the brokers create a missing topic when they are asked for it
	Table       bool   // records make a table: compaction keeps the last of each key
	Inline      bool   // markers, which have no key, go to the topics of records
	Beside      bool   // markers go to topics of their own
	Limit       int    // of topics that a template makes; 0: none
	Tool        string // begins the commands that alter a topic's settings
}

// Creates reports whether a missing topic is created, by the bridge or by the brokers.
func (p *Plan) Creates() bool { return p.Partitions > 0 || p.ByBroker }

// Settings returns what a new topic gets. All else is as the brokers have it.
func (p *Plan) Settings(kind Kind) map[string]*string {
	name, value := cleanupPolicy, "delete"
	switch {
	case kind == DeadLetters:
		name, value = retention, forever
	case kind == Records && p.Table:
		value = "compact"
	}
	return map[string]*string{name: &value}
}

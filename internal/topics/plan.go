package topics

import (
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/topicname"
)

// Kind is what a topic is for.
type Kind int

// The kinds of topics.
const (
	Records Kind = iota
	Markers
	DeadLetters
	State
)

// Plan says what the topics of a bridge hold, and which of them the bridge may create.
type Plan struct {
	Partitions  int32 // of a topic that the bridge creates; 0: it creates none
	Replication int16 // -1: the brokers' default
	ByBroker    bool  // the brokers create a missing topic when they are asked for it
	Table       bool  // records make a table: compaction keeps the last of each key
	Markers     envelope.Markers
	Limit       int    // of topics that a template makes; 0: none
	Tool        string // begins the commands that alter a topic's settings
}

// Topic is what a bridge needs of one topic.
type Topic struct {
	Name        string
	Kind        Kind
	Partitions  int32
	Replication int16
	Table       bool
	Keyless     bool // it gets records without a key

	Oldest  time.Time // the oldest record that is still to be written; zero: unknown, or none
	Largest int       // bytes of the largest record; 0: unknown
	Grows   int       // the same, when the bridge has made as many topics as it may
}

// Creates reports whether a missing topic is created, by the bridge or by the brokers.
func (p *Plan) Creates() bool { return p.Partitions > 0 || p.ByBroker }

// Records returns the need of a topic of records.
func (p *Plan) Records(name string) Topic {
	return Topic{
		Name: name, Kind: Records, Partitions: p.Partitions, Replication: p.Replication, Table: p.Table,
		Keyless: p.Markers == envelope.MarkersInline,
	}
}

// MarkersOf returns the need of the topic for the markers of a topic of records.
func (p *Plan) MarkersOf(records string, partitions int32) Topic {
	return Topic{
		Name: topicname.Markers(records), Kind: Markers, Partitions: partitions, Replication: p.Replication, Keyless: true,
	}
}

// DeadLetters returns the need of the topic of dead letters.
func (p *Plan) DeadLetters(name string) Topic {
	return Topic{Name: name, Kind: DeadLetters, Partitions: 1, Replication: p.Replication}
}

// State returns the need of the topic of the bridge's state.
func (p *Plan) State(bridge string, leases int32) Topic {
	return Topic{Name: topicname.State(bridge), Kind: State, Partitions: leases, Replication: p.Replication}
}

// settings returns what a new topic gets. All else is as the brokers have it.
func (t *Topic) settings() map[string]*string {
	set := func(name, value string) map[string]*string { return map[string]*string{name: &value} }
	switch {
	case t.Kind == DeadLetters:
		return set(retention, forever)
	case t.Kind == Records && t.Table:
		return set(cleanupPolicy, "compact")
	}
	return set(cleanupPolicy, "delete")
}

// Package topics creates, reads and judges the topics that a bridge writes to.
//
// A Plan says what each topic is for. Everything follows from that: the settings that a new topic gets, the settings
// that an existing one must have, and the advice if it has others. The engine applies it when it opens a topic, the
// checks apply it before a start, so both give the same verdict in the same words.
package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"blobfeed/internal/plain"
)

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

// usualRetention is Kafka's default of log.retention.hours. A printed command cannot depend on what the brokers have.
const usualRetention = 7 * 24 * time.Hour

// ages reports whether the brokers' retention may delete records of a new topic because their events are old.
func ages(kind Kind, settings map[string]*string) bool {
	return (kind == Records || kind == Markers) && settings[retention] == nil && *settings[cleanupPolicy] == "delete"
}

// Plan says what the topics of a bridge hold, and which of them the bridge may create.
type Plan struct {
	Creation
	Atomic bool // records and progress are written in transactions
	Copy   Copy // records are a copy of the account, of which retention must delete none
	Inline bool // markers, which have no key, go to the topics of records
	Beside bool // markers go to topics of their own
}

// Creation says who creates topics, and how.
type Creation struct {
	By          Creator
	Partitions  int32  // of a topic that the bridge or the user creates
	Replication int16  // -1: the brokers' default
	Table       bool   // records make a table: compaction keeps the last of each key
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

// MissingError is a topic that does not exist.
type MissingError struct {
	Topic  string
	Had    int32    // partitions, if records were written to it; 0: unknown
	Create []string // the commands that create it, and others that are missing at a first start; none: unknown
}

var _ plain.Remedied = (*MissingError)(nil)

func (e *MissingError) Error() string { return e.Cause() + ": " + e.Remedy() }

// Cause implements plain.Remedied.
func (e *MissingError) Cause() string {
	switch n := len(e.Create) - 1; {
	case n > 0:
		return fmt.Sprintf("topic %s and %s do not exist", e.Topic, plain.Count(n, "other"))
	case e.Had > 0:
		return "topic " + e.Topic + " does not exist: its records are gone"
	}
	return "topic " + e.Topic + " does not exist"
}

const restart = "or restart from scratch with bridge reset, or with another BRIDGE_NAME and BRIDGE_TOPIC"

// Remedy implements plain.Remedied.
func (e *MissingError) Remedy() string {
	command := strings.Join(e.Create, " && ")
	switch {
	case e.Had > 0:
		return fmt.Sprintf("create it with %s, as it had (%s), to continue with new records, %s",
			plain.Count(e.Had, "partition"), cmp.Or(command, "bridge check prints the command"), restart)
	case len(e.Create) == 1:
		return "set BRIDGE_TOPIC_CREATE=explicit, or create it: " + command
	case len(e.Create) > 1:
		return "set BRIDGE_TOPIC_CREATE=explicit, or create them (bridge config --format strimzi prints them as " +
			"resources): " + command
	}
	return "create it (BRIDGE_TOPIC_CREATE=explicit does that for a topic without records). If it was deleted, its " +
		"records are gone: create it with as many partitions to continue with new records, " + restart
}

// withPartitions adds to the error of a missing topic what it had.
func (a *Admin) withPartitions(ctx context.Context, err error, had map[string]int32) error {
	if gone, is := errors.AsType[*MissingError](err); is {
		return a.Lost(a.dated(ctx, &Topic{Kind: Records, Name: gone.Topic, Partitions: had[gone.Topic]}))
	}
	return err
}

// dated returns the topic with the time of its oldest event.
func (a *Admin) dated(ctx context.Context, t *Topic) *Topic {
	if t.Kind == Records || t.Kind == Markers {
		t.Oldest, _, _ = a.Oldest(ctx) // if it is unknown, check warns of the topic
	}
	return t
}

// Lost returns the error for a topic that had records.
func (p *Plan) Lost(t *Topic) *MissingError {
	return &MissingError{Topic: t.Name, Had: t.Partitions, Create: []string{p.CreateCommand(t)}}
}

// Missing returns the error for those of the topics that do not exist, if nobody but the user creates them.
func (a *Admin) Missing(ctx context.Context, wanted ...Topic) error {
	if a.By != ByNobody {
		return nil
	}
	var all *MissingError
	for i := range wanted {
		_, err := Count(ctx, a.admin(), wanted[i].Name)
		gone, is := errors.AsType[*MissingError](err)
		switch {
		case err == nil:
			continue
		case !is:
			return err
		case all == nil:
			all = gone
		}
		all.Create = append(all.Create, a.CreateCommand(a.dated(ctx, &wanted[i])))
	}
	if all == nil {
		return nil
	}
	return all
}

// CreateCommand returns the command that creates a topic as the bridge would.
func (p *Plan) CreateCommand(t *Topic) string {
	text := fmt.Sprintf("kafka-topics.sh %s --create --topic %s --partitions %d", p.Flags, t.Name, t.Partitions)
	if p.Replication > 0 {
		text += fmt.Sprintf(" --replication-factor %d", p.Replication)
	}
	settings := p.Settings(t.Kind)
	if ages(t.Kind, settings) && !t.Oldest.IsZero() && time.Since(t.Oldest) > usualRetention {
		settings[retention] = new(forever)
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text += " --config " + name + "=" + *settings[name]
	}
	return text
}

// Enlarge returns the remedy for a topic that was deleted and created again with fewer partitions.
func (p *Plan) Enlarge(topic string, partitions int32) string {
	return fmt.Sprintf("give it as many again to continue with new records: kafka-topics.sh %s --alter --topic %s "+
		"--partitions %d; "+restart, p.Flags, plain.Shell(topic), partitions)
}

// RejectedError is a topic that the template makes of a container, and that gets no records. The container is at fault,
// not the event, but BRIDGE_ON_ERROR decides about both.
type RejectedError struct{ Topic, Problem, Do string }

var _ plain.Remedied = (*RejectedError)(nil)

func (e *RejectedError) Error() string { return e.Cause() + ": " + e.Do }

// Cause implements plain.Remedied.
func (e *RejectedError) Cause() string { return fmt.Sprintf("topic %s: %s", e.Topic, e.Problem) }

// Remedy implements plain.Remedied.
func (e *RejectedError) Remedy() string { return e.Do }

const moreTopics = "raise BRIDGE_TOPIC_LIMIT, or leave containers out with BRIDGE_CONTAINERS"

// NearLimit reports whether the topics of a template are close to their limit, and what to do about it.
func (p *Plan) NearLimit(count int) (near bool, do string) {
	return p.Limit > 0 && 5*count >= 4*p.Limit, moreTopics
}

// WithinLimit rejects a topic that would be one too many.
func (p *Plan) WithinLimit(topic string, count int) error {
	if p.Limit == 0 || count <= p.Limit {
		return nil
	}
	return &RejectedError{topic, fmt.Sprintf("BRIDGE_TOPIC makes more topics than BRIDGE_TOPIC_LIMIT=%d", p.Limit),
		moreTopics}
}

// FitsState rejects a topic with whose name the documents of the state would be too large. Half is for the rest of the
// documents, and for topics that other instances open before this one sees them.
func FitsState(topic, state string, count, size int, most int32) error {
	if 2*size <= int(most) {
		return nil
	}
	return &RejectedError{topic, fmt.Sprintf("the state of %d topics takes %d bytes, more than half of the %d "+
		"of max.message.bytes of topic %s", count, size, most, state),
		"raise that, or use another BRIDGE_NAME for some of the containers"}
}

// MaxMessage returns the largest batch that all the topics take. The client makes no larger one, and rejects a record
// that is larger by itself, uncompressed, so no transaction fails for it.
func (a *Admin) MaxMessage(ctx context.Context, names ...string) (int32, error) {
	if len(names) == 0 {
		return defaultLimit, nil
	}
	all, err := Read(ctx, a.admin(), names...)
	if err != nil {
		return 0, err
	}
	limit := int32(maxRequest)
	for _, settings := range all {
		limit = min(limit, settings.MaxMessage())
	}
	return limit, nil
}

package judge

import (
	"fmt"
	"slices"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/verify"
)

// check is a promise, and the validator that checks it.
type check struct {
	name, promise string
	detail        func(*checks) string // ends the promise; nil: nothing does
	unless        []reason             // against the check; it applies if none holds
	fresh         func(*checks) verify.Validator
	first         bool               // with at-least-once delivery it holds for the first record of each event only
	optional      func(*checks) bool // there may be nothing to check; nil: there must be
}

// reason says why a check does not apply, or "".
type reason func(*checks) string

// table has all checks. A setting or a flag that leaves one out is among the reasons of its line.
var table = []check{
	{
		name:    "unique",
		promise: "no event comes twice",
		unless:  []reason{repeats, bounded("order and partition together prove the same"), unnamed},
		fresh:   unique,
	}, {
		name:    "order",
		promise: "on each partition, a shard's events are in order, each once, and no segment is after a later one",
		unless:  []reason{indistinct, noHeaders},
		fresh:   order,
		first:   true,
	}, {
		name:    "sequence",
		promise: "each blob's sequencers never decrease",
		unless:  []reason{indistinct, hasHeaders, bounded("it needs some hundred bytes per key"), unnamed, unsequenced},
		fresh:   sequence,
		first:   true,
	}, {
		name:    "partition",
		promise: "each key is on the partition that",
		detail:  partitionerOf,
		fresh:   partition,
	}, {
		name:    "schema",
		promise: "keys and values in Avro have a schema of the registry",
		unless:  []reason{notAvro},
		fresh:   schemas,
	}, {
		name:     "time",
		promise:  "each record has the time of its event",
		fresh:    eventTime,
		optional: always, // brokers may set the timestamps, and values may have no time
	}, {
		name:     "resolved",
		promise:  "after a marker R no updated <= R; markers never decrease, and reach every partition",
		detail:   timeless,
		unless:   []reason{noMarkers, indistinct},
		fresh:    resolvedTimes,
		first:    true,
		optional: func(c *checks) bool { return c.t.fresh },
	}, {
		name:     "scan",
		promise:  "an initial scan's rows precede the feed, and have one time; no marker is below their listing",
		fresh:    scans,
		first:    true,
		optional: always,
	}, {
		name:    "replay",
		promise: replayPromise,
		unless:  []reason{noFeed},
		fresh:   feedRecords,
	},
}

const replayPromise = "the topic has every event of the feed, with the same bytes, each blob's in order"

// claim is a check of a topic.
type claim struct {
	check
	validator verify.Validator // nil: it is not checked
	reason    string           // why it is not checked
	optional  bool
}

// checks are those of a topic.
type checks struct {
	v         *verification
	t         *run
	event     bool // each record identifies its event, has its time, its sequencer
	time      bool
	sequencer bool

	all      []claim
	unique   *verify.Unique
	resolved *verify.Resolved // nil: it is not checked
	scan     *verify.Scan
	seen     *verify.Seen // nil: no event may come twice
	first    bool         // the current record is the first of its event
}

// checks returns the validators that apply to the topic, and why the others do not apply.
func (v *verification) checks(t *run) *checks {
	c := &checks{v: v, t: t, first: true, sequencer: sequenced(v.Record)}
	c.event, c.time = says(v.Record)
	if !v.Kafka.Transactional {
		c.seen = verify.NewSeen()
	}
	for _, line := range table {
		k := claim{check: line}
		if line.detail != nil {
			k.promise += line.detail(c)
		}
		k.optional = line.optional != nil && line.optional(c)
		if i := slices.IndexFunc(line.unless, func(r reason) bool { return r(c) != "" }); i >= 0 {
			k.reason = line.unless[i](c)
		} else {
			k.validator = line.fresh(c)
		}
		if line.first && c.seen != nil {
			k.promise += " (first record of each event)"
			if k.validator != nil {
				k.validator = firstOnly{k.validator, c}
			}
		}
		c.all = append(c.all, k)
	}
	return c
}

// The reasons.

func bounded(why string) reason {
	return func(c *checks) string { return when(c.v.Bounded, "--bounded: "+why) }
}

func repeats(c *checks) string {
	return when(!c.v.Kafka.Transactional, "BRIDGE_DELIVERY=at_least_once: events may be repeated")
}

func unnamed(c *checks) string {
	return when(!c.event, "with these settings a record does not identify its event")
}

// indistinct says why repeated events can't be distinguished from first ones.
func indistinct(c *checks) string {
	switch {
	case c.v.Kafka.Transactional:
		return ""
	case c.v.Bounded:
		return "--bounded: " + repeats(c)
	case !c.event:
		return repeats(c) + ", and " + unnamed(c)
	}
	return ""
}

func noHeaders(c *checks) string {
	return when(c.v.Record.Headers == envelope.HeadersNone, "the position is in a header, and BRIDGE_HEADERS=none")
}

func hasHeaders(c *checks) string {
	return when(noHeaders(c) == "", "order proves more: the feed's order, whatever the sequencers are")
}

func unsequenced(c *checks) string {
	return when(!c.sequencer, "with these settings a record has no sequencer")
}

func notAvro(c *checks) string {
	return when(c.v.avro == nil || !c.avroKeys() && !c.avroValues(), "nothing is in Avro")
}

func noMarkers(c *checks) string {
	return when(c.v.Records.Markers == envelope.MarkersOff, "BRIDGE_RESOLVED_TO=off: there are no markers")
}

func noFeed(c *checks) string { return when(c.t.feed == nil, "without --feed") }

func always(*checks) bool { return true }

func when(is bool, reason string) string {
	if is {
		return reason
	}
	return ""
}

// What ends a promise.

func partitionerOf(c *checks) string {
	return fmt.Sprintf(" %s gives for %s", c.v.Records.Frozen[offsets.FrozenPartitioner], c.t.growth)
}

func timeless(c *checks) string {
	return when(!c.time, " (with these settings records have no time, so records after a marker can't be judged)")
}

// The validators.

func unique(c *checks) verify.Validator {
	c.unique = verify.NewUnique()
	if c.t.growth.grew() {
		c.unique.Moves()
	}
	return c.unique
}

func order(*checks) verify.Validator { return verify.NewOrder() }

func sequence(*checks) verify.Validator { return verify.NewSequence() }

func eventTime(*checks) verify.Validator { return verify.NewTime() }

func feedRecords(c *checks) verify.Validator { return c.t.feed }

func schemas(c *checks) verify.Validator { return verify.NewSchema(c.avroKeys(), c.avroValues()) }

func partition(c *checks) verify.Validator {
	p := c.t.growth.partition(c.v.Records.Partition)
	if !c.v.Kafka.Transactional {
		p.Repeats()
	}
	return p
}

func scans(c *checks) verify.Validator {
	c.scan = verify.NewScan()
	return c.scan
}

func resolvedTimes(c *checks) verify.Validator {
	t := c.t
	c.resolved = verify.NewResolved(len(t.to))
	c.resolved.Of(t.state.feed())
	if !c.time {
		c.resolved.Timeless()
	}
	markers := t.topic
	if t.beside != nil {
		markers = t.beside
		c.resolved.Ends(t.to)
	}
	for p, from := range markers.from {
		unused := int(p) >= t.growth.now
		if markers.deleted(p) || unused || t.growth.added(p) {
			c.resolved.Late(p, unused || markers.deleted(p) && from == markers.to[p])
		}
	}
	return c.resolved
}

func (c *checks) avroKeys() bool { return c.v.Record.KeyFormat == envelope.KeyAvro }

func (c *checks) avroValues() bool { return c.v.Record.Format == envelope.Avro }

func (c *checks) validators() (all []verify.Validator) {
	for _, k := range c.all {
		if k.validator != nil {
			all = append(all, k.validator)
		}
	}
	return all
}

// firstOnly shows a validator only the first record of each event.
type firstOnly struct {
	verify.Validator
	checks *checks
}

// Note implements verify.Validator.
func (f firstOnly) Note(r verify.Record) {
	if f.checks.first {
		f.Validator.Note(r)
	}
}

// Checked returns how many records the validator has judged.
func (f firstOnly) Checked() int64 {
	if counts, ok := f.Validator.(interface{ Checked() int64 }); ok {
		return counts.Checked()
	}
	return 0
}

// sample returns the record of an event of a type, as the options make it.
func sample(o envelope.Options, eventType string) (r verify.Record, ok bool) {
	schemas := map[int]string{}
	o.Topic, o.Register = "sample", func(s envelope.Subject) (int, error) {
		schemas[len(schemas)] = s.Schema
		return len(schemas) - 1, nil
	}
	encoder, err := envelope.NewEncoder(o)
	if err != nil {
		return r, false
	}
	ev := source.Event{EventType: eventType, EventTime: "2026-01-01T00:00:00.0000000Z",
		Topic:   "/subscriptions/s/resourceGroups/r/providers/Microsoft.Storage/storageAccounts/a",
		Subject: "/blobServices/default/containers/c/blobs/b", Sequencer: "1",
		ID: "00000000-0000-0000-0000-000000000000"}
	var rec envelope.Record
	_, emit, err := encoder.Append(nil, &rec, &ev, source.Position{})
	avro := verify.NewAvro(func(id int) (string, error) { return schemas[id], nil })
	return recordOf(&rec, avro), emit && err == nil
}

// says reports whether every record under these settings, also of a deletion, identifies its event and has its time.
func says(o envelope.Options) (event, time bool) {
	event, time = true, true
	for _, eventType := range []string{"BlobCreated", "BlobDeleted"} {
		r, ok := sample(o, eventType)
		e, t := r.Says()
		event, time = event && (e || !ok), time && (t || !ok)
		if eventType == "BlobDeleted" && o.Deletes == envelope.DeletesBoth {
			e, t = (&verify.Record{Key: r.Key, Headers: r.Headers}).Says() // the tombstone behind it
			event, time = event && (e || !ok), time && (t || !ok)
		}
	}
	return event, time
}

// sequenced reports whether rows under these settings have their event's sequencer.
func sequenced(o envelope.Options) bool {
	r, ok := sample(o, "BlobCreated")
	return !ok || r.Sequenced()
}

// namesAccount reports whether every record under these settings, also of a deletion, names its account.
func namesAccount(o envelope.Options) bool {
	for _, eventType := range []string{"BlobCreated", "BlobDeleted"} {
		if r, ok := sample(o, eventType); ok && r.Account() == "" {
			return false
		}
	}
	return true
}

// recordOf returns a record as the encoder made it.
func recordOf(rec *envelope.Record, avro *verify.Avro) verify.Record {
	r := verify.Record{Key: rec.Key, Value: rec.Value, Millis: rec.Millis, Avro: avro}
	r.Headers = make([]verify.Header, len(rec.Headers))
	for i, h := range rec.Headers {
		r.Headers[i] = verify.Header(h)
	}
	return r
}

// recordsOf returns the record of an event, and the tombstone behind it, if it has one.
func recordsOf(rec *envelope.Record, avro *verify.Avro) []verify.Record {
	all := []verify.Record{recordOf(rec, avro)}
	if rec.Tombstone {
		second := all[0]
		second.Value = nil
		all = append(all, second)
	}
	return all
}

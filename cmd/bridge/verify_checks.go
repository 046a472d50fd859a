package main

import (
	"encoding/json"
	"fmt"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/verify"
)

const replayPromise = "the topic has what the feed gives: every event, the same bytes, each blob's order"

// claim is a promise, and what checks it.
type claim struct {
	name, promise string
	validator     verify.Validator // nil: it is not checked
	reason        string           // why not
	optional      bool             // it may find nothing to check
}

type checks struct {
	all      []claim
	unique   *verify.Unique
	resolved *verify.Resolved
	seen     *verify.Seen // nil: no event may come twice
	first    bool         // the record that is shown is of an event that comes for the first time
}

// firstOnly shows a validator only what comes for the first time.
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

// Checked is that of the validator.
func (f firstOnly) Checked() int64 { return f.Validator.(interface{ Checked() int64 }).Checked() }

// add adds a check, or the first reason that there is against it.
func (c *checks) add(name, promise string, fresh func() verify.Validator, against ...string) *claim {
	k := claim{name: name, promise: promise}
	for _, reason := range against {
		if k.reason == "" {
			k.reason = reason
		}
	}
	if k.reason == "" {
		k.validator = fresh()
	}
	c.all = append(c.all, k)
	return &c.all[len(c.all)-1]
}

// addFirst adds a check of a promise that holds for events that come for the first time.
func (c *checks) addFirst(name, promise string, fresh func() verify.Validator, against ...string) *claim {
	k := c.add(name, promise, fresh, against...)
	if c.seen != nil {
		k.promise += " (events that come for the first time)"
		if k.validator != nil {
			k.validator = firstOnly{k.validator, c}
		}
	}
	return k
}

func when(is bool, reason string) string {
	if is {
		return reason
	}
	return ""
}

// checks returns the validators that apply to the topic under the settings, and of the others why they do not.
func (v *verification) checks(t *subject) *checks {
	c := &checks{first: true}
	saysEvent, saysTime := v.says()
	repeats := "BRIDGE_DELIVERY=at_least_once: events may come again"
	unnamed := when(!saysEvent, "with these settings a record does not say which event it is of")
	again := "" // repeated events can't be distinguished from first ones
	if !v.Transactional {
		c.seen = verify.NewSeen()
		again = when(v.bounded, "--bounded: "+repeats)
		if again == "" && unnamed != "" {
			again = repeats + ", and " + unnamed
		}
	}
	noHeaders := when(v.config.Headers == "none", "the position is in a header, and BRIDGE_HEADERS=none")
	bounded := when(v.bounded, "--bounded: progress and partition say the same")
	c.add("unique", "no event comes twice", func() verify.Validator {
		c.unique = verify.NewUnique()
		return c.unique
	}, when(!v.Transactional, repeats), bounded, unnamed)
	c.addFirst("order", "each blob's events are in the feed's order, on one partition", func() verify.Validator {
		if len(v.grownFrom) > 0 {
			return verify.NewOrder().Moves()
		}
		return verify.NewOrder()
	}, again, noHeaders, bounded)
	c.addFirst("progress", "each partition has each shard's events in the feed's order, once",
		func() verify.Validator { return verify.NewProgress() }, again, noHeaders)
	c.addFirst("barrier", "on each partition, no segment comes after a later one",
		func() verify.Validator { return verify.NewBarrier() }, again, noHeaders)
	c.addFirst("sequence", "each blob's sequencers never fall",
		func() verify.Validator { return verify.NewSequence() }, again,
		when(noHeaders == "", "order proves more: the feed's order, whatever the service's sequencers are"),
		when(v.bounded, "--bounded: it keeps some hundred bytes a key"), unnamed)
	c.add("partition", fmt.Sprintf("each key is where %s puts it on %d partitions", v.config.Partitioner, len(t.to)),
		func() verify.Validator { return verify.NewPartition(len(t.to), v.Partition).GrownFrom(v.grownFrom...) })
	// Brokers may set the times, and values need not say one.
	c.add("time", "each record has the time of its event",
		func() verify.Validator { return verify.NewTime() }).optional = true
	v.checkMarkers(c, t, saysTime, again)
	c.addFirst("before", "what was before is what the event before left", func() verify.Validator {
		return verify.NewBefore(append(append([]string{}, verify.AboutEvent...), verify.Unseen...)...)
	}, when(!v.record.Diff && v.record.Before != envelope.BeforeFull, "the settings write no more of it than the key"),
		again, when(v.bounded, "--bounded: it keeps the columns of each key")).optional = true
	c.add("table", "each record is its key's row, or a tombstone", func() verify.Validator { return verify.NewTable() },
		when(!t.compacted, "the topic is not compacted"), when(!v.writesRows(), "the values are not rows"))
	c.add("replay", replayPromise, nil, "without --feed")
	return c
}

// checkMarkers adds the check of the markers, wherever they are.
func (v *verification) checkMarkers(c *checks, t *subject, saysTime bool, again string) {
	promise := "after a marker R no updated <= R; markers never fall, and reach every partition"
	if !saysTime {
		promise = "markers never fall, and reach every partition (with these settings records say no time, " +
			"so what comes after a marker can't be judged)"
	}
	c.addFirst("resolved", promise, func() verify.Validator {
		c.resolved = verify.NewResolved(len(t.to))
		if !saysTime {
			c.resolved.Timeless()
		}
		markers := t.topic
		if t.beside != nil {
			markers = t.beside
			c.resolved.Ends(t.to)
		}
		for p, from := range markers.from {
			if from > 0 || len(v.grownFrom) > 0 && int(p) >= v.grownFrom[0] {
				c.resolved.Late(p, from > 0 && from == markers.to[p])
			}
		}
		return c.resolved
	}, when(v.Markers == envelope.MarkersOff, "BRIDGE_RESOLVED_TO=off: there are no markers"), again).optional = t.fresh
}

// replay puts the comparison with the feed into the checks.
func (c *checks) replay(feed *comparison) {
	k := &c.all[len(c.all)-1]
	k.validator, k.reason = feed, ""
}

func (c *checks) validators() (all []verify.Validator) {
	for _, k := range c.all {
		if k.validator != nil {
			all = append(all, k.validator)
		}
	}
	return all
}

// sample returns the record of an event of a type, as the settings make it.
func (v *verification) sample(eventType string) (r verify.Record, ok bool) {
	o, schemas := v.record, map[int]string{}
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
		Subject: "/blobServices/default/containers/c/blobs/b", ID: "00000000-0000-0000-0000-000000000000", Sequencer: "1"}
	var rec envelope.Record
	_, emit, err := encoder.Append(nil, &rec, &ev, source.Position{})
	avro := verify.NewAvro(func(id int) (string, error) { return schemas[id], nil })
	r = verify.Record{Key: rec.Key, Value: rec.Value, Avro: avro}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, verify.Header(h))
	}
	return r, emit && err == nil
}

// writesRows reports whether the values under these settings are rows.
func (v *verification) writesRows() bool {
	r, ok := v.sample("BlobCreated")
	var row struct{ Path *string }
	return ok && json.Unmarshal(r.Value, &row) == nil && row.Path != nil
}

// says reports what every record says under these settings, also that of a deletion.
func (v *verification) says() (event, time bool) {
	event, time = true, true
	for _, eventType := range []string{"BlobCreated", "BlobDeleted"} {
		r, ok := v.sample(eventType)
		e, t := r.Says()
		event, time = event && (e || !ok), time && (t || !ok)
	}
	return event, time
}

package main

import (
	"encoding/json"
	"fmt"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/verify"
)

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
}

// checks returns the validators that apply to the topic under the settings, and of the others why they do not.
func (v *verification) checks(t *subject) *checks {
	partitions := len(t.to)
	headers := v.config.Headers != "none"
	noHeaders := "the position is in a header, and BRIDGE_HEADERS=none"
	tellsEvent, tellsTime := v.tells()
	repeats := "BRIDGE_DELIVERY=at_least_once: events may come again"
	bounded := "--bounded: progress and partition say the same"
	c := &checks{}
	// add adds a check, or the first reason that there is against it.
	add := func(name, promise string, fresh func() verify.Validator, against ...string) {
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
	}
	when := func(is bool, reason string) string {
		if is {
			return reason
		}
		return ""
	}
	add("unique", "no event comes twice", func() verify.Validator {
		c.unique = verify.NewUnique()
		return c.unique
	},
		when(!v.Transactional, repeats), when(v.bounded, bounded),
		when(!tellsEvent, "with these settings a record does not say which event it is of"))
	add("order", "each blob's events are in the feed's order, on one partition", func() verify.Validator {
		if len(v.grownFrom) > 0 {
			return verify.NewOrder().Moves()
		}
		return verify.NewOrder()
	},
		when(!v.Transactional, repeats), when(!headers, noHeaders), when(v.bounded, bounded))
	add("progress", "each partition has each shard's events in the feed's order, once", func() verify.Validator { return verify.NewProgress() },
		when(!v.Transactional, repeats), when(!headers, noHeaders))
	add("barrier", "on each partition, no segment comes after a later one", func() verify.Validator { return verify.NewBarrier() },
		when(!headers, noHeaders))
	add("sequence", "each blob's sequencers never fall", func() verify.Validator { return verify.NewSequence() },
		when(headers, "order tells more: the feed's order, whatever the service's sequencers are"), when(!v.Transactional, repeats),
		when(v.bounded, "--bounded: it keeps some hundred bytes a key"),
		when(!tellsEvent, "with these settings a record does not say which event it is of"))
	add("partition", fmt.Sprintf("each key is where %s puts it on %d partitions", v.config.Partitioner, partitions),
		func() verify.Validator {
			return verify.NewPartition(partitions, v.Partition).GrownFrom(v.grownFrom...)
		})
	add("time", "each record has the time of its event", func() verify.Validator { return verify.NewTime() })
	c.all[len(c.all)-1].optional = true // brokers may set the times, and values need not say one
	promise := "after a marker R no updated <= R; markers never fall, and reach every partition"
	if !tellsTime {
		promise = "markers never fall, and reach every partition (with these settings records say no time, so what comes after a marker can't be judged)"
	}
	add("resolved", promise, func() verify.Validator {
		c.resolved = verify.NewResolved(partitions)
		if !tellsTime {
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
	}, when(v.Markers == envelope.MarkersOff, "BRIDGE_RESOLVED_TO=off: there are no markers"))
	c.all[len(c.all)-1].optional = t.fresh
	add("before", "what was before is what the event before left", func() verify.Validator {
		return verify.NewBefore(append(append([]string{}, verify.AboutEvent...), verify.Unseen...)...)
	}, when(!v.record.Diff && v.record.Before != envelope.BeforeFull, "the settings write no more of it than the key"),
		when(v.bounded, "--bounded: it keeps the columns of each key"))
	c.all[len(c.all)-1].optional = true
	add("table", "each record is its key's row, or a tombstone", func() verify.Validator { return verify.NewTable() },
		when(!t.compacted, "the topic is not compacted"), when(!v.writesRows(), "the values are not rows"))
	add("replay", "the topic has what the feed gives: every event, the same bytes, each blob's order", nil, "without --feed")
	return c
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
	ev := source.Event{EventType: eventType, EventTime: "2026-01-01T00:00:00.0000000Z", Subject: "/blobServices/default/containers/c/blobs/b",
		ID: "00000000-0000-0000-0000-000000000000", Sequencer: "1"}
	var rec envelope.Record
	_, emit, err := encoder.Append(nil, &rec, &ev, envelope.Position{})
	r = verify.Record{Key: rec.Key, Value: rec.Value, Avro: verify.NewAvro(func(id int) (string, error) { return schemas[id], nil })}
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

// tells reports what every record says under these settings, also that of a deletion.
func (v *verification) tells() (event, time bool) {
	event, time = true, true
	for _, eventType := range []string{"BlobCreated", "BlobDeleted"} {
		r, ok := v.sample(eventType)
		e, t := r.Tells()
		event, time = event && (e || !ok), time && (t || !ok)
	}
	return event, time
}

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
func (v *verification) checks(t *topic) *checks {
	partitions := len(t.to)
	headers := v.config.Headers != "none"
	noHeaders := "the position is in a header, and BRIDGE_HEADERS=none"
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
		when(!v.Transactional, repeats), when(v.bounded, bounded))
	add("order", "each blob's events are in the feed's order, on one partition", func() verify.Validator {
		if v.grownFrom > 0 {
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
		when(v.bounded, "--bounded: it keeps some hundred bytes a key"))
	add("partition", fmt.Sprintf("each key is where %s puts it on %d partitions", v.config.Partitioner, partitions),
		func() verify.Validator {
			p := verify.NewPartition(partitions, v.Partition)
			if v.grownFrom > 0 {
				return p.GrownFrom(v.grownFrom)
			}
			return p
		})
	add("resolved", "after a marker R no updated <= R; markers never fall, and reach every partition", func() verify.Validator {
		c.resolved = verify.NewResolved(partitions)
		for p, from := range t.from {
			if from > 0 || v.grownFrom > 0 && int(p) >= v.grownFrom {
				c.resolved.Late(p, from > 0 && from == t.to[p])
			}
		}
		return c.resolved
	}, when(v.Markers != envelope.MarkersInline, "BRIDGE_RESOLVED_TO="+v.Markers.String()+": there are no markers in the topic"))
	add("before", "what was before is what the event before left", func() verify.Validator {
		return verify.NewBefore(append(append([]string{}, verify.AboutEvent...), verify.Unseen...)...)
	}, when(v.bounded, "--bounded: it keeps the columns of each key"))
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

// writesRows reports whether the values under these settings are rows: it encodes an event and looks.
func (v *verification) writesRows() bool {
	ev := source.Event{EventType: "BlobCreated", EventTime: "2026-01-01T00:00:00.0000000Z", Subject: "/blobServices/default/containers/c/blobs/b"}
	var r envelope.Record
	if _, emit, err := v.encoder.Append(nil, &r, &ev, envelope.Position{}); err != nil || !emit {
		return false
	}
	var row struct{ Path *string }
	return json.Unmarshal(r.Value, &row) == nil && row.Path != nil
}

package judge

import (
	"fmt"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/verify"
)

const replayPromise = "the topic has every event of the feed, with the same bytes, each blob's in order"

// claim is a promise, and the validator that checks it.
type claim struct {
	name, promise string
	validator     verify.Validator // nil: it is not checked
	reason        string           // why it is not checked
	optional      bool             // there may be nothing to check
}

type checks struct {
	all      []claim
	unique   *verify.Unique
	resolved *verify.Resolved
	scan     *verify.Scan
	seen     *verify.Seen // nil: no event may come twice
	first    bool         // the current record is the first of its event
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
func (f firstOnly) Checked() int64 { return f.Validator.(interface{ Checked() int64 }).Checked() }

// add adds a check, or the first reason against it.
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

// addFirst adds a check of a promise that holds for the first record of each event only.
func (c *checks) addFirst(name, promise string, fresh func() verify.Validator, against ...string) *claim {
	k := c.add(name, promise, fresh, against...)
	if c.seen != nil {
		k.promise += " (first record of each event)"
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

// checks returns the validators that apply to the topic under the settings, and why the others do not apply.
func (v *verification) checks(t *subject) *checks {
	c := &checks{first: true}
	saysEvent, saysTime := says(v.Record)
	repeats := "BRIDGE_DELIVERY=at_least_once: events may be repeated"
	unnamed := when(!saysEvent, "with these settings a record does not identify its event")
	again := "" // why repeats can't be distinguished from first records
	if !v.Transactional {
		c.seen = verify.NewSeen()
		again = when(v.Bounded, "--bounded: "+repeats)
		if again == "" && unnamed != "" {
			again = repeats + ", and " + unnamed
		}
	}
	noHeaders := when(v.Record.Headers == envelope.HeadersNone, "the position is in a header, and BRIDGE_HEADERS=none")
	bounded := when(v.Bounded, "--bounded: progress and partition together prove the same")
	c.add("unique", "no event comes twice", func() verify.Validator {
		c.unique = verify.NewUnique()
		if t.growth.grew() {
			c.unique.Moves()
		}
		return c.unique
	}, when(!v.Transactional, repeats), bounded, unnamed)
	c.addFirst("order", "each blob's events are in the feed's order, on one partition", func() verify.Validator {
		if t.growth.grew() {
			return verify.NewOrder().Moves()
		}
		return verify.NewOrder()
	}, again, noHeaders, bounded)
	c.addFirst("progress", "each partition has each shard's events in the feed's order, once",
		func() verify.Validator { return verify.NewProgress() }, again, noHeaders)
	c.addFirst("barrier", "on each partition, no segment comes after a later one",
		func() verify.Validator { return verify.NewBarrier() }, again, noHeaders)
	c.addFirst("sequence", "each blob's sequencers never decrease",
		func() verify.Validator { return verify.NewSequence() }, again,
		when(noHeaders == "", "order proves more: the feed's order, whatever the sequencers are"),
		when(v.Bounded, "--bounded: it needs some hundred bytes per key"), unnamed,
		when(!sequenced(v.Record), "with these settings a record has no sequencer"))
	c.add("partition", fmt.Sprintf("each key is on the partition that %s gives for %s",
		v.Frozen[offsets.FrozenPartitioner], t.growth),
		func() verify.Validator {
			p := t.growth.partition(v.Partition)
			if !v.Transactional {
				p.Repeats()
			}
			return p
		})
	// Brokers may set the timestamps, and values may have no time.
	c.add("time", "each record has the time of its event",
		func() verify.Validator { return verify.NewTime() }).optional = true
	v.checkMarkers(c, t, saysTime, again)
	c.addScan()
	c.addFirst("before", "before is what the previous event of the blob left", func() verify.Validator {
		return verify.NewBefore(append(append([]string{}, verify.AboutEvent...), verify.Unseen...)...)
	}, when(!v.Record.Diff, "the settings write only the key of it"),
		again, when(v.Bounded, "--bounded: it needs the columns of each key")).optional = true
	c.add("table", "each record is its key's row, or a tombstone", func() verify.Validator { return verify.NewTable() },
		when(!t.compacted, "the topic is not compacted"), when(!writesRows(v.Record), "the values are not rows"))
	c.add("replay", replayPromise, nil, "without --feed")
	return c
}

// checkMarkers adds the check of the markers, in the topic or in a topic of their own.
func (v *verification) checkMarkers(c *checks, t *subject, saysTime bool, again string) {
	promise := "after a marker R no updated <= R; markers never decrease, and reach every partition"
	if !saysTime {
		promise = "markers never decrease, and reach every partition (with these settings records have no time, " +
			"so records after a marker can't be judged)"
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
			unused := int(p) >= t.growth.now
			if from > 0 || unused || t.growth.added(p) {
				c.resolved.Late(p, unused || from > 0 && from == markers.to[p])
			}
		}
		return c.resolved
	}, when(v.Markers == envelope.MarkersOff, "BRIDGE_RESOLVED_TO=off: there are no markers"), again).optional = t.fresh
}

// replay adds the comparison with the feed to the checks.
func (c *checks) replay(feed verify.Validator) {
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

// addScan adds the check of the rows of scans.
func (c *checks) addScan() {
	c.addFirst("scan", "an initial scan's rows precede the feed, and have one time; no marker is below their listing",
		func() verify.Validator {
			c.scan = verify.NewScan()
			return c.scan
		}).optional = true
}

package judge

import (
	"fmt"
	"slices"
	"strings"

	"blobfeed/verify"
)

// fill takes down what the checks have found.
func (r *Report) fill(s verify.Summary, t *trial) {
	checks, feed, pass, state := t.checks, t.feed, t.pass, t.state
	r.Records, r.Markers = s.Data, s.Markers
	if s.Data == 0 {
		r.Problem = fmt.Sprintf("topic %s has no records: nothing is checked", r.Topic)
	}
	for _, scan := range checks.scan.Rows() {
		r.Scans = append(r.Scans, scanReport{scan.ID, scan.Initial, scan.Rows})
	}
	eventless := checks.scan.Checked() == s.Data // there is nothing to check in events yet
	ran := s.Checks                              // in the order of those in checks that have a validator
	for _, k := range checks.all {
		c := checkReport{Name: k.name, Promise: k.promise, Status: NotChecked, Reason: k.reason}
		if k.validator != nil {
			c.judge(ran[0], r.Topic)
			ran = ran[1:]
			if feed != nil && k.validator == verify.Validator(feed) && c.Status == Holds && feed.Required() == 0 {
				c.Status, c.Reason = NotChecked, "it is unknown which events must be in the topic: "+
					"there is no state for it, and a partition without a marker"
				if state != nil {
					c.Reason = "no event must be in the topic: " +
						"by the cursors nothing is delivered (since the last seek, if any)"
				}
			}
			if c.Status == NotChecked && !k.optional && !eventless && r.Problem == "" {
				r.Problem = c.Name + ": " + c.Reason
			}
		}
		r.Checks = append(r.Checks, c)
		if k.name == "resolved" && c.Status == Broken && state != nil && state.late() > 0 {
			r.note("the bridge counted %d events that the service published too late; they break \"resolved\"",
				state.late())
		}
	}
	if slices.ContainsFunc(r.Checks, func(c checkReport) bool { return c.Name == "partition" && c.Status == Broken }) {
		r.note("if partitions were added to the topic, give all former numbers of partitions with --grown-from")
	}
	if len(t.seeks) > 0 {
		r.Seeks = t.seeks
		again := "events"
		if checks.unique != nil {
			r.Again = checks.unique.Again()
			again = fmt.Sprintf("%d events", r.Again)
		}
		r.note("bridge seek moved the bridge (%s): %s are repeated on purpose", strings.Join(t.seeks, ", "), again)
	}
	if feed == nil {
		return
	}
	if feed.sought > 0 {
		r.note("%d events are before the place to which bridge seek moved the bridge last: it may have skipped them, "+
			"so they may be missing", feed.sought)
	}
	r.Feed = &feedReport{Read: pass.read, Given: feed.given, Required: feed.Required(), UpTo: feed.bound}
	if d := pass.dead; d.topic != "" {
		r.Feed.DeadLetters = &lettersReport{d.topic, d.all, d.events, d.places, d.bytes}
	}
	if feed.scanned > 0 {
		r.note("%d events are before the initial scan, whose rows stand for them, and so need not be in the topic",
			feed.scanned)
	}
	if feed.before > 0 {
		r.note("%d events may be missing: the start of their partition is deleted, and they are of its first segment "+
			"or before", feed.before)
	}
	if n := len(pass.extent.holes); n > 0 {
		r.note("the feed lacks chunks in %d places, before other chunks of the shard, as retention deletes them: "+
			"the rest of such a segment is compared", n)
	}
	if feed.older > 0 {
		r.note("%d records are not compared: the feed starts at %s now, and has their events no more",
			feed.older, pass.extent.oldest)
	}
}

package judge

import (
	"fmt"
	"strings"

	"blobfeed/internal/plain"
	"blobfeed/verify"
)

// fill takes down what the checks have found.
func (r *Report) fill(s verify.Summary, t *run) {
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
		if k.name == "replay" && c.Status == Broken && state == nil {
			r.note("without a state nothing says which part of the feed the topic has: for that of a replay whose " +
				"state is deleted, set BRIDGE_START and BRIDGE_END_TIME to its --from and --to")
		}
		if k.name == "replay" && c.Status == Broken {
			r.note("bridge find --id <event> shows where an event is in the feed, and what became of it")
		}
		if k.name == "resolved" && c.Status == Broken && state != nil && state.late() > 0 {
			r.note("the bridge counted %s that the service published too late: that breaks \"resolved\"",
				plain.Count(state.late(), "event"))
		}
	}
	if unused := len(t.to) - t.growth.now; unused > 0 {
		r.note("%s not in use yet: the bridge uses added partitions behind the next marker",
			plain.Count(unused, "partition"))
	}
	if checks.unique != nil && checks.unique.Twice() > 0 {
		r.Twice = checks.unique.Twice()
		r.note("%s of events that the log of Azure holds twice: one id at two positions, each delivered once",
			plain.Count(r.Twice, "further copy"))
	}
	if len(t.seeks) > 0 {
		r.Seeks = t.seeks
		again := "events"
		if checks.unique != nil {
			r.Again = checks.unique.Again()
			again = plain.Count(r.Again, "event")
		}
		r.note("bridge seek moved the bridge (%s), and repeats %s on purpose", strings.Join(t.seeks, ", "), again)
	}
	if feed == nil {
		return
	}
	if feed.skipped > 0 {
		r.note("%s may be missing: bridge seek may have skipped them, or they are from before the start",
			plain.Count(feed.skipped, "event"))
	}
	r.Feed = &feedReport{Read: pass.read, Given: feed.given, Required: feed.Required(), UpTo: feed.bound}
	if d := pass.dead; d.topic != "" {
		r.Feed.DeadLetters = &lettersReport{d.topic, d.all, d.events, d.places, d.bytes}
	}
	if state != nil && state.Frontier.Gaps > 0 {
		r.note("history was lost %s: see bridge status", plain.Count(state.Frontier.Gaps, "time"))
	}
	if feed.scanned > 0 {
		r.note("%s from before the initial scan need not be in the topic: its rows show what they did",
			plain.Count(feed.scanned, "event"))
	}
	if feed.before > 0 {
		r.note("%s may be missing: the start of the partition is deleted, up to that segment or a later one",
			plain.Count(feed.before, "event"))
	}
	if n := len(pass.extent.holes); n > 0 {
		r.note("the feed lacks chunks in %s, before other chunks of the shard, as retention deletes them: "+
			"the rest of such a segment is compared", plain.Count(n, "place"))
	}
	if feed.older > 0 {
		r.note("not compared: %s from before %s, where the feed starts now",
			plain.Count(feed.older, "record"), pass.extent.oldest)
	}
}

package judge

import (
	"fmt"
	"slices"
	"strings"

	"blobfeed/verify"
)

// Report is what was found in one topic. Its JSON is part of the interface.
type Report struct {
	Topic      string        `json:"topic"`
	Partitions int           `json:"partitions"`
	Records    int64         `json:"records"`
	Markers    int64         `json:"markers"`
	Feed       *feedReport   `json:"feed,omitempty"`
	Seeks      []string      `json:"seeks,omitempty"`  // from where to where, in their order
	Again      int64         `json:"again,omitempty"`  // events that came again after them
	Others     []otherReport `json:"others,omitempty"` // of a shared topic; not judged
	Checks     []checkReport `json:"checks"`
	Notes      []string      `json:"notes,omitempty"`
	Problem    string        `json:"problem,omitempty"` // why something that applies was not checked
}

// feedReport counts the events of the feed.
type feedReport struct {
	Read     int64  `json:"read"`
	Given    int64  `json:"given"`    // let through by the settings
	Required int64  `json:"required"` // must be in the topic
	UpTo     string `json:"up_to"`    // what says so

	DeadLetters *lettersReport `json:"dead_letters,omitempty"` // nil: the bridge has no such topic
}

// lettersReport counts what is delivered to the dead-letter topic.
type lettersReport struct {
	Topic   string `json:"topic"`
	Letters int64  `json:"letters"`
	Events  int64  `json:"events"` // of the feed
	Places  int64  `json:"places"` // of chunks that can't be decoded
	Bytes   int64  `json:"bytes"`  // of those
}

// The states of a check.
const (
	Holds      = "holds"
	Broken     = "broken"
	NotChecked = "not_checked"
)

type checkReport struct {
	Name     string          `json:"name"`
	Status   string          `json:"status"`
	Promise  string          `json:"promise"`
	Checked  int64           `json:"checked"` // records, or markers
	Reason   string          `json:"reason,omitempty"`
	Failures []failureReport `json:"failures,omitempty"`
}

// failureReport has no partition and offset where the failure is not at a record: one that is missing, or a count.
type failureReport struct {
	Topic     string `json:"topic,omitempty"` // that of the markers, if they have one
	Partition *int32 `json:"partition,omitempty"`
	Offset    *int64 `json:"offset,omitempty"`
	Key       string `json:"key,omitempty"`
	Problem   string `json:"problem"`
}

func (r *Report) fill(s verify.Summary, t *subject, pass *feedPass, state *progressState) {
	checks, feed := t.checks, t.feed
	r.Records, r.Markers = s.Data, s.Markers
	if s.Data == 0 {
		r.Problem = fmt.Sprintf("topic %s has no records: nothing was checked", r.Topic)
	}
	ran := s.Checks // in the order of those in checks that have a validator
	for _, k := range checks.all {
		c := checkReport{Name: k.name, Promise: k.promise, Status: NotChecked, Reason: k.reason}
		if k.validator != nil {
			c.judge(ran[0], r.Topic)
			ran = ran[1:]
			if feed != nil && k.validator == verify.Validator(feed) && c.Status == Holds && feed.Required() == 0 {
				c.Status, c.Reason = NotChecked, "nothing says what has to be there: there is no state for this topic, and not a marker on every partition"
				if state != nil {
					c.Reason = "nothing has to be there: the cursors say that nothing was delivered, since the last seek if there was one"
				}
			}
			if c.Status == NotChecked && !k.optional && r.Problem == "" {
				r.Problem = c.Name + ": " + c.Reason
			}
		}
		r.Checks = append(r.Checks, c)
		if k.name == "resolved" && c.Status == Broken && state != nil && state.late() > 0 {
			r.note("the bridge counted %d events that the service published too late; they fail \"resolved\"", state.late())
		}
	}
	if slices.ContainsFunc(r.Checks, func(c checkReport) bool { return c.Name == "partition" && c.Status == Broken }) {
		r.note("if partitions were added to the topic, say how many it had before: --grown-from, with all counts if that was done more than once")
	}
	if len(t.seeks) > 0 {
		r.Seeks = t.seeks
		again := "events"
		if checks.unique != nil {
			r.Again = checks.unique.Again()
			again = fmt.Sprintf("%d events", r.Again)
		}
		r.note("the bridge was moved by bridge seek (%s): %s came again, on purpose", strings.Join(t.seeks, ", "), again)
	}
	if feed == nil {
		return
	}
	if feed.sought > 0 {
		r.note("%d events are before the place to which bridge seek moved the bridge last: whether they were skipped is not known, and they need not be there", feed.sought)
	}
	r.Feed = &feedReport{Read: pass.read, Given: feed.given, Required: feed.Required(), UpTo: feed.bound}
	if d := pass.dead; d.topic != "" {
		r.Feed.DeadLetters = &lettersReport{d.topic, d.all, d.events, d.places, d.bytes}
	}
	if feed.before > 0 {
		r.note("%d events are of segments with which a partition begins, or before: its begin is gone, and they need not be there", feed.before)
	}
	if n := len(pass.holes); n > 0 {
		r.note("chunks are missing before others of their shard, in %d places, as where retention is at work: what is left of such a segment is compared", n)
	}
	if feed.older > 0 {
		r.note("%d records are of what the feed, which begins at %s now, no longer holds: they are not compared", feed.older, pass.oldest)
	}
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (c *checkReport) judge(k verify.Check, topic string) {
	c.Checked = k.Checked
	switch {
	case len(k.Failures) > 0:
		c.Status = Broken
	case k.Checked > 0:
		c.Status = Holds
	default:
		c.Reason = "there was nothing to check"
	}
	for _, f := range k.Failures {
		x := failureReport{Key: f.Key, Problem: f.Problem}
		if f.Topic != "" {
			x.Partition, x.Offset = &f.Partition, &f.Offset
			if f.Topic != topic {
				x.Topic = f.Topic
			}
		}
		c.Failures = append(c.Failures, x)
	}
}

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
	Seeks      []string      `json:"seeks,omitempty"`  // "<from> <to>", in their order
	Again      int64         `json:"again,omitempty"`  // events that are repeated after them
	Others     []otherReport `json:"others,omitempty"` // what other bridges wrote; not judged
	Checks     []checkReport `json:"checks"`
	Notes      []string      `json:"notes,omitempty"`
	Problem    string        `json:"problem,omitempty"` // why something that applies was not checked
}

// feedReport counts the events of the feed.
type feedReport struct {
	Read     int64  `json:"read"`
	Given    int64  `json:"given"`    // that the settings select for the topic
	Required int64  `json:"required"` // must be in the topic
	UpTo     string `json:"up_to"`    // what bounds them

	DeadLetters *lettersReport `json:"dead_letters,omitempty"` // nil: the bridge has no such topic
}

// lettersReport counts what is in the dead-letter topic.
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

// failureReport has no partition and offset if the failure is not at a record, such as a missing one.
type failureReport struct {
	Topic     string `json:"topic,omitempty"` // of the markers, if they have a topic of their own
	Partition *int32 `json:"partition,omitempty"`
	Offset    *int64 `json:"offset,omitempty"`
	Key       string `json:"key,omitempty"`
	Problem   string `json:"problem"`
}

func (r *Report) fill(s verify.Summary, t *subject, pass *feedPass, state *progressState) {
	checks, feed := t.checks, t.feed
	r.Records, r.Markers = s.Data, s.Markers
	if s.Data == 0 {
		r.Problem = fmt.Sprintf("topic %s has no records: nothing is checked", r.Topic)
	}
	ran := s.Checks // in the order of those in checks that have a validator
	for _, k := range checks.all {
		c := checkReport{Name: k.name, Promise: k.promise, Status: NotChecked, Reason: k.reason}
		if k.validator != nil {
			c.judge(ran[0], r.Topic)
			ran = ran[1:]
			if feed != nil && k.validator == verify.Validator(feed) && c.Status == Holds && feed.Required() == 0 {
				c.Status, c.Reason = NotChecked, "it is unknown which events must be in the topic: "+
					"there is no state for it, and a partition without a marker"
				if state != nil {
					c.Reason = "no event must be in the topic: by the cursors nothing is delivered (since the last seek, if any)"
				}
			}
			if c.Status == NotChecked && !k.optional && r.Problem == "" {
				r.Problem = c.Name + ": " + c.Reason
			}
		}
		r.Checks = append(r.Checks, c)
		if k.name == "resolved" && c.Status == Broken && state != nil && state.late() > 0 {
			r.note("the bridge counted %d events that the service published too late; they break \"resolved\"", state.late())
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
	if feed.before > 0 {
		r.note("%d events may be missing: the start of their partition is deleted, and they are of its first segment "+
			"or before", feed.before)
	}
	if n := len(pass.holes); n > 0 {
		r.note("the feed lacks chunks in %d places, before other chunks of the shard, as retention deletes them: "+
			"the rest of such a segment is compared", n)
	}
	if feed.older > 0 {
		r.note("%d records are not compared: the feed starts at %s now, and has their events no more",
			feed.older, pass.oldest)
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
		c.Reason = "there is nothing to check"
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

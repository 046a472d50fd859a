package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"blobfeed/verify"
)

// report is what a verification found.
type report struct {
	Topic      string        `json:"topic"`
	Partitions int           `json:"partitions"`
	Records    int64         `json:"records"`
	Markers    int64         `json:"markers"`
	Feed       *feedReport   `json:"feed,omitempty"`
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
}

// The states of a check.
const (
	holds      = "holds"
	broken     = "broken"
	notChecked = "not_checked"
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
	Partition *int32 `json:"partition,omitempty"`
	Offset    *int64 `json:"offset,omitempty"`
	Key       string `json:"key,omitempty"`
	Problem   string `json:"problem"`
}

func (r *report) fill(s verify.Summary, checks *checks, feed *comparison, state *progressState) {
	r.Records, r.Markers = s.Data, s.Markers
	if s.Data == 0 {
		r.Problem = fmt.Sprintf("topic %s has no records: nothing was checked", r.Topic)
	}
	ran := s.Checks // in the order of those in checks that have a validator
	for _, k := range checks.all {
		c := checkReport{Name: k.name, Promise: k.promise, Status: notChecked, Reason: k.reason}
		if k.validator != nil {
			c.judge(ran[0])
			ran = ran[1:]
			if feed != nil && k.validator == verify.Validator(feed) && c.Status == holds && feed.Required() == 0 {
				c.Status, c.Reason = notChecked, "nothing says what has to be there: there is no state for this topic, and not a marker on every partition"
			}
			if c.Status == notChecked && !k.optional && r.Problem == "" {
				r.Problem = c.Name + ": " + c.Reason
			}
		}
		r.Checks = append(r.Checks, c)
		if k.name == "resolved" && c.Status == broken && state != nil && state.late() > 0 {
			r.note("the bridge counted %d events that the service published too late; they fail \"resolved\"", state.late())
		}
	}
	if slices.ContainsFunc(r.Checks, func(c checkReport) bool { return c.Name == "partition" && c.Status == broken }) {
		r.note("if partitions were added to the topic, say how many it had before: --grown-from")
	}
	if feed == nil {
		return
	}
	r.Feed = &feedReport{feed.read, feed.given, feed.Required(), feed.bound}
	if feed.before > 0 {
		r.note("%d events are of segments with which a partition begins, or before: its begin is gone, and they need not be there", feed.before)
	}
	if feed.older > 0 {
		r.note("%d records are older than the feed, which begins at %s now: they are not compared", feed.older, feed.oldest)
	}
}

func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (c *checkReport) judge(k verify.Check) {
	c.Checked = k.Checked
	switch {
	case len(k.Failures) > 0:
		c.Status = broken
	case k.Checked > 0:
		c.Status = holds
	default:
		c.Reason = "there was nothing to check"
	}
	for _, f := range k.Failures {
		x := failureReport{Key: f.Key, Problem: f.Problem}
		if f.Topic != "" {
			x.Partition, x.Offset = &f.Partition, &f.Offset
		}
		c.Failures = append(c.Failures, x)
	}
}

func (f failureReport) String() string {
	var where []string
	if f.Partition != nil {
		where = append(where, fmt.Sprintf("partition %d, offset %d", *f.Partition, *f.Offset))
	}
	if f.Key != "" {
		where = append(where, "key "+f.Key)
	}
	if where == nil {
		return f.Problem
	}
	return strings.Join(where, ", ") + ": " + f.Problem
}

// err is nil if something was checked and all of it holds.
func (r *report) err() error {
	var failed []string
	for _, c := range r.Checks {
		if c.Status == broken {
			failed = append(failed, c.Name)
		}
	}
	switch {
	case failed != nil:
		return &brokenError{failed}
	case r.Problem != "":
		return errors.New("could not be checked: " + r.Problem)
	}
	return nil
}

func (r *report) write(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "topic %s: %d records and %d markers on %d partitions\n", r.Topic, r.Records, r.Markers, r.Partitions)
	if f := r.Feed; f != nil {
		fmt.Fprintf(&b, "feed: %d events, %d for the topic, %d of them must be there", f.Read, f.Given, f.Required)
		if f.UpTo != "" {
			fmt.Fprintf(&b, ", by %s", f.UpTo)
		}
		b.WriteByte('\n')
	}
	for _, c := range r.Checks {
		switch c.Status {
		case notChecked:
			fmt.Fprintf(&b, "%-11s  %-9s  %s (%s)\n", "not checked", c.Name, c.Promise, c.Reason)
		default:
			status := map[string]string{holds: "holds", broken: "BROKEN"}[c.Status]
			fmt.Fprintf(&b, "%-11s  %-9s  %s (%d checked)\n", status, c.Name, c.Promise, c.Checked)
		}
		for _, f := range c.Failures {
			fmt.Fprintf(&b, "    %s\n", f)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

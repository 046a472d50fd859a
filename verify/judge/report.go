package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"blobfeed/internal/plain"
	"blobfeed/verify"
)

// Report is what was found in one topic. Its JSON is part of the interface.
type Report struct {
	Topic      string            `json:"topic"`
	Partitions int               `json:"partitions"`
	Records    int64             `json:"records"`
	Markers    int64             `json:"markers"`
	Feed       *feedReport       `json:"feed,omitempty"`
	Scans      []verify.ScanRows `json:"scans,omitempty"` // whose rows are among the records
	Seeks      []string          `json:"seeks,omitempty"` // "<from> <to>", in their order
	Again      int64             `json:"again,omitempty"` // events that are repeated after them
	// Twice counts further copies of events that Azure's log holds more than once, at positions of their own.
	Twice   int64         `json:"twice_in_log,omitempty"`
	Others  []otherReport `json:"others,omitempty"` // what other bridges wrote; not judged
	Cause   string        `json:"cause,omitempty"`  // of many faults
	Checks  []checkReport `json:"checks"`
	Notes   []string      `json:"notes,omitempty"`
	Problem string        `json:"problem,omitempty"` // why something that applies was not checked
}

// feedReport counts the events of the feed.
type feedReport struct {
	Read     int64  `json:"read"`
	Given    int64  `json:"given"`             // that the settings select for the topic
	Required int64  `json:"required"`          // must be in the topic
	Skipped  int64  `json:"skipped,omitempty"` // are not in it, because seeks may have skipped them
	UpTo     string `json:"up_to"`             // what bounds them

	DeadLetters *lettersReport `json:"dead_letters,omitempty"` // nil: the bridge has no such topic
}

// lettersReport counts what is in the dead-letter topic.
type lettersReport struct {
	Topic   string `json:"topic"` // "": it does not exist
	Letters int64  `json:"letters"`
	Events  int64  `json:"events"`           // of the feed
	Places  int64  `json:"places"`           // of chunks that can't be decoded
	Bytes   int64  `json:"bytes"`            // of those
	Others  int64  `json:"others,omitempty"` // records more than the bridge wrote, by its state
}

// The states of a check.
const (
	Holds      = "holds"
	Broken     = "broken"
	NotChecked = "not_checked"
)

type checkReport struct {
	Name     string           `json:"name"`
	Status   string           `json:"status"`
	Promise  string           `json:"promise"`
	Checked  int64            `json:"checked"` // records, or markers
	Reason   string           `json:"reason,omitempty"`
	Remedy   string           `json:"remedy,omitempty"` // what mends a broken promise, if a command does
	Failures []verify.Failure `json:"failures,omitempty"`
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// noteSome makes a note of n things, if there are any.
func (r *Report) noteSome(n int64, thing, format string, args ...any) {
	if n > 0 {
		r.note(format, append([]any{plain.Count(n, thing)}, args...)...)
	}
}

func (c *checkReport) judge(checked int64, failures []verify.Failure) {
	c.Checked, c.Failures = checked, slices.Clone(failures)
	switch {
	case len(failures) > 0:
		c.Status = Broken
	case checked > 0:
		c.Status = Holds
	default:
		c.Reason = "there is nothing to check"
	}
}

// otherReport counts what another bridge wrote to the topic.
type otherReport struct {
	Account string `json:"account,omitempty"` // of records
	Feed    string `json:"feed,omitempty"`    // of markers
	Records int64  `json:"records"`
	Markers int64  `json:"markers"`
}

func (o *otherReport) String() string {
	if o.Feed != "" {
		return fmt.Sprintf("%s of feed %s", plain.Count(o.Markers, "marker"), o.Feed)
	}
	return fmt.Sprintf("%s of account %s", plain.Count(o.Records, "record"), o.Account)
}

// fill takes down what the checks have found.
func (r *Report) fill(t *judgedTopic) {
	checks, feed, pass, state := t.checks, t.feed, t.pass, t.v.state
	if r.Records == 0 {
		r.Problem = fmt.Sprintf("topic %s has no records: nothing is checked", r.Topic)
	}
	if n, ordered := checks.unique.Doubled(); n > 0 {
		r.Cause = fmt.Sprintf("all %s are there twice%s: was the bridge reset, or its state lost?",
			plain.Count(n, "record"), when(ordered, ", in the same order"))
	}
	r.Scans = checks.scan.Rows()
	repeats := ""
	if n := checks.unique.Again; n > 0 {
		repeats = fmt.Sprintf(", but for %s that bridge seek repeats", plain.Number(n))
	} else if t.v.Bounded && len(t.seeks) > 0 { // nobody counts them
		repeats = ", but for those that bridge seek repeats"
	}
	skipped := int64(0)
	if feed != nil {
		skipped = feed.Skipped()
	}
	eventless := checks.scan.Checked() == r.Records // there is nothing to check in events yet
	for _, k := range checks.all {
		c := checkReport{Name: k.name, Promise: k.promise, Status: NotChecked, Reason: k.unless}
		if k.unless == "" {
			c.judge(k.validator.Checked(), k.validator.Failures())
			if k.name == "unique" || k.name == "order" {
				c.Promise += repeats
			}
			if k.name == "replay" && skipped > 0 {
				c.Promise += fmt.Sprintf(", but for %s that are not in it (see note)", plain.Number(skipped))
			}
			if k.name == "replay" && c.Status == Holds && feed.Required == 0 {
				c.Status, c.Reason = NotChecked, "it is unknown which events must be in the topic: "+
					"there is no state for it, and a partition without a marker"
				if state != nil {
					c.Reason = "no event must be in the topic: by the state nothing is delivered"
				}
			}
			if k.name == "replay" && c.Status == Holds {
				if doubt := pass.doubt(feed); doubt != "" {
					c.Status, c.Reason = NotChecked, doubt
				}
			}
			if c.Status == NotChecked && !k.optional && !eventless && r.Problem == "" {
				r.Problem = c.Name + ": " + c.Reason
			}
		}
		r.Checks = append(r.Checks, c)
		if c.Status != Broken {
			continue
		}
		if k.name == "replay" {
			r.note("bridge find --id <event> shows where an event is in the feed, and what became of it; " +
				"if a filter has changed since, compare what was written before with the former settings (--config)")
		}
		if k.name == "resolved" && state != nil {
			r.noteSome(counts(state.State).Late, "event",
				"the bridge counted %s at or below a marker: those that the service published too late break "+
					"\"resolved\", those that bridge seek delivers do not")
		}
	}
	r.noteSome(int64(len(t.to)-t.growth.now), "partition",
		"%s not in use yet: the bridge uses added partitions behind the next marker")
	r.Twice = checks.unique.Twice
	r.noteSome(r.Twice, "further copy",
		"%s of events that the log of Azure holds twice: one id at two positions, each delivered once")
	if len(t.seeks) > 0 {
		r.Seeks = t.seeks
		again := "events"
		if checks.unique.Checked() > 0 {
			r.Again = checks.unique.Again
			again = plain.Count(r.Again, "event")
		}
		r.note("bridge seek moved the bridge (%s), and repeats %s on purpose", journeys(t.seeks), again)
	}
	if feed == nil {
		return
	}
	why := "bridge seek has skipped them, or they are from before the start"
	if state == nil {
		why = "its markers say that bridge seek has skipped them, and no state confirms it"
	}
	r.noteSome(skipped, "event", "%s of the feed not in the topic: %s", why)
	r.Feed = &feedReport{
		Read: pass.read, Given: feed.given, Required: feed.must, Skipped: skipped, UpTo: feed.bound(),
	}
	if d := &pass.dead.lettersReport; d.Topic != "" {
		r.Feed.DeadLetters = d
	}
	if state != nil {
		r.noteSome(int64(state.Frontier.Gaps), "time", "history was lost %s: see bridge status")
	}
	r.noteSome(feed.scanned, "event",
		"%s from before the initial scan need not be in the topic: its rows show what they did")
	r.noteSome(feed.before, "event",
		"%s may be missing, because records are deleted from the topic: %s", feed.deleted())
	r.noteSome(int64(len(pass.extent.holes)), "place",
		"the feed lacks chunks in %s, before other chunks of the shard, as retention deletes them: the rest of such a "+
			"segment is compared")
	r.noteSome(feed.older, "record", "not compared: %s from before %s, where the feed starts now", pass.extent.oldest)
}

// BrokenError says that a topic does not keep promises.
type BrokenError struct{ Checks []string }

func (e *BrokenError) Error() string { return "verification failed: " + strings.Join(e.Checks, ", ") }

// Broken returns the checks that failed.
func (r *Report) Broken() (checks []string) {
	for _, c := range r.Checks {
		if c.Status == Broken {
			checks = append(checks, c.Name)
		}
	}
	return checks
}

// Verdict returns nil if something was checked of each topic, and all of it holds.
func Verdict(rs []*Report) error {
	var failed, problems []string
	for _, r := range rs {
		for _, check := range r.Broken() {
			if len(rs) > 1 {
				check += " of " + r.Topic
			}
			failed = append(failed, check)
		}
		if r.Problem != "" {
			problems = append(problems, r.Problem)
		}
	}
	switch {
	case failed != nil:
		return &BrokenError{failed}
	case problems != nil:
		return errors.New("could not be checked: " + strings.Join(problems, "; "))
	}
	return nil
}

// Text returns the report for people.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "topic %s: %s and %s on %s\n", r.Topic,
		plain.Count(r.Records, "record"), plain.Count(r.Markers, "marker"), plain.Count(r.Partitions, "partition"))
	if r.Cause != "" {
		fmt.Fprintf(&b, "%s\n", r.Cause)
	}
	for _, s := range r.Scans {
		kind := "scan"
		if s.Initial {
			kind = "initial scan"
		}
		fmt.Fprintf(&b, "%s %s wrote %s of the records\n", kind, s.ID, plain.Number(s.Rows))
	}
	if f := r.Feed; f != nil {
		fmt.Fprintf(&b, "feed: %s, %s for the topic, %s of them must be in it", plain.Count(f.Read, "event"),
			plain.Number(f.Given), plain.Number(f.Required))
		if f.UpTo != "" {
			fmt.Fprintf(&b, ", by %s", f.UpTo)
		}
		b.WriteByte('\n')
		if d := f.DeadLetters; d != nil {
			fmt.Fprintf(&b, "topic %s: %s with %s of the feed and %s of %s\n", d.Topic,
				plain.Count(d.Letters, "dead letter"), plain.Count(d.Events, "event"),
				plain.Count(d.Places, "damaged place"), plain.Count(d.Bytes, "byte"))
		}
	}
	for i := range r.Others {
		fmt.Fprintf(&b, "not judged: %s\n", &r.Others[i])
	}
	var without []string
	for _, c := range r.Checks {
		switch {
		case r.Problem == c.Name+": "+c.Reason: // which stands at the end of all
			fmt.Fprintf(&b, "not checked  %-9s  %s\n", c.Name, c.Promise)
		case c.Status == NotChecked:
			without = append(without, fmt.Sprintf("%s (%s)", c.Name, c.Reason))
		default:
			status := map[string]string{Holds: "holds", Broken: "BROKEN"}[c.Status]
			fmt.Fprintf(&b, "%-11s  %-9s  %s (%s checked)", status, c.Name, c.Promise, plain.Number(c.Checked))
			if c.Remedy != "" {
				fmt.Fprintf(&b, ": %s", c.Remedy)
			}
			b.WriteByte('\n')
		}
		for _, f := range c.Failures {
			fmt.Fprintf(&b, "    %s\n", f)
		}
	}
	if len(without) > 0 {
		fmt.Fprintf(&b, "not applicable: %s\n", strings.Join(without, ", "))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return b.String()
}

package judge

import (
	"fmt"

	"blobfeed/internal/plain"
	"blobfeed/verify"
)

// Report is what was found in one topic. Its JSON is part of the interface.
type Report struct {
	Topic      string       `json:"topic"`
	Partitions int          `json:"partitions"`
	Records    int64        `json:"records"`
	Markers    int64        `json:"markers"`
	Feed       *feedReport  `json:"feed,omitempty"`
	Scans      []scanReport `json:"scans,omitempty"`
	Seeks      []string     `json:"seeks,omitempty"` // "<from> <to>", in their order
	Again      int64        `json:"again,omitempty"` // events that are repeated after them
	// Twice counts further copies of events that Azure's log holds more than once, at positions of their own.
	Twice   int64         `json:"twice_in_log,omitempty"`
	Others  []otherReport `json:"others,omitempty"` // what other bridges wrote; not judged
	Checks  []checkReport `json:"checks"`
	Notes   []string      `json:"notes,omitempty"`
	Problem string        `json:"problem,omitempty"` // why something that applies was not checked

	reached map[int32]int64 // where each partition was left, at the marker of --until-resolved or of the round
	spread  int             // partitions that keys are spread over
}

// scanReport counts the rows of a scan, which are among the records.
type scanReport struct {
	ID      string `json:"id"`
	Initial bool   `json:"initial"`
	Rows    int64  `json:"rows"`
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
	Remedy   string          `json:"remedy,omitempty"` // what mends a broken promise, if a command does
	Failures []failureReport `json:"failures,omitempty"`
}

// failureReport has no partition and offset if the failure is not at a record, such as a missing one.
type failureReport struct {
	Topic     string `json:"topic,omitempty"` // of the markers, if they have a topic of their own
	Partition *int32 `json:"partition,omitempty"`
	Offset    *int64 `json:"offset,omitempty"`
	Key       string `json:"key,omitempty"`
	Problem   string `json:"problem"`

	expected int // of which record of the key it is, in the feed's order; 0: of none
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
		x := failureReport{Key: f.Key, Problem: f.Problem, expected: f.Expected}
		if f.Topic != "" {
			x.Partition, x.Offset = &f.Partition, &f.Offset
			if f.Topic != topic {
				x.Topic = f.Topic
			}
		}
		c.Failures = append(c.Failures, x)
	}
}

// otherReport counts what another bridge wrote to the topic.
type otherReport struct {
	Bridge  string `json:"bridge"`
	Account string `json:"account,omitempty"` // of records
	Feed    string `json:"feed,omitempty"`    // of markers
	Records int64  `json:"records"`
	Markers int64  `json:"markers"`
}

func (o *otherReport) String() string {
	if o.Feed != "" {
		return fmt.Sprintf("%s of feed %s (bridge %s)", plain.Count(o.Markers, "marker"), o.Feed, o.Bridge)
	}
	return fmt.Sprintf("%s of account %s (bridge %s)", plain.Count(o.Records, "record"), o.Account, o.Bridge)
}

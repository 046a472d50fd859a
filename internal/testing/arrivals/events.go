// Package arrivals checks that a topic has the events that a test wrote to a feed.
package arrivals

import (
	"fmt"

	"blobfeed/verify"
)

// Events checks that exactly the expected events come, each at least once, by the header ce_id. The validator
// verify.Replay checks their bytes and their order, too.
type Events struct {
	came     map[string]bool
	left     int
	failures []verify.Failure // the first of them
	checked  int64
}

// shown is how many failures, and how many missing events, are named.
const shown = 20

// New returns Events that expects nothing yet.
func New() *Events { return &Events{came: map[string]bool{}} }

// Expect adds an event. Call it before the event is shown: an unexpected event stays a failure.
func (e *Events) Expect(id string) {
	if _, known := e.came[id]; !known {
		e.came[id] = false
		e.left++
	}
}

// Left returns how many expected events have not come yet.
func (e *Events) Left() int { return e.left }

// Checked returns how many events came.
func (e *Events) Checked() int64 { return e.checked }

// Note implements verify.Validator.
func (e *Events) Note(r verify.Record) {
	if r.Key == nil || r.Scanned() {
		return
	}
	e.checked++
	id := string(r.Header("ce_id"))
	switch came, known := e.came[id]; {
	case !known && len(e.failures) < shown:
		e.failures = append(e.failures, verify.Failure{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
			Key: string(r.Key), Problem: fmt.Sprintf("event %q was not expected", id)})
	case known && !came:
		e.came[id] = true
		e.left--
	}
}

// Failures implements verify.Validator. It includes the missing events, in front.
func (e *Events) Failures() []verify.Failure {
	if e.left == 0 {
		return e.failures
	}
	text := fmt.Sprintf("lacks %d of %d expected events, among them", e.left, len(e.came))
	named := 0
	for id, came := range e.came {
		if !came && named < shown {
			named++
			text += " " + id
		}
	}
	return append([]verify.Failure{{Problem: text}}, e.failures...)
}

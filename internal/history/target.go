package history

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Target is where a seek goes to.
type Target struct {
	text    string // as in the frontier and in the header of the marker
	segment source.Segment
	at      envelope.Timestamp // zero: a segment from its first event on, or the earliest there is
}

// ParseTarget parses a segment (2026/01/31/1200), a time, the text of an "updated", or earliest. An error names the
// other words, which the caller knows, too.
func ParseTarget(s string, words ...string) (Target, error) {
	if s == "earliest" {
		return Target{text: s}, nil
	}
	if seg, err := source.ParseSegment(s); err == nil && s != "" {
		return Target{text: s, segment: seg}, nil
	}
	if _, err := time.Parse("2006/01/02/1504", s); outOfRange(s, err) != nil {
		return Target{}, outOfRange(s, err)
	}
	at, err := ParseTime(s)
	if errors.As(err, new(*rangeError)) {
		return Target{}, err
	}
	if err != nil {
		return Target{}, fmt.Errorf("%q is neither a segment such as 2026/01/31/1200, nor a time such as "+
			"2026-01-31T12:00:00Z or 2026-01-31, nor the text of an \"updated\", nor %s", s,
			strings.Join(append([]string{"earliest"}, words...), ", nor "))
	}
	return Target{text: at.String(), at: at}, nil
}

func (t Target) String() string { return t.text }

// Time returns where the target starts; the zero time for the earliest.
func (t Target) Time() time.Time {
	switch {
	case t.at != (envelope.Timestamp{}):
		return time.Unix(0, t.at.Wall).UTC()
	case t.segment != (source.Segment{}):
		return t.segment.Time()
	}
	return time.Time{}
}

// After reports whether an event of a segment is before the target.
func (t Target) After(seg source.Segment, at envelope.Timestamp) bool {
	if t.at != (envelope.Timestamp{}) {
		return at.Compare(t.at) < 0
	}
	return seg.Compare(t.segment) < 0
}

// Move changes f so that delivery continues at the target. Resolved stays: a marker that was written is not taken back
// (I6).
func (t Target) Move(f *offsets.Frontier) {
	from := f.At()
	if f.Seek != nil && !f.Seek.Told {
		from = f.Seek.From // nothing has moved since
		f.Replaced++
	}
	after, _ := t.Begin()
	f.Leap(after)
	f.Seek = &offsets.Seek{From: from, To: t.text}
	f.Current, f.Ended, f.Start = source.Segment{}, false, ""
	if f.Scan.Active() { // what its leases have listed is void as well, and the fences of the move end what they list
		f.Scan = f.Scan.Cancel(time.Now())
	}
	if t.at != (envelope.Timestamp{}) {
		f.Start = t.at.String()
	}
}

// First moves f, the first frontier, to the target that a seek has chosen. There is no marker that could be repeated.
func (t Target) First(f *offsets.Frontier) {
	t.Move(f)
	f.Seek.Told = true
}

// Begin returns the segment after which to read for the events from the target on, and the time before which to leave
// events out; zero for none.
func (t Target) Begin() (after source.Segment, from envelope.Timestamp) {
	if t.segment != (source.Segment{}) {
		return source.Before(t.segment), envelope.Timestamp{}
	}
	return Before(t.at), t.at
}
